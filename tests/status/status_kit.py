"""A home whose queue holds what a test puts there by the charts, and the status page as a terminal of some width shows it."""

import io
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, Group

from fdagent.cli import live
from fdagent.cli.main import commands, run
from fdagent.cli.snapshot import Sight, Snapshot
from fdagent.cli.where import where
from fdagent.daemon.logs import Log
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from models.job import Job, JobFacts, JobState

TABLES = {
    "bronze.orders": {"state": "succeeded", "rows": 5},
    "silver.orders": {"state": "running", "rows": 1_204_000},
    "silver.late": {"state": "failed", "rows": 0, "error": "It broke."},
    "gold.revenue_by_customer": {"state": "waiting", "rows": 0},
}


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Home:
    """A person before one home."""

    project: Path
    path: Path
    capsys: pytest.CaptureFixture[str]
    clock: SystemClock = field(default_factory=SystemClock)
    ids: SystemIds = field(default_factory=SystemIds)
    processes: SystemProcesses = field(default_factory=SystemProcesses)

    def __call__(self, *words: str, code: int = 0) -> Said:
        """Give a command as the entry point does."""
        self.capsys.readouterr()
        found = run(commands(list(words)), list(words))
        said = Said(found, *self.capsys.readouterr())
        assert found == code, said.out + said.err
        return said

    def jobs(self) -> Jobs:
        return Jobs(Database(self.path), clock=self.clock, ids=self.ids)

    def queued(self, name: str, **changed: Any) -> Job:
        jobs = self.jobs()
        new = replace(Job(name, JobState.QUEUED, "op", "dev", run_key=name, dedupe_key=name), **changed)
        answer = jobs.enqueue(new)
        jobs.database.close()
        assert isinstance(answer, Job)
        return answer

    def running(self, name: str, *, pid: int | None = None, tables: Any = TABLES, **changed: Any) -> Job:
        """A job that this process runs, or one that is gone."""
        self.queued(name, **changed)
        started = self.processes.started_at(os.getpid()) or 0.0
        jobs = self.jobs()
        job = jobs.claim(Worker("etl-01/1", self.processes.place(), pid or os.getpid(), started))
        assert job is not None
        assert job.id == name
        jobs.renew(job, lapsed=False, tables=tables)
        jobs.database.close()
        return job

    def ended(self, name: str, event: str = "succeed", *, error: str = "", rows: Any = (), **changed: Any) -> Job:
        job = self.running(name, tables={}, **changed)
        jobs = self.jobs()
        answer, _ = jobs.finish(job, event, JobFacts(error=error, reason="cancelled"), rows=rows)
        jobs.database.close()
        assert isinstance(answer, Job), answer
        return answer

    def told(self, level: str, event: str, message: str, clock: Any = None) -> None:
        """A line in the agent's log."""
        log = Log(self.path / "logs", None, {}, clock or self.clock)
        log.tell(level, event, message)
        log.close()

    def agent_toml(self, text: str) -> str:
        """An agent.toml of this home with more in it; its path."""
        file = self.project.parent / "agent.toml"
        file.write_text(f'[agent]\nname = "etl-01"\nproject = "{self.project}"\nenvironments = ["dev"]\n{text}')
        return str(file)

    def sight(self, config: str = "") -> Sight:
        return Sight(where(None, Path(config) if config else None), self.clock, 20)

    def look(self, config: str = "") -> Snapshot:
        sight = self.sight(config)
        shot = sight.look()
        sight.close()
        return shot

    def lines(self, width: int, height: int | None = None, config: str = "") -> list[str]:
        """The page as a terminal of that size shows it, or as it is printed once."""
        return drawn(live.page(self.look(config), live.Frame(width, height)), width)


def drawn(page: Any, width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, highlight=False)
    out.print(Group(*page))
    return out.file.getvalue().splitlines()


class Later(SystemClock):
    """This machine's clock, set back or forward."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def wall(self) -> float:
        return super().wall() + self.seconds


class Tty(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        return True
