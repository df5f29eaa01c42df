"""The daemon of one machine: wires the duties, gives them their turns, and ends in order.

Guarantees
- It never loads a table library: workers do, in processes of their own.
- A stop asks for no new work, leaves running jobs `drain_seconds`, then ends their workers; what was cut off runs again
  at the next start, or on another agent: requests that this one can't go on with are offered before its goodbye. A
  second signal ends at once, without either.
- An unreachable control folder stops nothing but what needs it. A queue file found damaged ends the daemon with that
  error: its next start puts the file aside (`home.py`).

The only loop of the daemon is here; everything else is a bounded tick.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fdagent.commit import Audit
from fdagent.config.settings import Settings
from fdagent.daemon.describe import Describe
from fdagent.daemon.duties import Crew, Duty, Homing, Pruning, Recovery, Staffing, Telling, Turns, Wish
from fdagent.daemon.home import DRAIN
from fdagent.daemon.mail import Mail
from fdagent.errors import HomeGone, QueueDamaged, in_words
from fdagent.fleet.look import Me
from fdagent.fleet.mailbox import Mailbox
from fdagent.fleet.presence import Presence
from fdagent.fleet.schedules import Schedules
from fdagent.fleet.scheduling import Scheduling
from fdagent.ports import Clock, Ids, Processes, Store
from fdagent.queue.jobs import Jobs
from fdagent.stores.sightings import Sightings
from fdagent.work.news import News

LONGEST_SLEEP_SECONDS = 0.25
REAP_SECONDS = 0.01
DAY_SECONDS = 86_400.0
KILL_SECONDS = 10.0

Tell = Callable[..., None]
"""`Log.tell`: level, event, message, fields."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside of a daemon."""

    jobs: Jobs
    schedules: Schedules
    crew: Crew
    stores: Mapping[str, Store]
    """The control root of each environment."""
    clock: Clock
    ids: Ids
    processes: Processes
    tell: Tell
    audit: Audit | None = None
    turned: Callable[[], None] = lambda: None
    """Told at each turn of the loop, for whoever watches that it goes on."""
    home_there: Callable[[], bool] = lambda: True
    """Is the home still the one that this daemon holds?"""


@dataclass(slots=True)
class Beating:
    """Beats in one environment."""

    presence: Presence
    every: float

    def tick(self) -> None:
        """One announcement or beat."""
        self.presence.tick()


