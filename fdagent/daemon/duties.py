"""The daemon's duties: each `tick` is one bounded piece of work, called again and again by the loop.

Guarantees: no duty sleeps, loops without a bound, or loads a table library; whatever goes wrong in one is told and
tried again at its next turn, and stops no other. Spans are counted by the steady clock, so that a corrected wall clock
ends no job. All of the outside is reached through ports, so the simulated world runs the same duties.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fdagent.errors import FdagentError, QueueDamaged, unforeseen
from fdagent.ports import Clock, Processes
from fdagent.queue.jobs import Jobs
from fdagent.stores.sightings import Sightings
from fdagent.work.news import News
from models.job import Job

STARTS_A_TICK = 4
MOST_PRUNES = 20
CRASHES_A_MINUTE = 5
"""Workers that end badly more often than this are started more slowly."""
SLOW_START_SECONDS = 30.0
STALLED_SECONDS = 60.0
"""A worker that leaves a due job lying for so long is ended: it may be stopped or stuck, and keeps another's place."""
ROWS_SECONDS = 30.0
"""How long a run-log row may wait before a worker is started for it beside others, which bring rows every few seconds."""
SAME_TROUBLE_SECONDS = 300.0
OTHER_TROUBLE_SECONDS = 5.0
"""How soon a duty's trouble is told again, when it is the same one and when it is another."""


class Duty(Protocol):
    """One of the daemon's duties."""

    @property
    def every(self) -> float:
        """Seconds between two turns."""
        ...

    def tick(self) -> None:
        """One turn."""
        ...


class Gone(Protocol):
    """A worker that ended."""

    @property
    def label(self) -> str:
        """Its label."""
        ...

    @property
    def pid(self) -> int:
        """Its process."""
        ...

    @property
    def code(self) -> int:
        """Its exit code."""
        ...

    @property
    def how(self) -> str:
        """How it ended, as the end of a sentence."""
        ...


class Crew(Protocol):
    """The worker processes, as the duties use them."""

    def start(self, label: str) -> int:
        """Start a worker; its pid."""
        ...

    def pids(self) -> dict[str, int]:
        """Those that were not seen to have ended."""
        ...

    def ended(self) -> Sequence[Gone]:
        """Those that ended since the last call."""
        ...

    def fate(self, pid: int) -> str:
        """How one ended, as the end of a sentence; empty: it lives, or was none of ours."""
        ...

    def ask_to_stop(self) -> None:
        """Ask each to stop after the table it runs."""
        ...

    def tell(self, news: News) -> None:
        """Tell each what has changed."""
        ...

    def kill(self, label: str, why: str = "") -> None:
        """End one at once; `why` ends a sentence about it."""
        ...


Tell = Callable[[str, str, str], None]
"""Told what happens: a level, an event and a sentence."""


