"""A real daemon runs its schedules, is killed, paused by a command, and goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from fdagent.project.scaffold import write_scaffold
from fdagent.queue.db import Database
from fdagent.queue.dues import Dues, Entry, Outcome
from fdagent.queue.jobs import Jobs
from fdagent.system import SystemClock, SystemIds
from models.job import Job, JobState

LONGEST_SECONDS = 60.0
AGENT = """
[agent]
name = "etl-01"
project = "."
environments = ["dev"]
home = "home"
status_seconds = 1

[[schedule]]
id = "quick"
env = "dev"
entities = ["bronze.*"]
every_minutes = 0.05
"""


class Daemon:
    """`fdagent run` over a project of its own."""

    def __init__(self, folder: Path) -> None:
        write_scaffold(folder)
        (folder / "agent.toml").write_text(AGENT)
        self.folder, self.home = folder, folder / "home"
        self.process: subprocess.Popen[bytes] | None = None
        self("promote", "dev", "--yes")

    def __call__(self, *words: str) -> str:
        command = [sys.executable, "-P", "-m", "fdagent", *words, "--config", str(self.folder / "agent.toml")]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=self.environment)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    @property
    def environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("FABRIC_DESKTOP")}

    def start(self) -> None:
        command = [sys.executable, "-P", "-m", "fdagent", "run", "--config", str(self.folder / "agent.toml")]
        with (self.folder / "out.log").open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=self.environment)

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(LONGEST_SECONDS)

    def entries(self) -> list[Entry]:
        with closing(Database(self.home)) as database:
            return Dues(Jobs(database, clock=SystemClock(), ids=SystemIds()), None).entries("quick")

    def jobs(self) -> list[Job]:
        with closing(Database(self.home)) as database:
            jobs = Jobs(database, clock=SystemClock(), ids=SystemIds())
            return [*jobs.finished(100), *jobs.unfinished()]

    def until(self, holds: Callable[[list[Entry]], bool]) -> list[Entry]:
        end = time.monotonic() + LONGEST_SECONDS
        while not holds(found := self.entries()):
            assert time.monotonic() < end, (self.folder / "out.log").read_text()
            assert self.process.poll() is None, (self.folder / "out.log").read_text()
            time.sleep(0.05)
        return found


@pytest.fixture
def daemon(tmp_path):
    made = Daemon(tmp_path / "p")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait(LONGEST_SECONDS)


@pytest.mark.process
@pytest.mark.long
def test_a_daemon_runs_its_schedule_through_a_kill_and_a_pause(daemon):
    daemon.start()
    first = daemon.until(lambda entries: len(entries) >= 2)
    assert {entry.due % 3 for entry in first} == {0.0}
    daemon.end(signal.SIGKILL)
    daemon.start()
    daemon.until(lambda entries: len(entries) >= len(first) + 1)
    daemon("schedule", "pause", "quick")
    paused = daemon.until(lambda entries: entries[-1].outcome is Outcome.PAUSED)
    (shown,) = json.loads(daemon("schedule", "list", "--json"))["schedules"]
    assert shown["note"] == "paused until resumed"
    daemon("schedule", "resume", "quick")
    daemon.until(lambda entries: entries[-1].due > paused[-1].due and entries[-1].outcome is Outcome.RAN)
    daemon.end(signal.SIGTERM)
    check(daemon)


def check(daemon: Daemon) -> None:
    """One entry and at most one job for each due time, none early; the record and the file say the same."""
    entries, jobs = daemon.entries(), daemon.jobs()
    assert all(entry.noted_at >= entry.due for entry in entries)
    assert all(later.since == entry.due for entry, later in pairwise(entries))
    ran = {entry.job_id for entry in entries if entry.outcome is Outcome.RAN}
    assert ran == {job.id for job in jobs}
    assert len({job.run_key for job in jobs}) == len(jobs)
    assert JobState.SUCCEEDED in {job.state for job in jobs}
    assert {job.state for job in jobs} <= {JobState.SUCCEEDED, JobState.QUEUED}
    saved = json.loads((daemon.home / "dues.json").read_text())["schedules"]["quick"]
    assert saved["mark"] == entries[-1].due
    record = json.loads((daemon.folder / ".local/dev/_control/agents/etl-01.json").read_text())
    assert record["state"] == "stopped"
    assert [one["id"] for one in record["schedules"]] == ["quick"]
