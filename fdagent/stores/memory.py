"""Records in this process's memory: for the simulated world, for tests, and as the shortest statement of the port.

Guarantees: conditions are judged and carried out in one step, between threads too; no etag is ever used twice; ages
and offsets are those of the clock it was given. Does not keep anything beyond the process, and never answers Unknown.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from fdagent.errors import Conflict
from fdagent.ports import Absent, Blob, Clock, Condition, Entry, Match
from fdagent.stores.keys import check_key, split_prefix
from fdagent.stores.storeclock import age


@dataclass(frozen=True, slots=True)
class _Kept:
    body: bytes
    etag: str
    written: float


class MemoryStore:
    """A store in a dictionary.

    Args:
        clock: The store's own clock, which stamps what is written.
        reader: The clock of the machine that asks, if another one.
    """

    def __init__(self, clock: Clock, *, reader: Clock | None = None) -> None:
        self._clock = clock
        self._reader = reader or clock
        self._kept: dict[str, _Kept] = {}
        self._writes = 0
        self._lock = threading.Lock()

    def list(self, prefix: str) -> Sequence[Entry]:
        """All records under `prefix`, by key."""
        split_prefix(prefix)
        now = self._clock.wall()
        with self._lock:
            found = [(key, kept) for key, kept in self._kept.items() if key.startswith(prefix)]
        return tuple(Entry(k, kept.etag, age(now, kept.written), len(kept.body)) for k, kept in sorted(found))

    def read(self, key: str) -> Blob | None:
        """The record, or None."""
        with self._lock:
            kept = self._kept.get(key)
        if kept is None:
            check_key(key)
        return None if kept is None else Blob(kept.body, kept.etag, age(self._clock.wall(), kept.written))

    def write(self, key: str, body: bytes, condition: Condition) -> str:
        """Write if the condition holds; returns the new etag."""
        with self._lock:
            if key not in self._kept:
                check_key(key)
            self._judge(key, condition)
            self._writes += 1
            kept = self._kept[key] = _Kept(bytes(body), f"m{self._writes}", self._clock.wall())
        return kept.etag

    def delete(self, key: str, condition: Match) -> None:
        """Delete if this very version is there."""
        with self._lock:
            if key not in self._kept:
                check_key(key)
            self._judge(key, condition)
            del self._kept[key]

    def clock_offset(self) -> float | None:
        """The store's clock minus the reader's."""
        return self._clock.wall() - self._reader.wall()

    def _judge(self, key: str, condition: Condition) -> None:
        kept = self._kept.get(key)
        if isinstance(condition, Absent):
            if kept is not None:
                raise Conflict(f"{key} is already there.")
        elif kept is None or kept.etag != condition.etag:
            raise Conflict(f"{key} is no longer the version that was read.")
