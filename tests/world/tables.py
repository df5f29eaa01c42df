"""Delta tables as the log behind the landing port: versions, files, transactions, and what log cleaning leaves.

Guarantees: a commit is a "put if absent" of one version's log file, as object stores carry it out. So it conflicts when
that file is there, and *succeeds without effect* when the version is below a checkpoint and its log file was cleaned.
Does not compute: rows are names, a merge writes the whole table anew.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from fdagent.errors import Conflict
from fdagent.ports import Author, Note


@dataclass(frozen=True, slots=True)
class Pin:
    """A snapshot pinned to one version."""

    version: int
    rows: tuple[str, ...]
    files: frozenset[str]
    txns: frozenset[str]
    taken: frozenset[str]
    """The source rows that the table's marks say were taken."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A change. An append adds `rows` and `files`; otherwise they replace all that is there."""

    rows: tuple[str, ...]
    files: tuple[str, ...]
    taken: frozenset[str] = frozenset()
    append_only: bool = True


class Info(NamedTuple):
    """What a version's log file says of its author."""

    app_id: str
    author: Author | None


class Log(NamedTuple):
    """One table. Log files of versions below `kept` are gone; `files` are the data files that exist."""

    newest: Pin = Pin(-1, (), frozenset(), frozenset(), frozenset())
    infos: tuple[Info, ...] = ()
    kept: int = 0
    files: frozenset[str] = frozenset()

    def commit(self, base: int, change: Rows, note: Note) -> "Log":
        """Put version `base + 1`. Raises Conflict when its log file is there."""
        version, last = base + 1, self.newest
        if version <= last.version:
            if version < self.kept:
                return self
            raise Conflict("That version is taken.")
        rows = last.rows + change.rows if change.append_only else change.rows
        files = last.files | set(change.files) if change.append_only else frozenset(change.files)
        pin = Pin(version, rows, files, last.txns | {note.app_id}, last.taken | change.taken)
        author = Author(note.attempt_id, note.agent, note.attempt, version)
        return self._replace(newest=pin, infos=(*self.infos, Info(note.app_id, author)))

    def author(self, version: int, app_id: str) -> Author | None:
        """Who committed `app_id` up to `version`, from the log files still there."""
        for number in range(self.kept, min(version + 1, len(self.infos))):
            if self.infos[number].app_id == app_id:
                return self.infos[number].author
        return None

    def foreign(self) -> "Log":
        """A writer that knows nothing of us appends a row."""
        last = self.newest
        name = f"foreign{last.version + 1}"
        pin = replace(last, version=last.version + 1, rows=(*last.rows, name), files=last.files | {name})
        return self._replace(newest=pin, infos=(*self.infos, Info("", None)), files=self.files | {name})

    def clean(self) -> "Log":
        """A checkpoint of the newest version, and every log file gone."""
        return self._replace(kept=self.newest.version + 1)

    def put(self, file: str) -> "Log":
        """A data file is written."""
        return self._replace(files=self.files | {file})

    def discard(self, files: tuple[str, ...]) -> "Log":
        """Data files are removed."""
        return self._replace(files=self.files - set(files))