class Daemon:
    """The daemon, ready to run.

    Args:
        settings: agent.toml.
        instance: This start.
        describe: What the agent says of itself.
        ports: The outside.
    """

    def __init__(self, settings: Settings, instance: str, describe: Describe, ports: Ports) -> None:
        self.settings, self.ports = settings, ports
        self._stopping = self._signalled = self._at_once = self._homeless = False
        self.presences = [
            Presence(
                store,
                env,
                settings.agent.name,
                instance,
                lambda env=env: describe.record(env),  # type: ignore[misc]
                settings.agent.stale_seconds,
                ports.clock,
                ports.ids,
                ports.processes,
                lambda sentence, env=env: ports.tell("warning", "presence", sentence, env=env),  # type: ignore[misc]
                ports.audit,
            )
            for env, store in ports.stores.items()
        ]
        agent = settings.agent
        self._staffing = Staffing(
            ports.jobs,
            ports.crew,
            agent.name,
            agent.concurrency,
            agent.max_job_hours * 3600,
            self.served,
            ports.clock,
            ports.tell,
        )
        self._recovery = Recovery(ports.jobs, ports.crew, Sightings(ports.clock), ports.processes, ports.tell)
        self._mailboxes = list(self._mail(instance, describe))
        self._turns = Turns(self._duties(), ports.clock, self._failed, self._works)

    def served(self) -> tuple[str, ...]:
        """The environments whose jobs are run now."""
        if self._stopping:
            return ()
        return tuple(presence.env for presence in self.presences if presence.serves)

    def news(self) -> News:
        """What a worker should know now."""
        boxes = [duty for duty in self._mailboxes if isinstance(duty, Mailbox)]
        left = {box.env: box.look.left_alone(holds_name=box.holds_name()) for box in boxes}
        return News(self.served(), {env: ops for env, ops in left.items() if ops})

    def stop(self) -> None:
        """Ask for a stop; asked twice, it ends at once. Safe to call from a signal handler.

        A drain that a person asked for before does not count: the first signal is still the first.
        """
        self._at_once = self._signalled
        self._signalled = self._stopping = True

    def tick(self) -> float:
        """Give every due duty its turn; seconds until the next."""
        self.ports.turned()
        return self._turns.tick()

    def run(self) -> None:
        """Run until a stop is asked for, then end in order.

        Raises:
            QueueDamaged: The queue file can't be used any more; the workers were ended.
            HomeGone: The home was removed or replaced; the workers were ended, and the agent said goodbye.
            HomeError: The queue file can't be written at the start.
        """
        ports = self.ports
        ports.jobs.set_wish(DRAIN, "")
        ports.tell("info", "started", f"Agent {self.settings.agent.name} serves {', '.join(ports.stores)}.")
        try:
            while not self._stopping:
                ports.clock.sleep(min(self.tick(), LONGEST_SLEEP_SECONDS))
            if self._homeless:
                self._leave()
            self._drain()
        except QueueDamaged as err:
            ports.tell("error", "queue_damaged", f"The agent ends; its next start puts the file aside. {err}")
            self._end_workers()
            raise
        ports.tell("info", "stopped", f"Agent {self.settings.agent.name} has stopped.")

    def _drain(self) -> None:
        """No new work; running jobs get their time; then say goodbye."""
        ports, seconds = self.ports, self.settings.agent.drain_seconds
        ports.tell("info", "stopping", f"No new work; running jobs have {seconds} s.")
        for presence in self.presences:
            self._did("Presence", presence.drain)
        ports.crew.ask_to_stop()
        until = ports.clock.elapsed() + seconds
        while ports.crew.pids() and ports.clock.elapsed() < until and not self._at_once:
            ports.clock.sleep(min(self.tick(), LONGEST_SLEEP_SECONDS))
        self._end_workers()
        if not self._at_once:
            # What its last worker has just given back, or was cut off at, was not offered yet.
            for duty in (self._recovery, *self._mailboxes):
                self._did(type(duty).__name__, duty.tick)
            for presence in self.presences:
                self._did("Presence", presence.stop)

    def _leave(self) -> None:
        """End at once: what this daemon holds is no home any more, and another may hold the one that is there now."""
        gone = HomeGone(
            "The agent's home folder was removed or replaced while it ran, so it ends.",
            fix="Start it again; what waited in the old home's queue must be asked for again.",
        )
        self.ports.tell("error", "home_gone", str(gone))
        self._end_workers()
        for presence in self.presences:
            self._did("Presence", presence.stop)
        raise gone

    def _did(self, duty: str, act: Callable[[], None]) -> None:
        try:
            act()
        except QueueDamaged:
            raise
        except Exception as err:  # noqa: BLE001  # whatever it is, the stop goes on
            self._failed(duty, in_words(err))

    def _end_workers(self) -> None:
        """End what is left, and see it gone."""
        ports = self.ports
        for label, pid in ports.crew.pids().items():
            ports.tell("warning", "worker_killed", f"Worker {label} (pid {pid}) is ended; its job runs again.")
            ports.crew.kill(label, "was ended with its agent")
        until = ports.clock.elapsed() + KILL_SECONDS
        while ports.crew.pids() and ports.clock.elapsed() < until:
            ports.crew.ended()
            ports.clock.sleep(REAP_SECONDS)

    def _duties(self) -> Sequence[Duty]:
        """In the order of their turns: what was left alone is taken back before the mailbox looks at it."""
        ports, agent = self.ports, self.settings.agent
        return [
            *(Beating(presence, agent.status_seconds) for presence in self.presences),
            Homing(ports.home_there, self._lost_home),
            Wish(ports.jobs, DRAIN, self._asked),
            self._recovery,
            *self._mailboxes,
            Scheduling(ports.schedules, self.served, ports.clock, ports.tell),
            Telling(ports.crew, self.news),
            self._staffing,
            Pruning(ports.jobs, agent.retention_days * DAY_SECONDS),
        ]

    def _mail(self, instance: str, describe: Describe) -> Iterator[Duty]:
        """The mailbox of each environment that has one, with its shared schedules."""
        ports = self.ports
        mail = Mail(
            self.settings,
            Me(self.settings.agent.name, instance, describe.host),
            ports.jobs,
            describe.watch,
            self.served,
            lambda env: ports.schedules.unpaused(env, ports.clock.wall()),
            lambda: self._stopping,
            self._staffing.look_soon,
            ports.clock,
            ports.ids,
            ports.tell,
            ports.audit,
        )
        for presence in self.presences:
            if mail.serves(presence.env):
                yield from mail.duties(presence.env, presence.store, presence)

    def _asked(self) -> None:
        if not self._stopping:
            self.ports.tell("info", "drain", "A person asked this agent to stop.")
            self._stopping = True

    def _lost_home(self) -> None:
        self._homeless = self._stopping = True

    def _failed(self, duty: str, sentence: str) -> None:
        self.ports.tell("error", "duty_failed", f"{duty} failed and is tried again: {sentence}")

    def _works(self, duty: str) -> None:
        self.ports.tell("info", "duty_works", f"{duty} works again.")
