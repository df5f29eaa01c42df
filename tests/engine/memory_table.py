"""A table as a list of versions behind the landing port, with every answer a store may give or withhold.

Version `n` is `versions[n - first]`. A commit asks for exactly the version after its snapshot's and is refused when it is
taken. `plan` scripts the answers of the coming commits: "ok", "lost" (lands, no answer), "never" (no answer, never
lands), "late" (no answer; lands when `release` is called, if its version is still free then), "refused".
"""

from dataclasses import dataclass, field

from fdagent.errors import Conflict, Unknown
from fdagent.ports import Author, Note


@dataclass(frozen=True)
class Rows:
    """A change: the rows it adds and the files that hold them; `resets` replaces everything before it."""

    rows: tuple[str, ...]
    files: tuple[str, ...]
    append_only: bool = True
    seen: int = -1


@dataclass(frozen=True)
class Version:
    rows: tuple[str, ...]
    files: frozenset[str]
    txns: frozenset[str]
    author: Author | None = None
    app_id: str = ""


@dataclass(frozen=True)
class Pin:
    version: int
    body: Version


@dataclass
class MemoryTable:
    versions: list[Version] = field(default_factory=lambda: [Version((), frozenset(), frozenset())])
    first_kept: int = 0
    files: set[str] = field(default_factory=set)
    plan: list[str] = field(default_factory=list)
    held: list[tuple[Pin, Rows, Note]] = field(default_factory=list)
    before_commit: object = None
    commits: int = 0

    def open(self) -> Pin:
        return Pin(len(self.versions) - 1, self.versions[-1])

    def has_txn(self, snapshot: Pin, app_id: str) -> bool:
        return app_id in snapshot.body.txns

    def author(self, snapshot: Pin, app_id: str) -> Author | None:
        for number, version in enumerate(self.versions[: snapshot.version + 1]):
            if number >= self.first_kept and version.app_id == app_id:
                return version.author
        return None

    def commit(self, snapshot: Pin, change: Rows, note: Note) -> None:
        self.commits += 1
        hook, self.before_commit = self.before_commit, None
        if callable(hook):
            hook()
        answer = self.plan.pop(0) if self.plan else "ok"
        if answer == "late":
            self.held.append((snapshot, change, note))
        elif answer in {"ok", "lost"}:
            self._land(snapshot, change, note)
        if answer == "refused":
            raise Conflict("refused")
        if answer != "ok":
            raise Unknown(answer)

    def _land(self, snapshot: Pin, change: Rows, note: Note) -> None:
        if len(self.versions) != snapshot.version + 1:
            raise Conflict("taken")
        last = self.versions[-1]
        author = Author(note.attempt_id, note.agent, note.attempt, snapshot.version + 1)
        self.versions.append(
            Version(
                last.rows + change.rows,
                last.files | set(change.files),
                last.txns | {note.app_id},
                author,
                note.app_id,
            )
        )

    def release(self) -> bool:
        """The oldest held commit arrives now; did it land?"""
        try:
            self._land(*self.held.pop(0))
        except Conflict:
            return False
        return True

    def foreign(self, row: str = "foreign") -> None:
        """Somebody else appends a row."""
        last = self.versions[-1]
        name = f"foreign-{len(self.versions)}"
        self.files.add(name)
        self.versions.append(Version((*last.rows, row), last.files | {name}, last.txns))

    def clean(self) -> None:
        """Checkpoint and forget every commit info; transactions stay."""
        self.first_kept = len(self.versions)

    def discard(self, change: Rows) -> None:
        self.files -= set(change.files)

    def readable(self) -> bool:
        """Is every file of the newest version there?"""
        return self.versions[-1].files <= self.files
