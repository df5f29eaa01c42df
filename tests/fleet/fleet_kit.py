"""Several agents in one process, each with its own clock and queue, over one control root in memory that can fail.

The modules that run are the production ones: Presence, Mailbox, Posting, Jobs, Serving, RequestHold and the end of an
attempt (`Work._finish`). What stands in: the ports (`fleet_ports.py`), the processes, and a worker moved by hand.
"""

import functools
import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from fakes import FakeProcesses
from fleet_ports import BASE, Clock, Ids, Queue, Time, View, read_status, reader

from fdagent.config.schedules import Pipeline, Schedule
from fdagent.fleet.look import Me
from fdagent.fleet.mailbox import Mailbox, Patience, job_key
from fdagent.fleet.presence import Presence, Standing
from fdagent.fleet.records import cancel_key, dump, request_key, status_key
from fdagent.fleet.serving import Serving
from fdagent.fleet.slots import Posting
from fdagent.ports import Absent, Match
from fdagent.project.load import load_project
from fdagent.project.scaffold import write_scaffold
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.memory import MemoryStore
from fdagent.work.requesthold import RequestHold
from fdagent.work.runner import Agent as Runs
from fdagent.work.runner import End
from fdagent.work.worker import Retry, Work
from models.agent import AgentRecord, AgentState
from models.agent import Pipeline as Told
from models.liveness import default_span_seconds, grace_for
from models.slot import DAY, Request
from models.status import Status

BEAT, POLL = 30.0, 10.0
STALE = default_span_seconds(BEAT)
LOST = STALE + grace_for(STALE)
ALL = Pipeline(enabled=True, environments=("dev",), take_over=True, claim="when_free")
TABLES = ("bronze.orders", "silver.orders")


@functools.cache
def project():
    with tempfile.TemporaryDirectory() as folder:
        write_scaffold(Path(folder))
        return load_project(Path(folder))


class Fleet:
    """A world: one control root, and the agents that serve it."""

    def __init__(self, random=None) -> None:
        self.time = Time()
        self.true = Clock(self.time)
        self.store = MemoryStore(self.true)
        self.ids = Ids(itertools.count(1), random)
        self.agents: dict[str, Agent] = {}

    def agent(self, name: str, pipeline: Pipeline = ALL, **more) -> "Agent":
        agent = Agent(name, self, pipeline, **more)
        self.agents[name] = agent
        return agent

    def post(self, name: str, *, body: bytes | None = None, **fields) -> None:
        raw = dump(Request(**({"deadline": self.time.now + 3600} | fields))) if body is None else body
        self.store.write(request_key(name), raw, Absent())

    def put(self, key: str, body: bytes) -> None:
        """Write whatever is there."""
        there = self.store.read(key)
        self.store.write(key, body, Absent() if there is None else Match(there.etag))

    def remove(self, key: str) -> None:
        self.store.delete(key, Match(self.store.read(key).etag))

    def wish(self, name: str) -> None:
        self.put(cancel_key(name), b"")

    def status(self, name: str):
        blob = self.store.read(status_key(name))
        return read_status(None if blob is None else blob.body)

    def state(self, name: str) -> str:
        status = self.status(name)
        return "absent" if status is None else str(status.state)

    def go(self, seconds: float, *agents: "Agent", step: float = POLL) -> None:
        """Time goes on; these agents beat and poll."""
        until = self.time.now + seconds
        while self.time.now < until:
            self.time.now = min(self.time.now + step, until)
            for agent in agents or tuple(self.agents.values()):
                agent.tick()


