"""`run`: the daemon, or with `--until-idle` one pass over the queue in this process."""

import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdagent.cli.options import Config, Project
from fdagent.cli.where import Where, where

if TYPE_CHECKING:
    from fdagent.config.settings import Settings
    from fdagent.daemon.agent import Daemon

INTERRUPTED = 130
WORKER_IDLE_SECONDS = 60.0
"""How long a worker without work is kept warm."""


def run(
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Work the queue empty, then exit.")] = False,
    project: Project = None,
    config: Config = None,
) -> int:
    """Run the agent until it is stopped; with --until-idle, work the queue empty and exit (1: a job failed)."""
    place = where(project, config)
    return work(place, quiet=False) if until_idle else serve(place)


def serve(place: Where) -> int:
    """Be the daemon of a home until a stop is asked for."""
    from fdagent.daemon.home import taken

    with taken(place.home):
        daemon = _daemon(place, settings_of(place))
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


def _daemon(place: Where, settings: "Settings") -> "Daemon":
    from fdagent.daemon.agent import Daemon, Ports, event_fields
    from fdagent.daemon.describe import Describe
    from fdagent.daemon.logs import Log
    from fdagent.fleet.release import open_control
    from fdagent.project.load import load_project
    from fdagent.project.places import Places, environment_named
    from fdagent.queue.db import Database
    from fdagent.queue.jobs import Jobs
    from fdagent.system import SystemClock, SystemIds, SystemProcesses
    from fdagent.work.process import Orders
    from fdagent.work.supervisor import Supervisor

    clock, ids, processes = SystemClock(), SystemIds(), SystemProcesses()
    agent, instance = settings.agent, ids.new()
    loaded = load_project(place.project)
    places = {env: Places(loaded, environment_named(loaded, env)) for env in agent.environments}
    log = Log(place.home / "logs", sys.stdout, {"agent": agent.name, "host": place.host}, clock)
    jobs = Jobs(Database(place.home), clock=clock, ids=ids)

    def orders(label: str) -> Orders:
        return Orders(
            home=str(place.home),
            label=label,
            agent=agent.name,
            instance=instance,
            host=place.host,
            project=str(place.project),
            envs=daemon.served(),
            memory_limit=agent.memory_limit,
            table_lease_seconds=agent.table_lease_seconds,
            backoff_seconds=settings.retry.backoff_seconds,
            max_backoff_seconds=settings.retry.max_backoff_seconds,
            idle_seconds=WORKER_IDLE_SECONDS,
        )

    def heard(label: str, event: Mapping[str, Any]) -> None:
        level = "warning" if event["event"] in ("trouble", "worker_output") else "info"
        log.tell(level, event["event"], str(event.get("message", "")), worker=label, **event_fields(event))

    stores = {env: open_control(place_of, clock=clock, ids=ids) for env, place_of in places.items()}
    describe = Describe(settings, instance, place.host, jobs, clock, processes)
    ports = Ports(jobs, Supervisor(orders, heard), stores, clock, ids, processes, log.tell)
    daemon = Daemon(settings, instance, describe, ports)
    return daemon


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
        _on_signals(self._on)

    def stopping(self) -> bool:
        """Was a stop asked for?"""
        return self._asked

    def orphaned(self) -> bool:
        """Nobody stands above this process."""
        return False

    def _on(self) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        print("Stopping after the table that runs; once more to stop at once.", file=sys.stderr)


def _on_signals(call: Callable[[], None]) -> None:
    """Call something at each wish to stop."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        call()

    # Ctrl-Break is how a console program is asked to stop on Windows.
    for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)
