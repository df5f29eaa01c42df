"""A record as its reader watches it: every read is a sighting, and facts can ask how long it has stayed the same.

Guarantees: `unchanged_seconds` is about the version that the last `read` answered, counted by this reader's own clock
from the first time it met that version (`sightings.py`). Writes as the cell beneath does.
"""

from typing import Generic, TypeVar

from fdagent.ports import Cell, Clock
from fdagent.stores.sightings import Sightings
from models.step import Write

R = TypeVar("R")


class WatchedCell(Generic[R]):
    """The record of `cell`, watched under `key`."""

    def __init__(self, cell: Cell[R], key: str, sightings: Sightings, clock: Clock) -> None:
        self._cell, self._key, self._sightings, self._clock = cell, key, sightings, clock
        self._tag = ""

    def read(self) -> tuple[R | None, str]:
        """The record and its tag, met now."""
        asked = self._clock.elapsed()
        record, self._tag = self._cell.read()
        if record is None:
            self._sightings.forget(self._key)
        else:
            self._sightings.seen(self._key, self._tag, asked=asked)
        return record, self._tag

    def write(self, how: Write, record: R | None, tag: str) -> str:
        """The one conditional write of the cell beneath."""
        return self._cell.write(how, record, tag)

    @property
    def unchanged_seconds(self) -> float | None:
        """For how long the version last read was met; None when nothing was there."""
        return self._sightings.unchanged_for(self._key, self._tag)
