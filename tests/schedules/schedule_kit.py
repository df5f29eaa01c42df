"""A scheduler over a queue in memory and a clock that goes where it is told; zones as the standard library reads them."""

import sqlite3
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from fakes import FakeIds

from fdagent.config.incidents import Alerts, Incidents
from fdagent.config.schedules import Pipeline, Schedule
from fdagent.config.settings import Agent, Identity, OneLake, Retry, Settings
from fdagent.config.zones import zone_problem
from fdagent.fleet.schedules import Schedules, View
from fdagent.fleet.scheduling import Scheduling
from fdagent.ports import Store
from fdagent.queue.db import Database
from fdagent.queue.dues import Dues, Entry
from fdagent.queue.jobs import Jobs, Worker
from models.job import Job, JobFacts

WORKER = Worker("etl-01/1", "host/boot/ns", 100, 1.0)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)


def at(text: str) -> float:
    """`2027-01-15 09:00` in UTC, as epoch seconds."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def utc(seconds: float) -> str:
    """The other way round, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


@dataclass
class TwoClocks:
    """A wall clock that may be set, and a counter that only goes on."""

    now: float = field(default_factory=lambda: at("2027-01-15 09:00"))
    counter: float = 0.0

    def wall(self) -> float:
        return self.now

    def elapsed(self) -> float:
        return self.counter

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.counter += seconds


def settings(*schedules: Schedule) -> Settings:
    return Settings(
        file=Path("agent.toml"),
        agent=Agent(name="etl-01", project=Path(), environments=("dev", "prod"), stale_seconds=90),
        identity=Identity(),
        retry=Retry(),
        schedules=schedules,
        pipeline=Pipeline(),
        incidents=Incidents(),
        routes=(),
        alerts=Alerts(),
        onelake=OneLake(),
    )


def minutely(**changed: Any) -> Schedule:
    return replace(Schedule(id="m", env="dev", every_minutes=1.0), **changed)


def daily(*times: str, **changed: Any) -> Schedule:
    return replace(Schedule(id="d", env="dev", daily=times or ("02:00",), time_zone="UTC"), **changed)


class Rig:
    """One agent's scheduler: start it, move its clock, and see what it does.

    Args:
        schedules: What agent.toml has.
        home: Where its queue file and `dues.json` lie; None: nowhere, all in memory.
        stores: Its control roots.
    """

    def __init__(self, *schedules: Schedule, home: Path | None = None, stores: dict[str, Store] | None = None) -> None:
        self.clock, self.ids, self.home, self.stores = TwoClocks(), FakeIds("job-", 10_000_000), home, stores or {}
        self.envs: tuple[str, ...] = ("dev", "prod")
        self.told: list[tuple[str, str, str]] = []
        self.database = self._database()
        self.start(*schedules)

    def _database(self) -> Database:
        if self.home is not None:
            return Database(self.home)
        return Database.over(sqlite3.connect(":memory:", isolation_level=None))

    def start(self, *schedules: Schedule) -> None:
        """A new process over the same files: with other schedules, or the same."""
        if self.home is not None:
            self.database.close()
            self.database = self._database()
        chosen = settings(*schedules) if schedules else self.schedules.settings
        self.jobs = Jobs(self.database, clock=self.clock, ids=self.ids)
        self.dues = Dues(self.jobs, self.home, lambda sentence: self._tell("error", "dues_unreadable", sentence))
        self.schedules = Schedules(chosen, self.dues, self.ids, self.stores)
        self.duty = Scheduling(self.schedules, lambda: self.envs, self.clock, self._tell)

    def lose_the_queue(self) -> None:
        """Its file is gone, and the agent starts with an empty one."""
        self.database.close()
        for file in self.home.glob("queue.sqlite3*"):
            file.unlink()
        self.database = self._database()
        self.start()

    def _tell(self, level: str, event: str, sentence: str, **_: Any) -> None:
        self.told.append((level, event, sentence))

    def tick(self, now: float | str | None = None) -> list[Entry]:
        """One turn, at a time; the entries that it made."""
        if now is not None:
            self.clock.now = at(now) if isinstance(now, str) else now
        known = {(entry.schedule, entry.due) for entry in self.ledger()}
        self.duty.tick()
        return [entry for entry in self.ledger() if (entry.schedule, entry.due) not in known]

    def go(self, seconds: float, step: float = 1.0) -> list[Entry]:
        """Turn after turn while time goes on; the entries that were made."""
        made = []
        for _ in range(round(seconds / step)):
            self.clock.sleep(step)
            made += self.tick()
        return made

    def ledger(self) -> list[Entry]:
        return [entry for one in self.schedules.settings.schedules for entry in self.dues.entries(one.id)]

    def view(self, schedule_id: str = "") -> View:
        views = self.schedules.views(self.clock.now)
        return next(view for view in views if schedule_id in ("", view.schedule.id))

    def work(self, event: str = "succeed") -> list[Job]:
        """Work every job that is due to its end."""
        done = []
        while (job := self.jobs.claim(WORKER)) is not None:
            self.jobs.finish(job, event, JobFacts(error="it failed"))
            done.append(job)
        return done

    def all_jobs(self) -> list[Job]:
        return self.jobs.find("job-") if self.jobs.get("job-") is None else []

    def sentences(self, event: str) -> list[str]:
        return [sentence for _, what, sentence in self.told if what == event]


