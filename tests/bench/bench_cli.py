"""The command line's cold start: `fdagent status` beside the cheapest command of three schedulers, and a health check.

Each run is a process of its own with its bytecode compiled before. Ours reads a queue of some finished jobs; the peers only
say their version. The home is one that the agent of the scaffold's project would have.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fdagent.project.scaffold import write_scaffold
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from models.job import Job, JobFacts, JobState
from tests.bench import measure
from tests.bench.measure import BenchError, Bound, line

RUNS = 7
JOBS = 100
SECONDS = 120.0
PEERS = {
    "dagster --version": ("dagster", "--version"),
    "airflow version": ("airflow", "version"),
    "prefect version": ("prefect", "version"),
}
BOUNDS = {"dagster --version": Bound("<=", 0.5)}


def run() -> list[dict[str, Any]]:
    """All lines of the command line."""
    compiled()
    with measure.scratch() as folder:
        env = site(folder)
        status = [sys.executable, "-m", "fdagent", "status", "--project", str(folder / "project")]
        peer_env = {
            **os.environ,
            "AIRFLOW_HOME": str(folder / "airflow"),
            "PREFECT_HOME": str(folder / "prefect"),
            "DAGSTER_HOME": "",
        }
        sides: dict[str, Callable[[], float]] = {
            "status": lambda: seconds_of(status, env),
            "health": lambda: seconds_of([*status, "--health"], env, code=1),
            "python": lambda: seconds_of([sys.executable, "-c", "pass"], env),
        }
        for name, (program, *words) in PEERS.items():
            command = [str(measure.PEERS_PYTHON.parent / program), *words]
            sides[name] = lambda command=command: seconds_of(command, peer_env)
        for side in sides.values():
            side()  # writes the bytecode that is missing, and brings files into memory
        found = measure.alternate(sides, RUNS)
    return [
        line("cli: cold `fdagent status`", "s", found["status"], bound=Bound("<=", 0.3, "ours"), note=NOTE),
        *(
            line(
                f"cli: cold `fdagent status`, vs {name}",
                "s",
                found["status"],
                peer=name,
                peers=found[name],
                bound=BOUNDS.get(name),
            )
            for name in PEERS
        ),
        line("cli: cold `fdagent status --health`", "s", found["health"], peer="python -c pass", peers=found["python"]),
    ]


NOTE = (
    f"status reads a queue with {JOBS} finished jobs; no agent runs. Bytecode of both sides is compiled and files are in the "
    "page cache. Peers are asked only for their version, the cheapest thing they do; each has an empty home of its own."
)


def compiled() -> None:
    """Compile our bytecode, as an install does."""
    packages = [str(measure.ROOT / name) for name in ("fdagent", "machines", "models")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *packages], check=True, timeout=SECONDS)


def seconds_of(command: list[str], env: Mapping[str, str], code: int = 0) -> float:
    """How long a command takes, from its start to its end."""
    began = time.perf_counter()
    done = subprocess.run(
        command, env=env, cwd=measure.ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    took = time.perf_counter() - began
    if done.returncode != code:
        raise BenchError(f"{command} ended with {done.returncode} and said: {done.stdout}{done.stderr}")
    return took


def site(folder: Path) -> dict[str, str]:
    """A project and a home with some history; the environment in which commands find them."""
    write_scaffold(folder / "project")
    home = folder / "home"
    database, clock, ids, processes = Database(home), SystemClock(), SystemIds(), SystemProcesses()
    jobs = Jobs(database, clock=clock, ids=ids)
    worker = Worker("bench/1", processes.place(), os.getpid(), 1.0)
    new = Job("new", JobState.QUEUED, "op", "dev", run_key="new", dedupe_key="new")
    for number in range(JOBS):
        name = f"job{number:04}"
        jobs.enqueue(replace(new, id=name, run_key=name, dedupe_key=name))
        claimed = jobs.claim(worker)
        if claimed is None:
            raise BenchError("The job that was just queued can't be claimed.")
        event = "fail" if number % 10 == 0 else "succeed"
        jobs.finish(claimed, event, JobFacts(error="It broke." if event == "fail" else ""))
    database.close()
    return {**os.environ, "FABRIC_DESKTOP_HOME": str(home)}
