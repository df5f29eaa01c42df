"""`run --until-idle`: work the queue empty in this process, and exit."""

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from fdagent.cli.options import Project
from fdagent.cli.where import Where, where
from fdagent.errors import UsageError

INTERRUPTED = 130


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
    from fdagent.work.runner import Agent
    from fdagent.work.worker import Told, Work

    clock, ids, processes = SystemClock(), SystemIds(), SystemProcesses()
    database = Database(place.home)
    wishes = Signals()
    pid = processes.pid()
    who = Worker(f"{place.agent}/1", processes.place(), pid, processes.started_at(pid) or 0.0)
    worked = view.Worked(quiet=quiet)
    worker = Work(
        Jobs(database, clock=clock, ids=ids),
        Agent(place.agent, ids.new(), place.host, place.project),
        who,
        wishes,
        clock,
        ids,
        processes,
        open_database=lambda: Database(place.home),
        told=Told(worked.job, worked.row, worked.trouble),
    )
    try:
        attempts = worker.until_idle()
    finally:
        database.close()
    if wishes.stopping():
        worked.trouble("Stopped. What is left of the job runs at the next start.")
        return INTERRUPTED
    worked.end(attempts)
    return 1 if worked.failed else 0


class Signals:
    """The first signal asks for a stop before the next table; the second ends the process at once."""

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on)

    def stopping(self) -> bool:
        """Was a stop asked for?"""
        return self._asked

    def orphaned(self) -> bool:
        """Nobody stands above this process."""
        return False

    def _on(self, _number: int, _frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        print("Stopping after the table that runs; once more to stop at once.", file=sys.stderr)
