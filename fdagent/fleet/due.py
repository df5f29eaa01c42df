"""When a schedule is due: pure functions from a schedule and an instant to the due times around it.

Guarantees
- The next due time is always later than the instant asked about. A daily time is due exactly once for each day of its
  zone's calendar, a weekly one once a week: a time that doesn't exist (spring) at the instant it is shifted to, one that
  comes twice (autumn) at the first. Two times that meet at one instant are one due time.
- Every N minutes is counted in UTC from the epoch, so no clock change moves it, and every machine counts alike.
- The answer depends on the named zone's rules only, not on the machine's own zone; an empty zone is the machine's. A
  name that is no zone of the tz database is an error, never UTC.

Does not say who runs what is due, nor what happens to a time that was missed. A zone's rules are read once a process, so
new ones count from the next start.
"""

import functools
import heapq
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from dateutil import rrule, tz

from fdagent.config.forms import YEAR_MINUTES
from fdagent.config.shapes import DAYS, clock_problem, week_problem
from fdagent.config.zones import zone_problem
from fdagent.errors import ConfigError

MARGIN = timedelta(days=2)
"""No zone is further from UTC than this, and no clock change is longer."""
LOOK_BACK_SECONDS = 10 * 86_400.0
"""A week, and twice the margin: a weekly time has been due since, whatever its zone did."""
NEVER = math.inf
_LAST_DAY = datetime(9990, 1, 1)  # noqa: DTZ001 -- the last day of any zone's calendar that is counted
LAST_INSTANT = _LAST_DAY.replace(tzinfo=UTC).timestamp()
"""The calendar of datetimes ends soon after; nothing is due later."""
MICROSECONDS = 1_000_000
_EVERY = re.compile(r"every (?:minute|(\d+(?:\.\d+)?) minutes)", re.ASCII)
_TIMED = re.compile(r"(daily at|weekly on) ([a-z0-9:, ]+) \(([^()]+)\)", re.ASCII)
_SHOWN = "%Y-%m-%d %H:%M:%S"
MOST_COUNTED = 10_000
"""The most daily or weekly times that are counted one by one, which takes a third of a second: 27 years of daily ones."""


@dataclass(frozen=True, slots=True)
class Times:
    """When a schedule is due: one of the three; `zone` counts for daily and weekly times."""

    every_minutes: float | None = None
    daily: tuple[str, ...] = ()
    weekly: tuple[str, ...] = ()
    zone: str = ""

    def next_after(self, instant: float) -> float:
        """The first due time later than `instant`, both in epoch seconds; `NEVER` where the calendar ends.

        Raises:
            ConfigError: The zone is not in this machine's tz database.
        """
        if instant >= LAST_INSTANT:
            return NEVER
        if self.every_minutes is not None:
            return self._nth(self._number(instant) + 1)
        return next(self._local_after(instant), NEVER)

    def latest(self, after: float, until: float) -> float | None:
        """The newest due time that is later than `after` and not later than `until`, without counting the others.

        Raises:
            ConfigError: The zone is not in this machine's tz database.
        """
        if self.every_minutes is not None:
            due = self._nth(self._number(until))
            return due if due > after else None
        newest = None
        for due in self._local_after(max(after, until - LOOK_BACK_SECONDS)):
            if due > until:
                break
            newest = due
        return newest

    def count(self, after: float, until: float) -> int:
        """How many due times are later than `after` and not later than `until`; daily and weekly ones up to MOST_COUNTED.

        Raises:
            ConfigError: The zone is not in this machine's tz database.
        """
        if until <= after:
            return 0
        if self.every_minutes is not None:
            return self._number(until) - self._number(after)
        found = 0
        for due in self._local_after(after):
            if due > until or found == MOST_COUNTED:
                break
            found += 1
        return found

    @property
    def words(self) -> str:
        """As a person says it: `every 15 minutes`, `daily at 02:00 (Europe/Berlin)`."""
        if self.every_minutes is not None:
            return "every minute" if self.every_minutes == 1 else f"every {self.every_minutes:.15g} minutes"
        kind, times = ("daily at", self.daily) if self.daily else ("weekly on", self.weekly)
        return f"{kind} {', '.join(times)} ({self.zone or 'local time'})"

    @property
    def _step(self) -> int:
        """Microseconds from one time to the next, a whole number of milliseconds."""
        return max(round((self.every_minutes or 0) * 60_000), 1) * 1000

    def _nth(self, number: int) -> float:
        return number * self._step / MICROSECONDS

    def _number(self, instant: float) -> int:
        """The number, since the epoch, of the newest due time that is not later than `instant`."""
        # The instant is rounded first, since a due time as a float may lie a little below its millisecond.
        number = round(min(instant, LAST_INSTANT) * MICROSECONDS) // self._step
        return number - (self._nth(number) > instant)

    def _local_after(self, instant: float) -> Iterator[float]:
        """Daily or weekly due times later than `instant`, in order."""
        zone, last = zone_named(self.zone), instant
        # A shifted time may pass those after it, so times wait here until no later one can come before them.
        waiting: list[tuple[float, datetime]] = []
        for local in self._locals(instant):
            heapq.heappush(waiting, (_instant(local, zone), local))
            while waiting[0][1] + MARGIN <= local:
                due, _ = heapq.heappop(waiting)
                if due > last:
                    last = due
                    yield due

    def _locals(self, instant: float) -> rrule.rruleset:
        """Their local times without a zone, in order, from before `instant`."""
        day = datetime.fromtimestamp(min(instant, LAST_INSTANT), UTC).replace(tzinfo=None) - MARGIN
        rules = rrule.rruleset()
        for words in self.daily or self.weekly:
            # A weekly time is a daily one on one weekday.
            *weekday, clock = words.split()
            hour, minute = clock.split(":")
            rules.rrule(
                rrule.rrule(
                    rrule.DAILY,
                    dtstart=day.replace(hour=0, minute=0, second=0, microsecond=0),
                    until=_LAST_DAY,
                    byweekday=[DAYS.index(name) for name in weekday] or None,
                    byhour=int(hour),
                    byminute=int(minute),
                    bysecond=0,
                )
            )
        return rules


