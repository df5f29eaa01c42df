"""The queue: jobs a second through claim and finish beside huey and APScheduler, latency with a long history, rivals.

Each figure is taken in a process of its own (`python -m tests.bench.bench_queue <role> ...`, the functions named
`_child_*`), with the very calls a worker makes; a job does nothing.
"""

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fdagent.queue.db import CHECKPOINT_PAGES, NAME, Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from models.job import Job, JobFacts, JobState
from tests.bench import measure
from tests.bench.measure import Bound, line

ME = "tests.bench.bench_queue"
RUNS, JOBS = 7, 800
"""Many short runs rather than few long ones: a disk shared with others changes its pace from second to second."""
SLOW_JOBS = 300
"""For the peer that needs several syncs a job."""
HISTORY = 1_000_000
PROBES, LATENCY_RUNS = 700, 5
RIVALS = 8
RIVALS_JOBS = 1600
PAGE_BYTES = 4096
COMMIT_BYTES = 6 * (PAGE_BYTES + 24)
"""What finishing one job and claiming the next adds to the write-ahead log: six pages with their headers."""


def run() -> list[dict[str, Any]]:
    """All lines of the queue."""
    return [*_throughput(), *_history(), *_rivals()]


def _throughput() -> list[dict[str, Any]]:
    found = measure.alternate(
        {
            "ours": lambda: _in_scratch(lambda home: measure.child(ME, "cycle", home, JOBS)),
            "huey": lambda: _in_scratch(lambda home: measure.peer("huey_sqlite", home, JOBS)),
            "aps": lambda: _in_scratch(lambda home: measure.peer("apscheduler_sqlite", home, SLOW_JOBS, "delete")),
            "aps wal": lambda: _in_scratch(lambda home: measure.peer("apscheduler_sqlite", home, SLOW_JOBS, "wal")),
            "unsynced": lambda: _in_scratch(lambda home: measure.child(ME, "unsynced", home, JOBS)),
            "disk": lambda: _in_scratch(lambda home: measure.child(ME, "disk", home, JOBS)),
        },
        RUNS,
    )
    rates = {side: [answer["per_second"] for answer in answers] for side, answers in found.items()}
    notes = {side: answers[0]["settings"] for side, answers in found.items()}

    def beside(peer: str, side: str, bound: Bound | None) -> dict[str, Any]:
        name = f"queue: no-op jobs through claim and finish, vs {peer}"
        return line(name, "jobs/s", rates["ours"], peer=peer, peers=rates[side], bound=bound, note=notes[side])

    return [
        beside("huey", "huey", Bound(">=", 0.7)),
        beside("APScheduler", "aps", Bound(">=", 5)),
        beside("APScheduler with WAL", "aps wal", None),
        beside("the disk alone", "disk", None),
        beside("itself without syncs", "unsynced", None),
    ]


def _history() -> list[dict[str, Any]]:
    with measure.scratch() as folder:
        long = folder / "long"
        _make_history(long)
        found = measure.alternate(
            {
                "long": lambda: measure.child(ME, "latency", long, PROBES),
                "empty": lambda: _in_scratch(lambda home: measure.child(ME, "latency", home, PROBES)),
            },
            LATENCY_RUNS,
        )
    note = (
        f"latency: {PROBES} calls each; ours beside {HISTORY:,} finished rows, the peer is our own queue without any; "
        f"enqueue and finish wait for the disk, claim doesn't"
    )
    return [
        line(
            f"queue: {call} {share} beside 1M finished rows",
            "ms",
            [answer[f"{call} {share}"] for answer in found["long"]],
            peer="empty queue",
            peers=[answer[f"{call} {share}"] for answer in found["empty"]],
            bound=Bound("<=", 2) if (call, share) == ("claim", "p99") else None,
            note=note,
        )
        for call in ("enqueue", "claim", "finish")
        for share in ("p50", "p99")
    ]


