"""What this reader has met, and for how long unchanged: the only ground for *lapsed* and *lost* (rule C4).

Guarantees: `unchanged_for` is a span over which this reader itself met one version, measured by a clock that neither
jumps nor stops, from the arrival of the first answer that showed it to the *sending* of the last request that still
did; whatever an answer's way took, the version was there for at least that long. No timestamp of anybody takes part.
Does not guarantee that the version is still there: read again before judging. What is forgotten, or falls out of the
bound, starts anew, which only makes a takeover later.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from fdagent.ports import Clock, Entry

MAX_KEYS = 50_000
"""Keys remembered; the one met longest ago goes first."""

Row = tuple[str, str, float, float]
"""(key, version, first met, last met), to hand to another process of the same boot."""


@dataclass(slots=True)
class _Met:
    version: str
    first: float
    last: float


class Sightings:
    """Per key: the version, when it was first met and when last.

    Args:
        clock: This machine's clocks; only `elapsed` is used.
        most: How many keys are remembered.
    """

    def __init__(self, clock: Clock, *, most: int = MAX_KEYS) -> None:
        self._clock = clock
        self._most = most
        self._met: OrderedDict[str, _Met] = OrderedDict()

    def seen(self, key: str, version: str, *, asked: float | None = None) -> None:
        """This version was met, in an answer that has just arrived.

        Args:
            key: The record's key.
            version: What changes with every write: an etag, or the record's op.
            asked: `elapsed()` when the request was sent; without it the answer is taken to have come at once.
        """
        now = self._clock.elapsed()
        met = self._met.get(key)
        if met is None or met.version != version:
            met = self._met[key] = _Met(version, now, now)
        else:
            met.last = max(met.last, now if asked is None else min(asked, now))
        self._met.move_to_end(key)
        while len(self._met) > self._most:
            self._met.popitem(last=False)

    def listed(self, prefix: str, entries: Iterable[Entry], *, asked: float | None = None) -> None:
        """A whole listing of `prefix` has arrived: all of it was met, and what it lacks is forgotten."""
        there = set()
        for entry in entries:
            there.add(entry.key)
            self.seen(entry.key, entry.etag, asked=asked)
        for key in [key for key in self._met if key.startswith(prefix) and key not in there]:
            del self._met[key]

    def unchanged_for(self, key: str, version: str) -> float | None:
        """Seconds over which this very version was met; 0 when met once, None when not met or another was."""
        met = self._met.get(key)
        return met.last - met.first if met is not None and met.version == version else None

    def met_at(self, key: str, version: str) -> float | None:
        """`elapsed()` when this very version was first met; None when another was, or none."""
        met = self._met.get(key)
        return met.first if met is not None and met.version == version else None

    def forget(self, key: str) -> None:
        """Start anew for this key."""
        self._met.pop(key, None)

    def rows(self, prefix: str = "") -> list[Row]:
        """What was met under `prefix`, for another process of this machine and boot."""
        return [(key, m.version, m.first, m.last) for key, m in self._met.items() if key.startswith(prefix)]

    def load(self, rows: Iterable[Row]) -> None:
        """Take over what another process of this very boot met, unless this one met another version since.

        A row from the future of this clock is of another boot and is left out.
        """
        now = self._clock.elapsed()
        for key, version, first, last in rows:
            if not first <= last <= now:
                continue
            met = self._met.get(key)
            if met is None or (met.version != version and met.last < last):
                self._met[key] = _Met(version, first, last)
            elif met.version == version:
                met.first, met.last = min(met.first, first), max(met.last, last)
        while len(self._met) > self._most:
            self._met.popitem(last=False)