def times_in(words: str) -> Times | None:
    """The other way round of `Times.words`; None for words of another version, or times in a machine's own zone."""
    every = _EVERY.fullmatch(words)
    if every is not None:
        minutes = float(every[1] or 1)
        return Times(every_minutes=minutes) if 0 < minutes <= YEAR_MINUTES else None
    timed = _TIMED.fullmatch(words)
    if timed is None or zone_problem(timed[3]):
        return None
    clocks, daily = tuple(timed[2].split(", ")), timed[1] == "daily at"
    if any(map(clock_problem if daily else week_problem, clocks)):
        return None
    return Times(daily=clocks, zone=timed[3]) if daily else Times(weekly=clocks, zone=timed[3])


def local_time(instant: float, zone: str) -> str:
    """An instant as the people of a zone read it, `2027-01-15 09:00:00 (Europe/Berlin)`; empty: this machine's zone.

    Raises:
        ConfigError: The zone is not in this machine's tz database.
    """
    instant = min(instant, LAST_INSTANT)
    if not zone:
        return datetime.fromtimestamp(instant).astimezone().strftime(_SHOWN)
    return f"{datetime.fromtimestamp(instant, zone_named(zone)).strftime(_SHOWN)} ({zone})"


def zone_named(name: str) -> tzinfo:
    """A zone by its name in the tz database; empty: the machine's own.

    Raises:
        ConfigError: There is none of that name here; never silently UTC.
    """
    return _zone(name, "" if name else os.environ.get("TZ", ""))


@functools.lru_cache(maxsize=1024)
def _zone(name: str, machine: str) -> tzinfo:
    """`machine`: the variable that names the machine's zone, part of the key only."""
    if not name:
        zone = tz.gettz()
        if zone is None:
            raise ConfigError(
                f"This machine's own time zone, TZ={machine}, is not in its tz database.",
                fix="Set TZ to a name such as Europe/Berlin, or give the schedule a time_zone.",
            )
        return zone
    zone = None if zone_problem(name) else tz.gettz(name)
    # What `gettz` makes of a name that has no file is not a zone of that name: `Mars/Sol3` would be a fixed offset.
    if not isinstance(zone, tz.tzfile):
        raise ConfigError(
            f"This machine's tz database has no time zone {name!r}.",
            fix="Install the operating system's package `tzdata`, or the Python package of that name beside fdagent.",
        )
    return zone


def _instant(local: datetime, zone: tzinfo) -> float:
    """The instant of a local time: shifted out of a gap, the first of two."""
    return tz.resolve_imaginary(local.replace(tzinfo=zone, fold=0)).timestamp()