@dataclass(slots=True)
class Staffing:
    """Starts workers when jobs are due or run-log rows wait, ends those whose job runs for too long.

    Args:
        name: The agent; workers are labelled `<name>/<n>`.
        concurrency: The most workers.
        max_job_seconds: How long an attempt may take.
        envs: The environments that are served now; none: no worker is started.
    """

    jobs: Jobs
    crew: Crew
    name: str
    concurrency: int
    max_job_seconds: float
    envs: Callable[[], Sequence[str]]
    clock: Clock
    tell: Tell
    every: float = 0.25
    _crashes: list[float] = field(default_factory=list)
    _change: int = -1
    _look_at: float = 0.0
    _claims: dict[str, float] = field(default_factory=dict)
    _oldest: tuple[str, float] = ("", 0.0)
    _left_lying: tuple[float | None, float] = (None, 0.0)

    def tick(self) -> None:
        """Reap, then start what is needed."""
        self._reap()
        if not self._changed():
            return
        running = self.jobs.running()
        self._end_endless(running)
        pids, busy = self.crew.pids(), {job.pid for job in running}
        idle = [label for label, pid in pids.items() if pid not in busy]
        due = self.jobs.due(self.envs(), self.concurrency)
        self._end_stalled(idle if due else [])
        rows_wait = self._rows_wait(anybody=bool(pids))
        waiting = due or int(rows_wait)
        wanted = min(waiting, self.concurrency) - len(idle)
        for _ in range(max(0, min(wanted, self.concurrency - len(pids), STARTS_A_TICK))):
            if self.envs() and self._may_start():
                self._start()

    def _rows_wait(self, *, anybody: bool) -> bool:
        """Does a run-log row wait for a worker: is nobody there to bring it, or did those who are not, for long?"""
        oldest, now = self.jobs.oldest_rows(), self.clock.elapsed()
        if oldest != self._oldest[0]:
            self._oldest = (oldest, now)
        return bool(oldest) and (not anybody or now - self._oldest[1] >= ROWS_SECONDS)

    def look_soon(self) -> None:
        """Look at the queue at the next turn: this process itself has queued something."""
        self._look_at = 0.0

    def _changed(self) -> bool:
        """Did the queue change, or is a look due for time's sake? Spares an idle daemon from reading the queue."""
        change, now = self.jobs.database.change(), self.clock.elapsed()
        if change == self._change and now < self._look_at:
            return False
        self._change = change
        due = self.jobs.next_due(self.envs())
        wait = 1.0 if due is None else min(max(due - self.clock.wall(), 0.0), 1.0)
        self._look_at = now + wait
        return True

    def _reap(self) -> None:
        for gone in self.crew.ended():
            if gone.code:
                self._crashes.append(self.clock.elapsed())
                self.tell("warning", "worker_ended", f"Worker {gone.label} (pid {gone.pid}) {gone.how}.")
            else:
                self.tell("debug", "worker_ended", f"Worker {gone.label} (pid {gone.pid}) had nothing left to do.")
            self._look_at = 0.0

    def _may_start(self) -> bool:
        """Workers that keep ending badly are started slowly."""
        now = self.clock.elapsed()
        self._crashes = [at for at in self._crashes if now - at < 60]
        return len(self._crashes) < CRASHES_A_MINUTE or now - self._crashes[-1] >= SLOW_START_SECONDS

    def _start(self) -> None:
        taken = self.crew.pids()
        label = next(f"{self.name}/{n}" for n in range(1, self.concurrency + 1) if f"{self.name}/{n}" not in taken)
        try:
            pid = self.crew.start(label)
        except OSError as err:
            self._crashes.append(self.clock.elapsed())
            self.tell("error", "worker_not_started", f"Worker {label} could not be started: {err}.")
            return
        self.tell("debug", "worker_started", f"Worker {label} started as pid {pid}.")

    def _end_endless(self, running: Sequence[Job]) -> None:
        """End the workers of claims that this daemon has seen run for too long."""
        now, hours = self.clock.elapsed(), f"{self.max_job_seconds / 3600:g}"
        self._claims = {job.claim: self._claims.get(job.claim, now) for job in running}
        for label, pid in self.crew.pids().items():
            for job in running:
                if job.pid == pid and now - self._claims[job.claim] > self.max_job_seconds:
                    self.tell("warning", "job_too_long", f"Job {job.id} ran for over {hours} h; its worker is ended.")
                    self.crew.kill(label, f"was ended because the job ran for over {hours} h (max_job_hours)")

    def _end_stalled(self, idle: Sequence[str]) -> None:
        """End idle workers that leave the same due job lying."""
        first, now = self.jobs.next_due() if idle else None, self.clock.elapsed()
        if first is None or first != self._left_lying[0]:
            self._left_lying = (first, now)
        elif now - self._left_lying[1] >= STALLED_SECONDS:
            self._left_lying = (None, now)
            for label in idle:
                self.tell("warning", "worker_stalled", f"Worker {label} left a due job lying; it is ended.")
                self.crew.kill(label, "was ended because it left a due job lying")


@dataclass(slots=True)
class Telling:
    """Tells the workers what they should know as soon as it changes; a new one is told at its start."""

    crew: Crew
    news: Callable[[], News]
    every: float = 0.25
    _told: News | None = None

    def tick(self) -> None:
        """Tell what is new."""
        news = self.news()
        if news != self._told:
            self.crew.tell(news)
            self._told = news