class Agent:
    """One agent. `restart` starts it anew over the queue it had; `wiped` over an empty one."""

    def __init__(
        self, name, fleet, pipeline, *, off=0.0, concurrency=1, max_attempts=3, env="dev", schedules=(), keep_days=14
    ):
        self.name, self.fleet, self.pipeline, self.env = name, fleet, pipeline, env
        self.keep_days = keep_days
        self.concurrency, self.max_attempts, self.schedules = concurrency, max_attempts, list(schedules)
        self.clock = Clock(fleet.time, off)
        self.view = View(fleet.store, self.clock, fleet.true)
        self.project, self.promoted = project(), project().metadata_version
        self.boots = 0
        self._serving: Serving | None = None
        self._counted: tuple | None = None
        self.log: list[tuple] = []
        self.audit: list = []
        self.database = Queue.empty()
        self.start()

    def start(self) -> None:
        fleet = self.fleet
        self.boots += 1
        self.instance = f"{self.name}-{self.boots}"
        self.stopping = False
        self.beat_at = float("-inf")
        self.jobs = Jobs(self.database, clock=self.clock, ids=fleet.ids, audit=self.audit.append)
        # The place differs at each start: another boot, so that nothing is concluded from processes.
        processes = FakeProcesses(here=f"{self.name}/{self.boots}")
        self.presence = Presence(
            self.view,
            self.env,
            self.name,
            self.instance,
            self.record,
            STALE,
            self.clock,
            fleet.ids,
            processes,
            self.say,
        )
        self.who = Worker(f"{self.name}/1", processes.place(), 100, 1.0)
        patience = Patience(POLL, self.max_attempts, self.keep_days * DAY)
        self.mailbox = Mailbox(
            self.env,
            self.view,
            Me(self.name, self.instance, f"host-{self.name}"),
            self.serving,
            lambda: self.presence.standing is Standing.PRESENT,
            self.free,
            lambda: self.stopping,
            self.jobs,
            patience,
            self.clock,
            fleet.ids,
            lambda *told, **about: self.log.append((*told, about)),
            lambda: None,
            self.audit.append,
        )
        seen = self.mailbox.look
        for folder, parse in (
            (seen._requests, reader(Request)),
            (seen._statuses, reader(Status)),
            (seen._agents, reader(AgentRecord)),
        ):
            folder.parse = parse
        self.posting = Posting(
            self.env,
            self.view,
            lambda: self.schedules,
            lambda slot: self.mailbox.tick(),
            self.clock,
            fleet.ids,
            lambda *told, **about: self.log.append((*told, about)),
            self.audit.append,
        )
        self.work = Work(
            self.jobs,
            Runs(self.name, self.instance, f"host-{self.name}", Path()),
            self.who,
            SimpleNamespace(stopping=lambda: self.stopping, orphaned=lambda: False),
            self.clock,
            fleet.ids,
            processes,
            lambda: self.database,
            Retry(),
        )

    def restart(self) -> None:
        """A new start, after the old one's workers ended with it."""
        self.start()
        for job in self.jobs.running():
            self.jobs.recover(_Lapsed(), FakeProcesses())
            assert self.jobs.get(job.id).state != "running"

    def wiped(self) -> None:
        self.database = Queue.empty()
        self.start()

    def say(self, sentence: str) -> None:
        self.log.append(("presence", sentence))

    def record(self) -> AgentRecord:
        told = self.pipeline
        return AgentRecord(
            name=self.name,
            state=AgentState.RUNNING,
            instance=self.instance,
            host=f"host-{self.name}",
            boot=f"{self.name}/{self.boots}",
            pid=1,
            grace_seconds=grace_for(STALE),
            status_seconds=BEAT,
            env=self.env,
            metadata_version=self.promoted,
            pipeline=Told(
                enabled=told.enabled and self.env in told.environments,
                claim=told.claim,
                take_over=told.take_over,
                entities=told.entities or ("*",),
                allow_backfill=told.allow_backfill,
            ),
        )

    def serving(self) -> Serving:
        """The same object while nothing of it changes, so that what it has resolved is kept."""
        now = Serving(self.env, self.pipeline, self.project, self.promoted)
        if now != self._serving:
            self._serving = now
        return self._serving

    def free(self) -> int:
        seen = self.database, self.database.changes
        if seen != self._counted:
            self._counted = seen
            self._run, self._wait = len(self.jobs.running()), self.jobs.next_due() is not None
        return self.concurrency - self._run - (self.jobs.due([self.env], self.concurrency + 1) if self._wait else 0)

    def beat(self) -> None:
        self.beat_at = self.clock.elapsed()
        self.presence.tick()

    def tick(self) -> None:
        """A beat when it is due, and a poll."""
        if self.clock.elapsed() - self.beat_at >= BEAT:
            self.beat()
        self.mailbox.tick()

    def job(self, request_id: str):
        return self.jobs.of_key(job_key(self.env, request_id))

    def begin(self, request_id: str, *, start: bool = True) -> "Attempt":
        """A worker claims the request's job and starts its attempt."""
        job = self.jobs.claim(self.who)
        assert job is not None, "nothing is due"
        assert job.run_key == request_id
        attempt = Attempt(self, job)
        if start:
            attempt.hold.start(job.id, job.attempt)
        return attempt

    def do(self, request_id: str) -> None:
        """Run it whole."""
        attempt = self.begin(request_id)
        attempt.table("bronze.orders")
        attempt.end()

    def events(self) -> list[str]:
        return [moved.event for moved in self.audit if moved.chart == "request"]


class _Lapsed:
    def seen(self, key, version) -> None: ...

    def unchanged_for(self, key, version) -> float:
        return 1e9


@dataclass
class Attempt:
    """One attempt of one job, moved by hand."""

    agent: Agent
    job: object
    tables: dict = field(default_factory=dict)
    hold: RequestHold = field(init=False)

    def __post_init__(self) -> None:
        agent = self.agent
        self.tables = dict(self.job.tables)
        self.hold = RequestHold(
            agent.view,
            agent.env,
            self.job.source.partition(":")[2],
            agent.name,
            agent.instance,
            agent.clock,
            agent.fleet.ids,
            agent.say,
            agent.audit.append,
        )

    def table(self, name: str, state: str = "succeeded", rows: int = 5, **more) -> None:
        """A table has ended, and is reported."""
        self.tables[name] = {"state": state, "run_id": self.agent.fleet.ids.new()[:12], "rows": rows, **more}
        self.agent.jobs.progress(self.job, self.tables, "{}")
        self.hold.report(self.tables)

    def end(self, error: str = "", *, retryable: bool = False, unspent: bool = False):
        """The production end of an attempt; the job as it is then."""
        category = "network" if error else ""
        self.agent.work._finish(self.job, End(self.tables, (), error, category, retryable, unspent), self.hold)
        return self.agent.jobs.get(self.job.id)

    def handed_over(self):
        self.agent.work._handed_over(self.job)
        return self.agent.jobs.get(self.job.id)


def hourly(name: str = "hourly", minutes: float = 60) -> Schedule:
    return Schedule(id=name, env="dev", entities=TABLES[:1], every_minutes=minutes, shared=True)


__all__ = [
    "ALL",
    "BASE",
    "BEAT",
    "LOST",
    "POLL",
    "STALE",
    "TABLES",
    "Agent",
    "Attempt",
    "Fleet",
    "hourly",
]