def _rivals() -> list[dict[str, Any]]:
    found = measure.alternate({str(count): lambda count=count: _race(count) for count in (1, RIVALS)})
    many = found[str(RIVALS)]
    note = (
        f"rivals: {RIVALS} processes empty one queue of {RIVALS_JOBS} jobs; the peer is one process that does it alone"
    )
    what = f"queue: {RIVALS} processes on one queue"
    return [
        line(
            what,
            "jobs/s",
            [race["per_second"] for race in many],
            peer="one process",
            peers=[race["per_second"] for race in found["1"]],
            note=note,
        ),
        line(f"{what}, worst wait for a write", "s", [race["worst_wait"] for race in many], note=note),
        line(
            f"{what}, jobs lost or run twice",
            "jobs",
            [float(race["wrong"]) for race in many],
            bound=Bound("<=", 0, of="ours"),
            note=note,
        ),
    ]


def _race(count: int) -> dict[str, Any]:
    """`count` processes empty one queue; who ran what is compared with what was put in and with what the queue says."""
    with measure.scratch() as home:
        jobs, _ = _queue(home)
        asked = {_enqueue(jobs) for _ in range(RIVALS_JOBS)}
        answers = measure.together(ME, count, "rival", home)
        ran = [name for answer in answers for name in answer["ran"]]
        once = sum(job.state == JobState.SUCCEEDED and job.attempt == 1 for job in jobs.finished(RIVALS_JOBS))
        seconds = max(answer["ended"] for answer in answers) - min(answer["started"] for answer in answers)
        return {
            "per_second": RIVALS_JOBS / seconds,
            "worst_wait": max(answer["worst_wait"] for answer in answers),
            "wrong": len(asked ^ set(ran)) + len(ran) - len(set(ran)) + RIVALS_JOBS - once,
        }


def _make_history(home: Path) -> None:
    """A queue with many finished jobs, one second apart, under random ids."""
    _queue(home)[0].database.close()
    columns = {
        "id": "lower(hex(randomblob(16)))",
        "state": "'succeeded'",
        "op": "lower(hex(randomblob(16)))",
        "env": "'dev'",
        "run_key": "lower(hex(randomblob(16)))",
        "dedupe_key": "lower(hex(randomblob(16)))",
        "source": "'schedule:nightly'",
        "entities": "'[]'",
        "tables": """'{"silver.flights":{"state":"succeeded","rows":26398}}'""",
        **dict.fromkeys(("claim", "stop", "reason", "error", "category"), "''"),
        "worker": "'bench/1'",
        "place": "'bench/3b0a2a3e-5b0e-4a43-9a10-6f0a4d1c9f55/4026531836'",
        **dict.fromkeys(("cascade", "backfill", "renewals"), "0"),
        "version": "3",
        "attempt": "1",
        "max_attempts": "3",
        "pid": "4242",
        "process_started_at": "12345.67",
        "lease_seconds": "60.0",
        **dict.fromkeys(("not_before", "created_at", "started_at", "updated_at", "finished_at"), "1.6e9 + n"),
    }
    with contextlib.closing(sqlite3.connect(home / NAME)) as connection:
        connection.execute("pragma cache_size = -400000")
        connection.execute("pragma synchronous = off")  # nothing to lose yet
        connection.execute(
            f"""insert into job ({", ".join(columns)})
            with recursive number(n) as (select 1 union all select n + 1 from number where n < {HISTORY})
            select {", ".join(columns.values())} from number"""
        )
        connection.commit()
        # Now, so that no measurement shares the disk with it.
        connection.execute("pragma synchronous = full")
        connection.execute("pragma wal_checkpoint(truncate)")


def _in_scratch(part: Any) -> dict[str, Any]:
    with measure.scratch() as folder:
        return part(folder)


