"""When a schedule is due: pure functions from a schedule and an instant to the next one.

Guarantees
- The next due time is always later than the instant asked about. A daily time is due exactly once on each local day, a
  weekly one once a week: a time that doesn't exist (spring) at the instant it is shifted to, one that comes twice
  (autumn) at the first. Two times that meet at one instant are one due time.
- Every N minutes is counted in UTC from the epoch, so no clock change moves it, and every machine counts alike.
- The answer depends on the named zone's rules only, not on the machine's own zone; an empty zone is the machine's.

Does not say who runs what is due, nor what happens to a time that was missed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from dateutil import rrule, tz

from fdagent.errors import ConfigError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MARGIN = timedelta(days=2)
"""No zone is further from UTC than this, and no clock change is longer."""
MILLISECONDS = 1000
MOST_COUNTED = 100_000
"""The most due times that are counted one by one: 34 years of eight a day."""


@dataclass(frozen=True, slots=True)
class Times:
    """When a schedule is due: one of the three; `zone` counts for daily and weekly times."""

    every_minutes: float | None = None
    daily: tuple[str, ...] = ()
    weekly: tuple[str, ...] = ()
    zone: str = ""

    def next_after(self, instant: float) -> float:
        """The first due time later than `instant`, both in epoch seconds.

        Raises:
            ConfigError: The zone is not in this machine's tz database.
        """
        if self.every_minutes is not None:
            step = self._step(self.every_minutes)
            return (int(instant * MILLISECONDS) // step + 1) * step / MILLISECONDS
        return next(self._local_after(instant))

    def count_between(self, after: float, until: float) -> int:
        """How many due times are later than `after` and not later than `until`; counted at once, up to a bound."""
        if until <= after:
            return 0
        if self.every_minutes is not None:
            step = self._step(self.every_minutes)
            return int(until * MILLISECONDS) // step - int(after * MILLISECONDS) // step
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
            return f"every {self.every_minutes:g} minutes"
        kind, times = ("daily at", self.daily) if self.daily else ("weekly on", self.weekly)
        return f"{kind} {', '.join(times)} ({self.zone or 'local time'})"

    @staticmethod
    def _step(minutes: float) -> int:
        return max(round(minutes * 60 * MILLISECONDS), 1)

    def _local_after(self, instant: float) -> Iterator[float]:
        """Daily or weekly due times later than `instant`, in order, without end."""
        zone = zone_named(self.zone)
        rules = rrule.rruleset()
        start = datetime.fromtimestamp(instant, UTC).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        for day, hour, minute in self._parts():
            # A weekly time is a daily one on one weekday.
            rules.rrule(
                rrule.rrule(
                    rrule.DAILY, dtstart=start - MARGIN, byweekday=day, byhour=hour, byminute=minute, bysecond=0
                )
            )
        last = instant
        # A shifted time can pass the one after it, so instants are put in order within a window of local time.
        window: list[float] = []
        for local in rules:
            due = _instant(local, zone)
            window.append(due)
            safe = _instant(local - MARGIN, zone)
            for early in sorted(at for at in window if at <= safe):
                window.remove(early)
                if early > last:
                    last = early
                    yield early

    def _parts(self) -> Iterator[tuple[int | None, int, int]]:
        for text in self.daily:
            hour, minute = text.split(":")
            yield None, int(hour), int(minute)
        for text in self.weekly:
            day, at = text.split()
            hour, minute = at.split(":")
            yield DAYS.index(day), int(hour), int(minute)


def zone_named(name: str) -> tzinfo:
    """A zone by its name in the tz database; empty: the machine's own.

    Raises:
        ConfigError: There is none of that name here; never silently UTC.
    """
    zone = tz.gettz(name) if name else tz.tzlocal()
    if zone is None:
        raise ConfigError(
            f"This machine's time zone data has no zone {name!r}.",
            fix="Install the tz database (Debian: `apt install tzdata`; elsewhere: `pip install tzdata`).",
        )
    return zone


def _instant(local: datetime, zone: tzinfo) -> float:
    """The instant of a local time: shifted out of a gap, the first of two."""
    return tz.resolve_imaginary(local.replace(tzinfo=zone, fold=0)).timestamp()
