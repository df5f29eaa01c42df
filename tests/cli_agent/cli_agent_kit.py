"""A project with a promoted environment, the commands run in this process, and records made by the real charts."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fdagent.cli.main import commands, run
from fdagent.fleet.presence import Presence, agent_key
from fdagent.ports import Absent, Store
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.local import LocalStore
from fdagent.stores.sightings import Sightings
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from fdagent.work.leases import Holder, TableLease
from models import codec
from models.agent import AgentRecord, AgentState, RunningJob
from models.job import Job, JobFacts, JobState
from models.status import RequestState, Status

TABLE = "silver.orders"
GONE = 2**22 + 1
"""No process has this id: it is beyond Linux' largest."""


@dataclass
class Said:
    """How a command ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Desk:
    """A person at a machine with one home and one project."""

    project: Path
    home: Path
    capsys: pytest.CaptureFixture[str]
    clock: SystemClock = field(default_factory=SystemClock)
    ids: SystemIds = field(default_factory=SystemIds)
    processes: SystemProcesses = field(default_factory=SystemProcesses)

    def __call__(self, *words: str) -> Said:
        """Give a command as the entry point does."""
        self.capsys.readouterr()
        code = run(commands(list(words)), list(words))
        said = Said(code, *self.capsys.readouterr())
        assert "Traceback" not in said.out + said.err
        return said

    @property
    def control(self) -> Path:
        return self.project / ".local" / "dev" / "_control"

    @property
    def store(self) -> Store:
        return LocalStore(self.control, clock=self.clock, ids=self.ids)

    def jobs(self) -> Jobs:
        return Jobs(Database(self.home), clock=self.clock, ids=self.ids)

    def job(self, name: str = "job1", **changed: Any) -> Job:
        """A queued job."""
        jobs = self.jobs()
        new = replace(Job(name, JobState.QUEUED, "op", "dev", run_key=name, dedupe_key=f"cli:{name}"), **changed)
        job = jobs.enqueue(new)
        jobs.database.close()
        assert isinstance(job, Job)
        return job

    def running(self, name: str = "job1", *, pid: int | None = None, **changed: Any) -> Job:
        """A job that a worker process of this machine runs; this process, where no pid is given."""
        self.job(name, **changed)
        pid = os.getpid() if pid is None else pid
        started = self.processes.started_at(os.getpid()) or 0.0
        jobs = self.jobs()
        job = jobs.claim(Worker("etl-01/1", self.processes.place(), pid, started))
        jobs.database.close()
        assert job is not None
        assert job.id == name
        return job

    def ended(self, event: str = "fail", name: str = "job1", *, facts: JobFacts | None = None, **changed: Any) -> Job:
        """A job that ended."""
        job = self.running(name, **changed)
        facts = facts or JobFacts(error="it broke", category="Code", retryable=event == "bury", reason="cancelled")
        jobs = self.jobs()
        answer, _ = jobs.finish(job, event, facts)
        jobs.database.close()
        assert isinstance(answer, Job), answer
        return answer

    def get(self, name: str = "job1") -> Job:
        jobs = self.jobs()
        job = jobs.get(name)
        jobs.database.close()
        assert job is not None
        return job

    def lease(self, table: str = TABLE, *, pid: int | None = None) -> TableLease:
        """A lease of a claim of this machine, held."""
        pid = os.getpid() if pid is None else pid
        started = self.processes.started_at(os.getpid()) or 0.0
        holder = Holder("etl-01", "i1", "host-1", self.processes.place(), pid, started, job_id="job1")
        lease = TableLease(
            self.store, table, 300.0, holder, Sightings(self.clock), self.clock, self.ids, self.processes
        )
        assert lease.acquire() is None
        return lease

    def op(self, table: str = TABLE) -> str:
        """The op that `lease list` shows of a table."""
        return next(one["op"] for one in self("lease", "list", "dev", "--json").json["leases"] if one["table"] == table)

    def agent(self, name: str = "etl-01", **changed: Any) -> Presence:
        """An agent that has announced itself."""
        about = AgentRecord(
            name=name,
            state=AgentState.RUNNING,
            instance=f"{name}-i1",
            host="host-1",
            version="0.1.0",
            status_seconds=30,
            env="dev",
            metadata_version="a" * 64,
            running=(RunningJob(job_id="job1"),),
            queue={"running": 1, "queued": 2},
        )
        about = replace(about, **changed)
        presence = Presence(
            self.store, "dev", name, f"{name}-i1", lambda: about, 90.0, self.clock, self.ids, self.processes, print
        )
        presence.tick()
        return presence

    def age(self, key: str, seconds: float) -> None:
        """Make a record look as if it had been written so long ago."""
        at = self.clock.wall() - seconds
        os.utime(self.control / key, (at, at))

    def age_agent(self, seconds: float, name: str = "etl-01") -> None:
        self.age(agent_key(name), seconds)

    def status(self, request: str, state: RequestState, agent: str = "etl-01") -> None:
        """The status of a request."""
        at = self.clock.wall()
        record = Status(id=request, env="dev", state=state, op="s1", agent=agent, accepted_at=at)
        self.store.write(f"status/{request}.json", codec.dump(record.to_json()), Absent())

    def file(self, key: str, text: str) -> None:
        """Any file among the records."""
        (self.control / key).parent.mkdir(parents=True, exist_ok=True)
        (self.control / key).write_text(text, encoding="utf-8")
