"""The agent as it runs: jobs through a real worker, from `enqueue` to running, and what an idle daemon costs.

The daemon and its workers are processes of their own (`fdagent run`), over a project of one table whose source has nothing
new after the first job. Times are those that the queue itself keeps (created, started, finished), so that looking does
not take part in them.
"""

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil

from fdagent.fleet.release import open_control, promote
from fdagent.project.load import load_project
from fdagent.project.places import Places
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from fdagent.system import SystemClock, SystemIds
from models.job import FINAL, Job, JobState
from tests.bench import measure
from tests.bench.measure import BenchError, Bound, line

T = TypeVar("T")

COLD_RUNS = 9
JOBS = 200
WARM_JOBS = 40
IDLE_SECONDS = 20.0
SETTLE_SECONDS = 2.0
LONGEST_SECONDS = 120.0
CORE = 100.0
FILES = {
    "layers.toml": 'format = 1\n[bronze]\nrank = 1\nlakehouse = "LH_Bronze"\n',
    "environments.toml": 'format = 1\n[dev]\ntarget = "local"\nvars = { landing = "landing" }\n',
    "entities/bronze/orders.toml": '[source]\nfiles = "{landing}/*.csv"\n[load]\nmode = "append"\n',
    "landing/orders.csv": "order_id,amount\n1,2.50\n",
}


def run() -> list[dict[str, Any]]:
    """All lines of the daemon."""
    return [_throughput(), *_starts(), *_idle()]


def _throughput() -> dict[str, Any]:
    found = [_jobs_a_second() for _ in range(measure.LEAST_RUNS)]
    note = (
        "daemon: a job of one table with nothing new, each through claim, project, lease (two synced records), the table's "
        "log and DuckDB, the run log's row and the durable end; queued before the clock starts"
    )
    return line("daemon: jobs with nothing new, one warm worker", "jobs/s", found, note=note)


def _jobs_a_second() -> float:
    with _agent() as agent:
        agent.ended(agent.ask())
        last = [agent.ask() for _ in range(JOBS)]
        jobs = [agent.ended(name) for name in last]
        began = min(job.started_at or 0.0 for job in jobs)
        return JOBS / (max(job.finished_at or 0.0 for job in jobs) - began)


def _starts() -> list[dict[str, Any]]:
    cold, warm = [], []
    for _ in range(COLD_RUNS):
        with _agent() as agent:
            time.sleep(SETTLE_SECONDS)
            cold.append(_waited(agent.ended(agent.ask())))
    for _ in range(measure.LEAST_RUNS):
        with _agent() as agent:
            agent.ended(agent.ask())
            waits = []
            for _ in range(WARM_JOBS):
                time.sleep(0.1)
                waits.append(_waited(agent.ended(agent.ask())))
            warm.append(statistics.median(waits))
    return [
        line(
            "daemon: enqueue to running, daemon idle, worker cold, p50",
            "s",
            cold,
            bound=Bound("<=", 0.5, "ours"),
            note=f"cold: the longest of {COLD_RUNS} was {max(cold):.2f} s; a worker is a Python of its own",
        ),
        line(
            "daemon: enqueue to running, worker warm, p50",
            "s",
            warm,
            bound=Bound("<=", 0.2, "ours"),
            note=f"warm: medians of {WARM_JOBS} jobs each",
        ),
    ]


def _waited(job: Job) -> float:
    return (job.started_at or 0.0) - job.created_at


def _idle() -> list[dict[str, Any]]:
    shares, memory, alone = [], [], []
    for _ in range(measure.LEAST_RUNS):
        with _agent() as agent:
            time.sleep(SETTLE_SECONDS)
            before, began = agent.cpu_seconds(), time.perf_counter()
            time.sleep(IDLE_SECONDS)
            shares.append(CORE * (agent.cpu_seconds() - before) / (time.perf_counter() - began))
            held = psutil.Process(agent.daemon.pid).memory_full_info()
            memory.append(held.rss / 1e6)
            alone.append(held.uss / 1e6)
    note = f"memory: resident, {statistics.median(alone):.0f} MB of it its own and not shared with other processes"
    return [
        line("daemon: idle, share of a core", "%", shares, bound=Bound("<=", 0.5, "ours")),
        line("daemon: idle, memory", "MB", memory, bound=Bound("<=", 40.0, "ours"), note=note),
    ]


class Agent:
    """A running daemon over a project in a scratch folder."""

    def __init__(self, root: Path) -> None:
        self.jobs = Jobs(Database(root / ".local" / "agent"), clock=SystemClock(), ids=SystemIds())
        words = [sys.executable, "-P", "-m", "fdagent", "run", "--project", str(root)]
        out = root / "out"
        with out.open("w") as file:
            self.daemon = subprocess.Popen(words, stdout=file)
        _until(lambda: '"started"' in out.read_text(encoding="utf-8") or None)

    def ask(self) -> str:
        """Put a job into the queue; its id."""
        name = self.jobs.ids.new()
        self.jobs.enqueue(Job(name, JobState.QUEUED, self.jobs.ids.new(), "dev", run_key=name, dedupe_key=name))
        return name

    def ended(self, name: str) -> Job:
        """A job, as soon as it is final."""

        def final() -> Job | None:
            job = self.jobs.get(name)
            return job if job is not None and job.state in FINAL else None

        job = _until(final)
        if job.state is not JobState.SUCCEEDED:
            raise BenchError(f"A job did not succeed: {job.error}")
        return job

    def cpu_seconds(self) -> float:
        """What the daemon has used of the processors so far, in all its threads; on Linux to the nanosecond."""
        tasks = Path(f"/proc/{self.daemon.pid}/task")
        if tasks.is_dir():
            return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
        times = psutil.Process(self.daemon.pid).cpu_times()
        return float(times.user + times.system)

    def close(self) -> None:
        """Stop it."""
        self.daemon.terminate()
        self.daemon.wait(LONGEST_SECONDS)
        self.jobs.database.close()


@contextlib.contextmanager
def _agent() -> Iterator[Agent]:
    with measure.scratch() as folder:
        root = folder / "project"
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        _promote(root)
        with contextlib.closing(Agent(root)) as agent:
            yield agent


def _promote(root: Path) -> None:
    clock, ids = SystemClock(), SystemIds()
    project = load_project(root)
    store = open_control(Places(project, project.environments["dev"]), clock=clock, ids=ids)
    promote(store, project.metadata_version, shown="", git_commit="", by="bench", clock=clock, ids=ids)


def _until(answer: Callable[[], T | None]) -> T:
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        found = answer()
        if found is not None:
            return found
        time.sleep(0.005)
    raise BenchError(f"Nothing happened for {LONGEST_SECONDS:.0f} s.")
