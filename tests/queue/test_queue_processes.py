"""Several processes on one queue file."""

import subprocess
import sys
from pathlib import Path

import pytest
from fakes import FakeIds

from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from fdagent.stores.sightings import Sightings
from fdagent.system import SystemClock, SystemProcesses
from models.job import Job, JobState

pytestmark = pytest.mark.process
SCRIPT = str(Path(__file__).with_name("queue_process.py"))


def start(home: Path, label: str, what: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, SCRIPT, str(home), label, str(home.parent / f"{label}.log"), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_four_processes_hammering_one_queue_run_each_job_once_and_meet_no_error(tmp_path):
    home = tmp_path / "home"
    running = [start(home, f"p{number}", "hammer") for number in range(4)]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
    ran = [line for log in tmp_path.glob("*.log") for line in log.read_text().split()]
    assert sorted(ran) == sorted(f"p{number}-{job}" for number in range(4) for job in range(50))
    jobs = Jobs(Database(home), clock=SystemClock(), ids=FakeIds())
    assert jobs.counts() == {"succeeded": 200}
    assert [batch.rows for batch in jobs.closed_batches()] == [200]


def test_a_killed_process_leaves_a_job_that_the_next_takes_at_once(tmp_path):
    home = tmp_path / "home"
    jobs = Jobs(Database(home), clock=SystemClock(), ids=FakeIds())
    jobs.enqueue(Job("j", JobState.QUEUED, "op", "dev", run_key="j", dedupe_key="j"))
    for attempt in (1, 2, 3):
        victim = start(home, "victim", "claim")
        assert victim.stdout is not None
        assert victim.stdout.readline() == "j\n"
        sightings = Sightings(SystemClock())
        assert jobs.recover(sightings, SystemProcesses()) == [], "its process lives"
        victim.kill()
        victim.communicate(timeout=30)
        (found,) = jobs.recover(sightings, SystemProcesses())
        assert (found.attempt, found.state) == (attempt, JobState.QUEUED if attempt < 3 else JobState.DEAD)
