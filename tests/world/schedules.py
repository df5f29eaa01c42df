"""Agents' own schedules: P11 for them. Whatever clocks, suspends, crashes and people do, a due time is settled by its
agent's own clock, never early, never twice, never left out.

Each machine has a daemon that schedules, takes back jobs and sleeps, and a worker; its clock is a whole interval ahead or
behind. There is no `dues.json` here: a lost queue file is for the tests on a real disk.
"""

import hashlib
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fdagent.config.incidents import Alerts, Incidents
from fdagent.config.schedules import Pipeline, Schedule
from fdagent.config.settings import Agent, Identity, OneLake, Retry, Settings
from fdagent.fleet.schedules import Schedules, times_of
from fdagent.fleet.scheduling import Scheduling
from fdagent.queue.cell import from_row
from fdagent.queue.db import Database
from fdagent.queue.dues import FOREVER, Dues, Entry
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.sightings import Sightings
from models.job import JobFacts

from .drive import Walk
from .freeze import Port
from .process import Me, Program, Violation
from .scope import BASE, Machine, Monitor, Scope
from .state import State

TABLES = ("job", "run_row", "schedule", "due")
INTERVAL = 60.0
SCHEDULES = (
    Schedule(id="minute", env="dev", every_minutes=1.0),
    Schedule(id="odd", env="dev", every_minutes=2.5),
    Schedule(id="daily", env="dev", daily=("08:20", "08:50", "09:30"), time_zone="UTC"),
)
SETTINGS = Settings(
    file=Path("agent.toml"),
    agent=Agent(name="a", project=Path(), environments=("dev",), stale_seconds=90),
    identity=Identity(),
    retry=Retry(),
    schedules=SCHEDULES,
    pipeline=Pipeline(),
    incidents=Incidents(),
    routes=(),
    alerts=Alerts(),
    onelake=OneLake(),
)
TICK = 10.0
SUSPEND = 400.0
TURNS = 100_000
HORIZON = 30 * 86_400.0
FAULTS_A_STEP = 0.01
JUMPS = (-20 * INTERVAL, -3 * INTERVAL, -7.5, 7.5, INTERVAL, 20 * INTERVAL)


class Ledger(Port):
    """One machine's queue for a whole run, as one process of it opens it: each transaction, and each read outside one, is
    a call, at which any other process may go first."""

    row_factory: Any = None

    def __init__(self, ask: Any, shared: "Shared") -> None:
        self._ask, self._shared = ask, shared

    @property
    def in_transaction(self) -> bool:
        return self._shared.connection.in_transaction

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        word, inner = sql.split(None, 1)[0].lower(), self._shared.connection
        if sql == "pragma data_version":
            return inner.execute("select ?", (self._shared.commits,))
        if not self.in_transaction and word != "pragma":
            self._ask(("transaction",) if word == "begin" else ("query",))
        inner.row_factory = self.row_factory
        cursor = inner.execute(sql, values)
        if word == "commit":
            self._shared.commits += 1
            inner.row_factory = None
            self._ask(("stored", tuple(tuple(inner.execute(f"select * from {name} order by 1, 2")) for name in TABLES)))
        return cursor

    def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
        return self._shared.connection.executemany(sql, values)