@dataclass(slots=True)
class Recovery:
    """Takes back running jobs that nobody runs any more, and ends a worker that let its claim lapse.

    Such a worker is stopped or stuck. It would commit nothing, as its belief has ended; but it keeps a place.
    """

    jobs: Jobs
    crew: Crew
    sightings: Sightings
    processes: Processes
    tell: Tell
    every: float = 1.0

    def tick(self) -> None:
        """Look at every running job."""
        for job in self.jobs.recover(self.sightings, self.processes, self._why):
            self.tell("warning", "job_recovered", f"Job {job.id} is {job.state}: {job.error or job.reason}")
            self._end_worker_of(job)

    def _why(self, job: Job) -> str:
        how = self.crew.fate(job.pid)
        if how:
            return f"Its worker (pid {job.pid}) {how}."
        if job.pid not in self.crew.pids().values():
            return ""
        if self.processes.started_at(job.pid) is None:
            return f"Its worker (pid {job.pid}) has ended."  # and how is not known yet
        return f"Its worker (pid {job.pid}) gave no sign of life for {job.lease_seconds:g} s."

    def _end_worker_of(self, job: Job) -> None:
        busy = {other.pid for other in self.jobs.running()}
        for label, pid in self.crew.pids().items():
            lives = not self.crew.fate(pid) and self.processes.started_at(pid) is not None
            if pid == job.pid and pid not in busy and lives:
                self.tell("warning", "worker_stalled", f"Worker {label} (pid {pid}) lost its job; it is ended.")
                self.crew.kill(label, "was ended because it gave no sign of life")


@dataclass(slots=True)
class Wish:
    """Looks for a person's wish in the queue file."""

    jobs: Jobs
    name: str
    wished: Callable[[], None]
    every: float = 0.25
    _change: int = -1

    def tick(self) -> None:
        """One look, where anything changed."""
        change = self.jobs.database.change()
        if change != self._change:
            self._change = change
            if self.jobs.wish(self.name):
                self.wished()


@dataclass(frozen=True, slots=True)
class Homing:
    """Looks whether the home is still the one that this daemon holds."""

    there: Callable[[], bool]
    lost: Callable[[], None]
    every: float = 5.0

    def tick(self) -> None:
        """One look."""
        if not self.there():
            self.lost()


@dataclass(slots=True)
class Pruning:
    """Deletes jobs that finished longer ago than they are kept."""

    jobs: Jobs
    retention_seconds: float
    every: float = 3600.0

    def tick(self) -> None:
        """Delete what is old, some at a time."""
        for _ in range(MOST_PRUNES):
            if not self.jobs.prune(self.retention_seconds):
                return


@dataclass(slots=True)
class Turns:
    """Gives each duty its turn when it is due: at whole multiples of its period, so that duties share their wakings.

    Args:
        failed: Told of a duty that failed, by its name, with a sentence; not at each turn while it goes on failing.
        works: Told of one that works again.

    Raises (`tick`):
        QueueDamaged: No duty can go on without the queue.
    """

    duties: Sequence[Duty]
    clock: Clock
    failed: Callable[[str, str], None]
    works: Callable[[str], None]
    _due: dict[int, float] = field(default_factory=dict)
    _told: dict[int, tuple[str, float]] = field(default_factory=dict)

    def tick(self) -> float:
        """Run what is due; seconds until the next turn."""
        for number, duty in enumerate(self.duties):
            if self.clock.elapsed() >= self._due.get(number, 0.0):
                self._turn(number, duty)
                self._due[number] = (self.clock.elapsed() // duty.every + 1) * duty.every
        return max(0.0, min(self._due.values(), default=1.0) - self.clock.elapsed())

    def _turn(self, number: int, duty: Duty) -> None:
        try:
            duty.tick()
        except QueueDamaged:
            raise
        except FdagentError as err:
            self._trouble(number, str(err))
        except Exception as err:  # noqa: BLE001  # a mistake of ours, or of the system's, in one duty stops no other
            self._trouble(number, unforeseen(err))
        else:
            if self._told.pop(number, None):
                self.works(type(duty).__name__)

    def _trouble(self, number: int, sentence: str) -> None:
        before, at = self._told.get(number, ("", float("-inf")))
        since = self.clock.elapsed() - at
        if since >= (SAME_TROUBLE_SECONDS if sentence == before else OTHER_TROUBLE_SECONDS):
            self._told[number] = (sentence, self.clock.elapsed())
            self.failed(type(self.duties[number]).__name__, sentence)
