"""The daemon's duties: each `tick` is one bounded piece of work, called again and again by the loop.

Guarantees: no duty sleeps, loops without a bound, or loads a table library; what fails in one is told and tried again
at its next turn, and stops no other. All of the outside is reached through ports, so the simulated world runs the same
duties.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fdagent.errors import FdagentError
from fdagent.ports import Clock, Processes
from fdagent.queue.jobs import Jobs
from fdagent.stores.sightings import Sightings
from models.job import Job

STARTS_A_TICK = 4
MOST_PRUNES = 20
CRASHES_A_MINUTE = 5
"""Workers that end badly more often than this are started more slowly."""
SLOW_START_SECONDS = 30.0


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

    def ask_to_stop(self) -> None:
        """Ask each to stop after the table it runs."""
        ...

    def kill(self, label: str) -> None:
        """End one at once."""
        ...


@dataclass(slots=True)
class Staffing:
    """Starts workers when jobs are due or run-log rows wait, ends those whose job runs for too long.

    Args:
        name: The agent; workers are labelled `<name>/<n>`.
        concurrency: The most workers.
        max_job_seconds: How long an attempt may take.
        envs: The environments that are served now; none: no worker is started.
        tell: Told what happens: a level, an event and a sentence.
    """

    jobs: Jobs
    crew: Crew
    name: str
    concurrency: int
    max_job_seconds: float
    envs: Callable[[], Sequence[str]]
    clock: Clock
    tell: Callable[[str, str, str], None]
    every: float = 0.1
    _crashes: list[float] = field(default_factory=list)
    _change: int = -1
    _look_at: float = 0.0

    def tick(self) -> None:
        """Reap, then start what is needed."""
        self._reap()
        if not self._changed():
            return
        running = self.jobs.running()
        for job in running:
            self._end_endless(job)
        pids = self.crew.pids()
        idle = len(pids) - len({job.pid for job in running} & set(pids.values()))
        wanted = min(self._waiting(), self.concurrency) - idle
        for _ in range(max(0, min(wanted, self.concurrency - len(pids), STARTS_A_TICK))):
            if self.envs() and self._may_start():
                self._start()

    def _changed(self) -> bool:
        """Did the queue change, or is a look due for time's sake? Spares an idle daemon from reading the queue."""
        change, now = self.jobs.database.change(), self.clock.elapsed()
        if change == self._change and now < self._look_at:
            return False
        self._change = change
        due = self.jobs.next_due()
        wait = 1.0 if due is None else min(max(due - self.clock.wall(), 0.0), 1.0)
        self._look_at = now + wait
        return True

    def _waiting(self) -> int:
        """How many workers would find something to do."""
        due = self.jobs.due(self.envs(), self.concurrency)
        return due or int(bool(self.jobs.closed_batches()))

    def _reap(self) -> None:
        for gone in self.crew.ended():
            if gone.code:
                self._crashes.append(self.clock.elapsed())
                how = f"was ended by signal {-gone.code}" if gone.code < 0 else f"ended with exit code {gone.code}"
                self.tell("warning", "worker_ended", f"Worker {gone.label} (pid {gone.pid}) {how}.")
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

    def _end_endless(self, job: Job) -> None:
        started = job.started_at
        label = next((label for label, pid in self.crew.pids().items() if pid == job.pid), "")
        if label and started is not None and self.clock.wall() - started > self.max_job_seconds:
            hours = self.max_job_seconds / 3600
            self.tell("warning", "job_too_long", f"Job {job.id} ran for over {hours:g} hours; its worker is ended.")
            self.crew.kill(label)


@dataclass(slots=True)
class Recovery:
    """Takes back running jobs that nobody runs any more."""

    jobs: Jobs
    sightings: Sightings
    processes: Processes
    tell: Callable[[str, str, str], None]
    every: float = 1.0

    def tick(self) -> None:
        """Look at every running job."""
        for job in self.jobs.recover(self.sightings, self.processes):
            self.tell("warning", "job_recovered", f"Job {job.id} is {job.state}: {job.error or job.reason}")


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
    """Gives each duty its turn when it is due.

    Args:
        failed: Told of a duty that failed, by its name.
    """

    duties: Sequence[Duty]
    clock: Clock
    failed: Callable[[str, FdagentError], None]
    _due: dict[int, float] = field(default_factory=dict)

    def tick(self) -> float:
        """Run what is due; seconds until the next turn."""
        for number, duty in enumerate(self.duties):
            if self.clock.elapsed() >= self._due.get(number, 0.0):
                try:
                    duty.tick()
                except FdagentError as err:
                    self.failed(type(duty).__name__, err)
                self._due[number] = self.clock.elapsed() + duty.every
        return max(0.0, min(self._due.values(), default=1.0) - self.clock.elapsed())
