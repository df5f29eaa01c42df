"""`run`: the daemon, or with `--until-idle` one pass over the queue in this process."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from fdagent.cli.homes import take_home
from fdagent.cli.options import Config, Project
from fdagent.cli.where import Where, where

if TYPE_CHECKING:
    from fdagent.config.settings import Settings
    from fdagent.work.runner import Agent as Runs

INTERRUPTED = 130


def run(
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Work the queue empty, then exit.")] = False,
    project: Project = None,
    config: Config = None,
) -> int:
    """Run the agent until it is stopped; with --until-idle, work the queue empty and exit (code 1: a job failed)."""
    place = where(project, config)
    return work(place, quiet=False) if until_idle else serve(place)


def serve(place: Where) -> int:
    """Be the daemon of a home until a stop is asked for."""
    from fdagent.daemon.home import taken
    from fdagent.daemon.main import build
    from fdagent.system import SystemClock

    with taken(place.home, SystemClock()) as still_there:
        daemon = build(settings_of(place), place.home, place.host, sys.stdout, still_there)
        _on_signals(daemon.stop)
        daemon.run()
    return 0


def settings_of(place: Where) -> "Settings":
    """agent.toml's settings; without one, defaults over the project's local environments."""
    from fdagent.config.incidents import Alerts, Incidents
    from fdagent.config.schedules import Pipeline
    from fdagent.config.settings import Agent, Identity, OneLake, Retry, Settings
    from fdagent.errors import UsageError
    from fdagent.project.load import load_project

    if place.settings is not None:
        return replace(place.settings, agent=replace(place.settings.agent, project=place.project))
    environments = load_project(place.project).environments.values()
    local = tuple(sorted(env.name for env in environments if env.target == "local"))
    if not local:
        raise UsageError(
            f'{place.project} has no environment with target = "local", and there is no agent.toml.',
            fix="Write an agent.toml and name it with --config; deploy/agent.example.toml shows every key.",
        )
    agent = Agent(name=place.agent, project=place.project, environments=local, home=place.home, stale_seconds=90)
    return Settings(
        file=place.project / "agent.toml",
        agent=agent,
        identity=Identity(),
        retry=Retry(),
        schedules=(),
        pipeline=Pipeline(),
        incidents=Incidents(),
        routes=(),
        alerts=Alerts(),
        onelake=OneLake(),
    )


def work(place: Where, *, quiet: bool) -> int:
    """Work the queue of a home empty, telling of each table; 1 when a job that was worked on didn't succeed."""
    from fdagent.cli import view
    from fdagent.queue.db import Database
    from fdagent.queue.jobs import Jobs, Worker
    from fdagent.system import SystemClock, SystemIds, SystemProcesses
    from fdagent.work.worker import Retry, Told, Work

    settings = place.settings
    clock, ids, processes = SystemClock(), SystemIds(), SystemProcesses()
    database = Database(place.home)
    take_home(place, database)
    wishes = Signals()
    pid = processes.pid()
    who = Worker(f"{place.agent}/1", processes.place(), pid, processes.started_at(pid) or 0.0)
    worked = view.Worked(quiet=quiet)
    worker = Work(
        Jobs(database, clock=clock, ids=ids, project=place.project),
        _runs(place, ids.new()),
        who,
        wishes,
        clock,
        ids,
        processes,
        open_database=lambda: Database(place.home),
        retry=Retry()
        if settings is None
        else Retry(settings.retry.backoff_seconds, settings.retry.max_backoff_seconds),
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


def _runs(place: Where, instance: str) -> "Runs":
    """Who runs, as patiently and with as much memory as agent.toml says."""
    from fdagent.work.runner import Agent as Runs

    runs = Runs(place.agent, instance, place.host, place.project)
    if place.settings is None:
        return runs
    agent = place.settings.agent
    return replace(runs, memory_limit=agent.memory_limit, table_lease_seconds=agent.table_lease_seconds)


class Signals:
    """The first signal asks for a stop before the next table; the second ends the process at once."""

    def __init__(self) -> None:
        self._asked = False
        _on_signals(self._on)

    def stopping(self) -> bool:
        """Was a stop asked for?"""
        return self._asked

    def orphaned(self) -> bool:
        """Nobody stands above this process."""
        return False

    def _on(self) -> None:
        if self._asked:
            # Native code would make an error of its own of an exception, and the table would count as failed. This
            # leaves what a killed process leaves, and the next start takes it back.
            print("Stopped.", file=sys.stderr, flush=True)
            os._exit(INTERRUPTED)
        self._asked = True
        print("Stopping after the table that runs, if one does; once more to stop at once.", file=sys.stderr)


def _on_signals(call: Callable[[], None]) -> None:
    """Call something at each wish to stop."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        call()

    # Ctrl-Break is how a console program is asked to stop on Windows.
    for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)
