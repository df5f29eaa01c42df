"""A process that works a queue with no-op jobs: `python queue_process.py HOME LABEL LOG [hammer|claim]`.

Each finished job's id is written to LOG, one line each, before the finish is asked for, so that a job which was run
twice shows. `hammer` also enqueues 50 jobs of its own; `claim` claims one job, says so and waits to be killed.
"""

import sys
from pathlib import Path

from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from models.job import Job, JobFacts, JobState


def main(home: str, label: str, log: str, what: str) -> None:
    processes = SystemProcesses()
    jobs = Jobs(Database(Path(home)), clock=SystemClock(), ids=SystemIds())
    pid = processes.pid()
    who = Worker(label, processes.place(), pid, processes.started_at(pid) or 0.0)
    if what == "claim":
        found = jobs.claim(who)
        print("nothing" if found is None else found.id, flush=True)
        sys.stdin.read()
        return
    for number in range(50):
        name = f"{label}-{number}"
        jobs.enqueue(Job(name, JobState.QUEUED, "op", "dev", run_key=name, dedupe_key=name))
    with Path(log).open("a") as out:
        found = jobs.claim(who)
        while found is not None:
            print(found.id, file=out, flush=True)
            _, found = jobs.finish(found, "succeed", JobFacts(), rows=["{}"], next_for=who)


if __name__ == "__main__":
    main(*sys.argv[1:])
