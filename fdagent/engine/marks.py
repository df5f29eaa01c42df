"""Marks: up to where a table's sources were loaded. They travel in each of our commits, beside the data.

Guarantees
- Data and marks can't diverge: both are one commit. Each commit carries the whole marks, so the newest one is enough.
- Where that commit's info was cleaned away, the run log is asked; where it does not say either and the table has rows,
  `MarksUnknown` is raised: rows are never loaded twice by chance.
- The list of taken files is compact: the newest `KEEP` files stand one by one, older ones are rolled up into the
  modified time below which every file counts as taken, with their number. More files below it than were ever taken
  mean that one arrived late: that is said, and nothing is loaded.

Does not guarantee that a file is seen which arrives with a modified time older than `KEEP` taken ones, once as many of
those were removed; nor marks of a table that was RESTOREd: they stay those of the newest commit.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdagent.errors import MarksUnknown

if TYPE_CHECKING:
    from fdagent.engine.tables.delta import Snapshot

KEEP = 1000
"""Files that are listed one by one."""
HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A source file: its name relative to the project (absolute outside it), bytes, and modified time in microseconds."""

    path: Path
    name: str
    size: int
    modified_us: int

    @property
    def key(self) -> str:
        """It as it stands in the list of taken files: its modified time and a digest of name, size and time."""
        digest = hashlib.sha256(f"{self.name}|{self.size}|{self.modified_us}".encode(errors="surrogateescape"))
        return f"{self.modified_us:x}-{digest.hexdigest()[:HASH_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Taken:
    """The files that were taken: `recent` one by one, and `rolled_up` of them modified at or before `upto_us`."""

    recent: frozenset[str] = frozenset()
    upto_us: int = -1
    rolled_up: int = 0

    @property
    def any(self) -> bool:
        """Was any file ever taken?"""
        return bool(self.recent or self.rolled_up)

    def below(self, file: FoundFile) -> bool:
        """Is it one of those that are rolled up?"""
        return file.modified_us <= self.upto_us and file.key not in self.recent

    def has(self, file: FoundFile) -> bool:
        """Was it taken?"""
        return file.key in self.recent or self.below(file)

    def plus(self, files: Iterable[FoundFile]) -> "Taken":
        """With these taken as well."""
        keys = sorted(self.recent | {file.key for file in files}, key=_modified)
        rolled, kept = keys[:-KEEP], keys[-KEEP:]
        upto = max([self.upto_us, *(_modified(key) for key in rolled)])
        return Taken(frozenset(kept), upto, self.rolled_up + len(rolled))


@dataclass(frozen=True, slots=True)
class SourceMark:
    """What was read of another entity's table: which table, its version, and the greatest watermark seen, as text."""

    entity: str
    table_id: str
    version: int
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """Up to where everything a table reads was loaded."""

    definition: str = ""
    """A digest of what the entity declares: when it changes, unchanged sources may mean changed rows."""
    taken: Taken = Taken()
    listing: str = ""
    """A digest of the files of the last `take = "all"`."""
    sources: Mapping[str, SourceMark] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    """All that the taken files had, under the table's names."""

    def to_text(self) -> str:
        """As one line of JSON; equal marks give equal text."""
        value: dict[str, Any] = {"definition": self.definition}
        if self.sources:
            value["sources"] = {
                alias: {"entity": mark.entity, "id": mark.table_id, "version": mark.version, "at": mark.at}
                for alias, mark in self.sources.items()
            }
        if self.listing:
            value["listing"] = self.listing
        if self.taken.any:
            files: dict[str, Any] = {"taken": sorted(self.taken.recent)}
            if self.taken.rolled_up:
                files |= {"upto_us": self.taken.upto_us, "rolled_up": self.taken.rolled_up}
            value["files"] = files
        if self.columns:
            value["columns"] = self.columns
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Marks":
        """The marks that `to_text` wrote.

        Raises:
            ValueError, KeyError, TypeError: It is something else.
        """
        value = json.loads(text)
        files = value.get("files", {})
        return cls(
            definition=str(value["definition"]),
            taken=Taken(
                frozenset(files.get("taken", ())), int(files.get("upto_us", -1)), int(files.get("rolled_up", 0))
            ),
            listing=str(value.get("listing", "")),
            sources={
                alias: SourceMark(mark["entity"], mark["id"], int(mark["version"]), mark["at"])
                for alias, mark in value.get("sources", {}).items()
            },
            columns=tuple(map(str, value.get("columns", ()))),
        )


def digest(*parts: object) -> str:
    """A short digest of values that print alike when they are alike."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode(errors="surrogateescape")).hexdigest()[:HASH_DIGITS]


def _modified(key: str) -> int:
    return int(key.partition("-")[0], 16)


@dataclass(frozen=True, slots=True)
class Known:
    """Marks as found: their text as it was committed, and whether the newest version is the commit that carries them."""

    marks: Marks = Marks()
    text: str = ""
    newest: bool = False


def read_marks(snapshot: "Snapshot", from_run_log: Callable[[], str | None], *, entity: str, needed: bool) -> Known:
    """The marks of a pinned version.

    Args:
        snapshot: The version.
        from_run_log: Asks for the marks of the entity's newest finished run; None when the run log has none.
        entity: For sentences.
        needed: Would loading without them load rows twice?

    Raises:
        MarksUnknown: They are needed, the table has rows, and nothing says up to where they were loaded.
    """
    for info in snapshot.infos():
        text = info.get("marks")
        # A commit held back for long can land as a free name below a cleaned log: a file of the log that no version has.
        if text and snapshot.has_txn(str(info.get("app_id"))):
            return Known(_parsed(str(text), entity), str(text), info.get("version") == snapshot.version)
    if not needed or not snapshot.files:
        return Known()
    logged = from_run_log()
    if logged:
        return Known(_parsed(logged, entity), logged)
    raise MarksUnknown(
        f"The table of {entity} has rows, but neither its log nor the run log says up to where its sources were loaded.",
        fix=f"Rebuild it from all its source rows: fdagent enqueue ENV {entity} --backfill full.",
    )


def _parsed(text: str, entity: str) -> Marks:
    try:
        return Marks.from_text(text)
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise MarksUnknown(
            f"The marks in the log of {entity} can't be read: {err}.",
            fix=f"Rebuild it from all its source rows: fdagent enqueue ENV {entity} --backfill full.",
        ) from err
