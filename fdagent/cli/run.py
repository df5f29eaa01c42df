"""`run --until-idle`: work the queue empty in this process, and exit."""

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from fdagent.cli.options import Project
from fdagent.cli.where import Where, where
from fdagent.errors import UsageError


def run(
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Work the queue empty, then exit.")] = False,
    project: Project = None,
) -> int:
    """Run the queue's jobs. Ends with 1 when a job didn't succeed."""
    if not until_idle:
        raise UsageError("This version works a queue empty and exits.", fix="Add --until-idle.")
    return work(where(project), quiet=False)


def work(place: Where, *, quiet: bool) -> int:
    """Work the queue of a home empty, telling of each table; 1 when a job that was worked on didn't succeed."""
    from fdagent.cli import view
    from fdagent.queue.db import Database
    from fdagent.queue.jobs import Jobs, Worker
    from fdagent.system import SystemClock, SystemIds, SystemProcesses
    from fdagent.work.runner import Agent, Stopped
    from fdagent.work.worker import Told, Work

    clock, ids, processes = SystemClock(), SystemIds(), SystemProcesses()
    database = Database(place.home)
    asked = _on_signals()
    pid = processes.pid()
    who = Worker(f"{place.agent}/1", processes.place(), pid, processes.started_at(pid) or 0.0)
    worked = view.Worked(quiet=quiet)
    worker = Work(
        Jobs(database, clock=clock, ids=ids),
        Agent(place.agent, place.host, place.project),
        who,
        clock,
        ids,
        processes,
        open_database=lambda: Database(place.home),
        told=Told(worked.job, worked.row, worked.trouble),
        stopping=lambda: bool(asked),
    )
    try:
        worked.end(worker.until_idle())
    except Stopped:
        worked.trouble("Stopped. What is left of the job runs at the next start.")
        return 130
    finally:
        database.close()
    return 1 if worked.failed else 0


def _on_signals() -> list[int]:
    """The first signal asks for a stop before the next table; the second ends the process at once."""
    asked: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        print("Stopping after the table that runs; once more to stop at once.", file=sys.stderr)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return asked