class Shared:
    """What the processes of one machine share: its queue's content."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.commits = 0
        Database.over(self.connection)


class ShortIds(Port):
    """Ids whose beginnings differ: a job is named by twelve characters of one."""

    def __init__(self, ids: Any) -> None:
        self._ids = ids

    def new(self) -> str:
        return hashlib.sha256(self._ids.new().encode()).hexdigest()[:32]

    def fraction(self) -> float:
        return self._ids.fraction()


class Site:
    """One machine: its daemon, its worker, and a person."""

    def __init__(self) -> None:
        self._shared = Shared()

    def _jobs(self, me: Me) -> Jobs:
        database = Database.over(Ledger(me.ask, self._shared))  # type: ignore[arg-type]
        return Jobs(database, clock=me.clock, ids=ShortIds(me.ids))

    def schedule(self, me: Me) -> None:
        """The daemon: settles what is due, takes back what nobody runs any more, sleeps."""
        jobs, sightings = self._jobs(me), Sightings(me.clock)
        duty = Scheduling(
            Schedules(SETTINGS, Dues(jobs, None), jobs.ids), lambda: ("dev",), me.clock, lambda *_, **__: None
        )
        for _ in range(TURNS):
            began = me.clock.wall()
            duty.tick()
            marks = {one.id: one.mark for one in duty.schedules.dues.standings().values()}
            me.tell("settled", began, marks)
            for job in jobs.recover(sightings, me.processes):
                me.saw(f"recovered as {job.state}")
            me.clock.sleep(TICK)

    def work(self, me: Me) -> None:
        """The worker: claims a job and ends it, or waits for one."""
        jobs, pid = self._jobs(me), me.processes.pid()
        for turn in range(TURNS):
            job = jobs.claim(Worker(me.name, me.processes.place(), pid, float(pid)))
            me.clock.sleep(TICK if job is None else 7.0 * (turn % 13))
            if job is not None:
                facts = JobFacts(retryable=True, wait_seconds=20.0)
                jobs.finish(job, "succeed" if job.attempt > 1 or turn % 3 else "retry", facts)

    def wish(self, me: Me) -> None:
        """A person, who pauses one schedule for a while, and another until it is resumed."""
        jobs = self._jobs(me)
        schedules = Schedules(SETTINGS, Dues(jobs, None), jobs.ids)
        for _ in range(TURNS):
            me.clock.sleep(600.0)
            schedules.pause("minute", me.clock.wall() + 300.0)
            me.clock.sleep(700.0)
            schedules.pause("odd", FOREVER)
            me.clock.sleep(300.0)
            schedules.resume("odd", me.clock.wall())
            me.saw("resumed")


class Settled(Monitor):
    """P11 for own schedules."""

    def check(self, state: State) -> None:
        for name, machine in state.machines.items():
            wall = BASE + machine.wall + state.now * machine.rate
            latest = state.ghost["latest", name] = max(wall, state.ghost.get(("latest", name), wall))
            if state.ghost.get(("rows", name)) is machine.rows or len(machine.rows) < len(TABLES):
                continue
            state.ghost["rows", name] = machine.rows
            had = state.ghost.get(("had", name), frozenset())
            for entry in (Entry(*row) for row in machine.rows[3]):
                if (entry.schedule, entry.due) not in had and entry.due > latest:
                    raise Violation(f"{entry.schedule} on {name} was settled early: due {entry.due}, at {wall}")
                self._saw(state, entry)
            runs = {job.run_key: job.id for job in map(from_row, machine.rows[0])}
            if len(runs) != len(machine.rows[0]):
                raise Violation(f"a due time on {name} has two jobs")
            state.ghost["had", name] = had | {(row[0], row[1]) for row in machine.rows[3]}
            if len(state.ghost["had", name]) != len(machine.rows[3]):
                raise Violation(f"an outcome on {name} was lost")

    def _saw(self, state: State, entry: Entry) -> None:
        state.world.seen.add(entry.outcome)
        if entry.missed:
            state.world.seen.add("missed")
        if entry.until < entry.due:
            state.world.seen.add("not missed after all")

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        began, marks = about
        state.ghost.pop(("latest", state.world.programs[name].machine), None)
        for one in SCHEDULES:
            if (due := times_of(one).next_after(marks[one.id])) <= began:
                raise Violation(f"{one.id} was due at {due}, and {name} left it out at {began}")

    def rest(self, state: State) -> None:
        """Each due time between the first and the last has one outcome."""
        for name, machine in state.machines.items():
            for one in SCHEDULES:
                entries = [Entry(*row) for row in machine.rows[3] if row[0] == one.id]
                own = {entry.due for entry in entries}
                if not own:
                    continue
                for due in _between(one, min(entry.since for entry in entries), max(own)):
                    covers = [entry for entry in entries if entry.since < due <= entry.until and due not in own]
                    later = max(own) > due > next(row[2] for row in machine.rows[2] if row[0] == one.id)
                    if len(covers) + (due in own) != 1 and not (later and not covers):
                        raise Violation(f"{one.id} on {name}: {due} has {len(covers)} outcomes beside its own")
                if sum(entry.missed for entry in entries) != sum(
                    any(e.since < due <= e.until for e in entries) and due not in own
                    for due in _between(one, min(e.since for e in entries), max(own))
                ):
                    raise Violation(f"{one.id} on {name}: the missed ones are counted wrong")


def _between(one: Schedule, after: float, until: float) -> list[float]:
    found, due = [], times_of(one).next_after(after)
    while due <= until:
        found.append(due)
        due = times_of(one).next_after(due)
    return found


def scope() -> Scope:
    """Two machines, an interval ahead and an interval behind."""
    machines = {"m1": Machine(wall=INTERVAL, place="m1"), "m2": Machine(wall=-INTERVAL, place="m2")}
    programs = []
    for number, machine in enumerate(machines, start=1):
        site = Site()
        for letter, duty in (("d", site.schedule), ("w", site.work), ("p", site.wish)):
            programs.append(Program(f"{letter}{number}", (duty,), machine=machine, agent=f"a{number}"))
    return Scope(
        "schedules",
        tuple(programs),
        (Settled(),),
        faults=frozenset({"crash", "jump", "off", "pause"}),
        budget=1_000_000,
        boots=1_000_000,
        tick=TICK,
        until=HORIZON,
        lockstep=True,
        machines=machines,
        pause=SUSPEND,
        real_time=True,
    )


def run(seed: int, steps: int = 4000) -> set[str]:
    """One long run by a seed: mostly what goes well, now and then a fault; what was seen.

    Raises:
        Violation: A property does not hold; `run` with the same seed shows it again.
    """
    chance = random.Random(seed)
    with Walk(scope()) as walk:
        try:
            for _ in range(steps):
                _step(walk, chance)
            walk.rest()
        except Violation as err:
            raise Violation(
                f"{str(err).splitlines()[0]} (world.schedules.run({seed}), {walk.state.now:.0f} s)"
            ) from err
        return set(walk.world.seen)


def _step(walk: Walk, chance: random.Random) -> None:
    choices = walk.state.choices()
    faults = [choice for choice in choices if "!" in choice]
    if faults and chance.random() < FAULTS_A_STEP:
        # Each jump of a clock is another.
        walk.world.scope = replace(walk.world.scope, jump=chance.choice(JUMPS))
        walk.take(chance.choice(faults))
    else:
        walk.take(chance.choice([choice for choice in choices if "!" not in choice]))
