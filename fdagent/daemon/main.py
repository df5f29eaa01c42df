"""The daemon's wiring: the real ports behind the duties.

Guarantees: everything a daemon needs is opened here and nowhere else, so what runs in the simulated world is the same
daemon over other ports. Loads no table library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fdagent.commit import Transition
from fdagent.config.settings import Settings
from fdagent.daemon.agent import Daemon, Ports
from fdagent.daemon.describe import Describe
from fdagent.daemon.home import open_queue
from fdagent.daemon.logs import AUDIT, Log
from fdagent.daemon.watchdog import Watchdog
from fdagent.fleet.release import open_control
from fdagent.fleet.schedules import Schedules
from fdagent.project.load import load_project
from fdagent.project.places import Places, environment_named
from fdagent.project.watch import ProjectWatch
from fdagent.queue import belongs
from fdagent.queue.dues import Dues
from fdagent.queue.jobs import Jobs
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from fdagent.work.news import News
from fdagent.work.process import TRANSITION, Orders
from fdagent.work.supervisor import Supervisor

WORKER_IDLE_SECONDS = 60.0
"""How long a worker without work is kept warm."""
WARNINGS = frozenset({"trouble", "worker_output"})
"""Events of a worker that are warnings."""


def build(
    settings: Settings, home: Path, host: str, out: IO[str] | None, home_there: Callable[[], bool] = lambda: True
) -> Daemon:
    """A daemon over this machine's clocks, processes and files.

    Args:
        settings: agent.toml.
        home: The agent's home, held by the caller; a damaged queue file in it is put aside.
        host: This machine's name.
        out: Where log lines go beside the log files.
        home_there: Is the home still the one that the caller holds?

    Raises:
        ProjectError, NotFound, UsageError: The project can't be run.
        HomeError: The home can't be used.
    """
    clock, ids, processes = SystemClock(), SystemIds(), SystemProcesses()
    agent, instance = settings.agent, ids.new()
    project = load_project(agent.project)
    stores = {
        env: open_control(Places(project, environment_named(project, env)), clock=clock, ids=ids)
        for env in agent.environments
    }
    about = {"agent": agent.name, "host": host}
    log, audit = Log(home / "logs", out, about, clock), Log(home / "logs", None, about, clock, name=AUDIT)
    database = open_queue(home, clock, log.tell)
    belongs.adopt(database, agent.project)
    jobs = Jobs(database, clock=clock, ids=ids, audit=audit.transition, project=agent.project)
    dues = Dues(jobs, home, lambda sentence: log.tell("error", "dues_unreadable", sentence))
    schedules = Schedules(settings, dues, ids, stores)
    crew = Staff(settings, home, host, instance, log, audit)
    watch = ProjectWatch(agent.project, clock)
    describe = Describe(settings, instance, host, jobs, schedules, clock, processes, watch)
    turned = Watchdog(crew.supervisor, clock, log.tell).turned
    ports = Ports(
        jobs, schedules, crew.supervisor, stores, clock, ids, processes, log.tell, audit.transition, turned, home_there
    )
    crew.daemon = Daemon(settings, instance, describe, ports)
    return crew.daemon


@dataclass(slots=True)
class Staff:
    """What the workers of one daemon are told, and where their events go."""

    settings: Settings
    home: Path
    host: str
    instance: str
    log: Log
    audit: Log
    daemon: Daemon | None = None
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.orders, self.heard)

    def orders(self, label: str) -> Orders:
        """A worker's orders."""
        agent, retry = self.settings.agent, self.settings.retry
        return Orders(
            home=str(self.home),
            label=label,
            agent=agent.name,
            instance=self.instance,
            host=self.host,
            project=str(agent.project),
            news=News() if self.daemon is None else self.daemon.news(),
            memory_limit=agent.memory_limit,
            table_lease_seconds=agent.table_lease_seconds,
            backoff_seconds=retry.backoff_seconds,
            max_backoff_seconds=retry.max_backoff_seconds,
            idle_seconds=WORKER_IDLE_SECONDS,
        )

    def heard(self, label: str, event: Mapping[str, Any]) -> None:
        """Write a worker's event into its log; its own time and level don't count."""
        if event["event"] == TRANSITION:
            self.audit.transition(Transition(**event[TRANSITION]), worker=label)
            return
        fields = {name: value for name, value in event.items() if name not in ("event", "message", "level", "ts")}
        level = "warning" if event["event"] in WARNINGS else "info"
        self.log.tell(level, event["event"], str(event.get("message", "")), **{**fields, "worker": label})