def outcomes(entries: list[Entry]) -> list[str]:
    """`2027-01-16 02:00 ran`, for each."""
    return [f"{utc(entry.due)} {entry.words}" for entry in entries]


@dataclass(frozen=True)
class Change:
    """One clock change of a zone: when, and the seconds from UTC before and after."""

    instant: int
    before: float
    after: float


@cache
def zone_names() -> tuple[str, ...]:
    return tuple(sorted(name for name in zoneinfo.available_timezones() if not zone_problem(name)))


@cache
def changes(name: str) -> tuple[float, tuple[Change, ...]]:
    """The seconds from UTC at the start of 2020, and every clock change until the end of 2035."""
    zone = zoneinfo.ZoneInfo(name)
    found, first, low = [], offset(zone, int(FIRST.timestamp())), int(FIRST.timestamp())
    was = first
    for high in range(low + 86_400, int(LAST.timestamp()) + 1, 86_400):
        if (now := offset(zone, high)) != was:
            found.append(Change(_bisect(zone, high - 86_400, high), was, now))
            was = now
    return first, tuple(found)


def offset(zone: zoneinfo.ZoneInfo, instant: int) -> float:
    return datetime.fromtimestamp(instant, zone).utcoffset().total_seconds()


def _bisect(zone: zoneinfo.ZoneInfo, low: int, high: int) -> int:
    was = offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(zone, middle) == was else (low, middle)
    return high


@cache
def behaviours() -> tuple[str, ...]:
    """One zone for each way in which clocks go from 2020 to 2035."""
    kinds: dict[Any, str] = {}
    for name in zone_names():
        kinds.setdefault(changes(name), name)
    return tuple(kinds.values())


def instant_of(day: date, clock: str, zone: zoneinfo.ZoneInfo) -> float:
    """When a time of a day is, by the standard library: of a gap the shifted instant, of two the first (PEP 495)."""
    hour, minute = map(int, clock.split(":"))
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=0).timestamp()


def days(start: date, number: int) -> Iterator[date]:
    return (start + timedelta(n) for n in range(number))


def around(change: Change) -> tuple[date, tuple[str, ...]]:
    """The day of a change, and times of day that lie in, at and around it."""
    local = [datetime.fromtimestamp(change.instant + moment, UTC) for moment in (change.before, change.after)]
    low, high = min(local), max(local)
    inside = low + (high - low) / 2
    moments = (low - timedelta(minutes=1), low, inside, high - timedelta(minutes=1), high)
    return low.date(), tuple(dict.fromkeys(moment.strftime("%H:%M") for moment in moments))