class _Watched(Database):
    """Keeps how long the longest wait for a write transaction was; `syncs=False` shows what the waits for the disk cost."""

    worst_wait = 0.0
    syncs = True

    @contextlib.contextmanager
    def write(self, *, durable: bool) -> Iterator[sqlite3.Connection]:
        asked = time.perf_counter()
        with super().write(durable=durable and self.syncs) as transaction:
            self.worst_wait = max(self.worst_wait, time.perf_counter() - asked)
            yield transaction


def _queue(home: Path, *, syncs: bool = True) -> tuple[Jobs, Worker]:
    database, processes = _Watched(home), SystemProcesses()
    database.syncs = syncs
    started = processes.started_at(processes.pid())
    worker = Worker(f"bench/{processes.pid()}", processes.place(), processes.pid(), started or 0.0)
    return Jobs(database, clock=SystemClock(), ids=SystemIds()), worker


def _enqueue(jobs: Jobs) -> str:
    name = jobs.ids.new()
    jobs.enqueue(Job(name, JobState.QUEUED, jobs.ids.new(), "dev", run_key=name, dedupe_key=name))
    return name


def _work(jobs: Jobs, worker: Worker) -> list[str]:
    """What a worker does, with jobs that do nothing; the ids in the order they ran."""
    ran = []
    job = jobs.claim(worker)
    while job is not None:
        ran.append(job.id)
        _, job = jobs.finish(job, "succeed", JobFacts(), next_for=worker)
    return ran


def _child_cycle(home: Path, count: int) -> None:
    measure.answer(per_second=_cycle(*_queue(home), count), settings="")


def _child_unsynced(home: Path, count: int) -> None:
    settings = "itself without syncs: the same calls, no commit waits for the disk; what is left of a job's time is our own work"
    measure.answer(per_second=_cycle(*_queue(home, syncs=False), count), settings=settings)


def _cycle(jobs: Jobs, worker: Worker, count: int) -> float:
    """Jobs a second from the first claim to the last finish; putting them in is not counted."""
    asked = [_enqueue(jobs) for _ in range(count)]
    started = time.perf_counter()
    ran = _work(jobs, worker)
    seconds = time.perf_counter() - started
    assert sorted(ran) == sorted(asked)
    return count / seconds


def _child_latency(home: Path, count: int) -> None:
    jobs, worker = _queue(home)
    claimed: list[Job] = []
    calls = {
        "enqueue": lambda: _enqueue(jobs),
        "claim": lambda: claimed.append(jobs.claim(worker)),
        "finish": lambda: jobs.finish(claimed.pop(), "succeed", JobFacts()),
    }
    found = {}
    for name, call in calls.items():
        times = []
        for _ in range(count):
            started = time.perf_counter()
            call()
            times.append((time.perf_counter() - started) * 1000)
        found |= {f"{name} p50": measure.percentile(times, 0.5), f"{name} p99": measure.percentile(times, 0.99)}
    assert not claimed
    measure.answer(**found)


def _child_rival(home: Path) -> None:
    jobs, worker = _queue(home)
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    ran = _work(jobs, worker)
    measure.answer(ran=ran, worst_wait=jobs.database.worst_wait, started=started, ended=time.monotonic())


def _child_disk(folder: Path, count: int) -> None:
    """The same bytes a job, written over a file as long as the write-ahead log and synced each time."""
    whole = CHECKPOINT_PAGES * PAGE_BYTES
    handle = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
    os.write(handle, bytes(whole))
    os.fsync(handle)
    commit = os.urandom(COMMIT_BYTES)
    started = time.perf_counter()
    for number in range(count):
        os.pwrite(handle, commit, number * COMMIT_BYTES % (whole - COMMIT_BYTES))
        os.fdatasync(handle)
    seconds = time.perf_counter() - started
    settings = (
        f"the disk alone: {COMMIT_BYTES} bytes written over a file and fdatasync, once a job: nothing durable is faster"
    )
    measure.answer(per_second=count / seconds, settings=settings)


if __name__ == "__main__":
    role, home, *counts = sys.argv[1:]
    globals()[f"_child_{role}"](Path(home), *map(int, counts))
