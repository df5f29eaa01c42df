"""A worker that ends jobs and flushes: `python flush_process.py PROJECT LABEL JOBS [POINT WHEN]`.

Each of its jobs leaves one run-log row whose run id is the job's id; every third end is followed by a flush. With a
POINT such as `Jobs.drop_batch` it is killed before or after the second call of it.
"""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

from fdagent.cli.where import where
from fdagent.engine import runlog
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker, row_text
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from fdagent.work.flusher import Flusher
from models.job import Job, JobFacts, JobState
from models.run import CheckResult, RunRow, RunStatus

ENDS_A_FLUSH = 3
NOBODY = SimpleNamespace(stopping=lambda: False, orphaned=lambda: False)
HOLDERS = {"Jobs": Jobs, "runlog": runlog}


def row_of(job_id: str) -> str:
    """The one row of a job."""
    row = RunRow(
        run_id=job_id, job_id=job_id, request_id="", run_key=job_id, env="dev", entity="bronze.t", layer="bronze",
        mode="append", status=RunStatus.SUCCEEDED, started_at="2027-01-15T09:00:00.000Z",
        finished_at="2027-01-15T09:00:00.250Z", duration_ms=250, attempt=1, worker="w", host="h", agent="a",
        source="cli", checks=(CheckResult("unique(id)", "warn", 1),),
    )  # fmt: skip
    return row_text(row.to_json())


def flusher_of(project: Path) -> Flusher:
    """A worker's flushes over a connection of its own; what can't be written is an error here."""
    jobs = Jobs(Database(where(project).home), clock=SystemClock(), ids=SystemIds(), project=project)
    return Flusher(jobs, project, NOBODY, SystemClock(), SystemIds(), fail)


def fail(sentence: str) -> None:
    raise AssertionError(sentence)


def end_job(jobs: Jobs, job_id: str) -> None:
    """Put a job in, and end whichever is claimed, with its row."""
    processes = SystemProcesses()
    pid = processes.pid()
    who = Worker("w", processes.place(), pid, processes.started_at(pid) or 0.0)
    jobs.enqueue(Job(job_id, JobState.QUEUED, "op", "dev", run_key=job_id, dedupe_key=job_id))
    job = jobs.claim(who)
    if job is not None:
        jobs.finish(job, "succeed", JobFacts(), rows=[row_of(job.id)])


def die_at(point: str, when: str) -> None:
    """Be killed before or after the second call of a point."""
    owner, name = point.split(".")
    real, calls = getattr(HOLDERS[owner], name), []

    def killed(*args, **more):
        calls.append(1)
        if len(calls) == 2 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **more)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(HOLDERS[owner], name, killed)


def main(project: str, label: str, jobs: str, *fault: str) -> None:
    if fault:
        die_at(*fault)
    flusher = flusher_of(Path(project))
    for n in range(int(jobs)):
        end_job(flusher.jobs, f"{label}-{n}")
        if n % ENDS_A_FLUSH == ENDS_A_FLUSH - 1:
            flusher.flush()
    flusher.flush()
    flusher.jobs.database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
