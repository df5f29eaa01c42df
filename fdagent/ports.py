"""The ports: everything outside the process that a decision depends on.

Guarantees: production code reaches clocks, random numbers, other processes, records and tables only through
these protocols, so that the simulated world runs the same code over its own. Does not guarantee anything about an
implementation: each has its conformance tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from models.step import Write

R = TypeVar("R")
S = TypeVar("S")
C = TypeVar("C", contravariant=True)


class Clock(Protocol):
    """One machine's clocks. Values of two machines are never compared."""

    def wall(self) -> float:
        """Seconds since the epoch, for people, `not_before` and file names; may jump."""
        ...

    def elapsed(self) -> float:
        """Seconds that only go on, through suspend too (CLOCK_BOOTTIME); the origin means nothing."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; the world turns this into a scheduling point."""
        ...


class Ids(Protocol):
    """Random ids and the jitter of waits."""

    def new(self) -> str:
        """A new random id of 32 hex digits: an op, an instance, an attempt."""
        ...

    def fraction(self) -> float:
        """A random number in [0, 1), for jitter."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed record: `age` is seconds since it was written by the store's own clock, None when not known."""

    key: str
    etag: str
    age: float | None
    size: int


@dataclass(frozen=True, slots=True)
class Blob:
    """One record as read: its bytes, its etag, its age in seconds by the store's own clock (None: not known)."""

    body: bytes
    etag: str
    age: float | None


@dataclass(frozen=True, slots=True)
class Absent:
    """The condition "no record is there" (`If-None-Match: *`)."""


@dataclass(frozen=True, slots=True)
class Match:
    """The condition "this very version is there" (`If-Match`)."""

    etag: str


Condition = Absent | Match


class Store(Protocol):
    """Small records under keys such as `status/abc.json`, changed by conditional writes only.

    Every method may raise Unavailable, Denied or BadKey. A write or delete may raise Conflict (nothing was written)
    or Unknown (no answer: it may have happened, or may still happen).
    """

    def list(self, prefix: str) -> Sequence[Entry]:
        """All records whose key starts with `prefix`, every page; a partial listing is an error, not an answer."""
        ...

    def read(self, key: str) -> Blob | None:
        """The record, or None when there is none."""
        ...

    def write(self, key: str, body: bytes, condition: Condition) -> str:
        """Write if the condition holds; returns the new etag."""
        ...

    def delete(self, key: str, condition: Match) -> None:
        """Delete if this very version is there."""
        ...

    def clock_offset(self) -> float | None:
        """The store's clock minus this machine's wall clock in seconds (median of recent answers), None if unknown."""
        ...


class Cell(Protocol[R]):
    """One record under one key: an object in a store, or a row of the queue. `tag` names the version read."""

    def read(self) -> tuple[R | None, str]:
        """The record (None: absent) and the tag of its version."""
        ...

    def write(self, how: Write, record: R | None, tag: str) -> str:
        """The one conditional write; returns the new version's tag. Raises Conflict or Unknown."""
        ...


class Processes(Protocol):
    """Other processes of this machine."""

    def place(self) -> str:
        """Host name, boot identity and pid namespace in one word; empty when they can't be told."""
        ...

    def pid(self) -> int:
        """This process's id."""
        ...

    def started_at(self, pid: int) -> float | None:
        """When process `pid` started, or None when there is no such process; compared for equality within one place."""
        ...


class Table(Protocol[S, C]):
    """One Delta table: versions that only grow, each commit conditional on the version before it.

    `S` is a snapshot pinned to one version, `C` a change computed on a snapshot.
    """

    def open(self) -> S:
        """The newest version, pinned. A table that is not there yet is a snapshot of version -1."""
        ...

    def has_txn(self, snapshot: S, app_id: str) -> bool:
        """Does this pinned snapshot hold a transaction of `app_id`?"""
        ...

    def author(self, snapshot: S, app_id: str) -> "Author | None":
        """Who committed `app_id`, from the commit infos still there; None when the log no longer says."""
        ...

    def commit(self, snapshot: S, change: C, note: "Note") -> None:
        """The one commit, conditional on `snapshot`'s version. Raises Conflict or Unknown; no answer proves anything."""
        ...

    def discard(self, change: C) -> None:
        """Remove the data files this change wrote and no version refers to."""
        ...


@dataclass(frozen=True, slots=True)
class Author:
    """Whose commit an effect was, from its commit info."""

    attempt_id: str
    agent: str = ""
    attempt: int = 0
    version: int = -1


@dataclass(frozen=True, slots=True)
class Note:
    """What a data commit carries beside its files."""

    app_id: str
    attempt_id: str
    run_key: str
    agent: str
    job_id: str
    attempt: int
    run_id: str


class Pinned(Protocol):
    """What the landing loop needs to know of a snapshot."""

    @property
    def version(self) -> int:
        """The pinned version; -1 when the table is not there yet."""
        ...
