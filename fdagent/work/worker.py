"""One worker: claims a job, keeps its claim, runs it, ends the attempt and claims the next in one transaction.

Guarantees
- At most one attempt of a job is believed in at a time: the claim is one conditional write, kept by renewals, and the
  runner stops before its next commit once the belief has ended.
- An attempt ends by one arrow: succeed, retry, bury, fail or cancel. If the claim was lost meanwhile, the end is
  refused and nothing is stored.
- Run-log rows outlive any crash: they are flushed when an attempt is over, and again at the next start until the run
  log has them.

Does not decide which jobs there are.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from fdagent.engine import runlog
from fdagent.errors import FdagentError, StoodDown
from fdagent.ports import Clock, Ids, Processes
from fdagent.project import load
from fdagent.project.places import Places, environment_named
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.sightings import Sightings
from fdagent.work.holding import Belief, Keeper
from fdagent.work.runner import Agent, End, Runner, Stopped
from models.job import Job, JobFacts
from models.run import RunRow
from models.step import Refusal

LONGEST_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a job waits before it is tried again: `backoff * 2^(attempt - 1)`, at most `longest`, jittered."""

    backoff_seconds: float = 60.0
    longest_seconds: float = 900.0

    def wait(self, attempt: int, ids: Ids) -> float:
        """Seconds to wait after `attempt`; between half and the whole of the step."""
        step = min(self.backoff_seconds * 2.0 ** (attempt - 1), self.longest_seconds)
        return step * (0.5 + ids.fraction() / 2)


@dataclass(frozen=True, slots=True)
class Told:
    """Whom a worker tells what it does."""

    job: Callable[[Job, str], None] = lambda _job, _what: None
    row: Callable[[RunRow], None] = lambda _row: None
    trouble: Callable[[str], None] = lambda _sentence: None


@dataclass(slots=True)
class Work:
    """A worker in this process."""

    jobs: Jobs
    agent: Agent
    who: Worker
    clock: Clock
    ids: Ids
    processes: Processes
    open_database: Callable[[], Database]
    """A connection of its own for the thread that keeps the claim."""
    retry: Retry = Retry()
    told: Told = Told()
    stopping: Callable[[], bool] = lambda: False
    sightings: Sightings = field(init=False)

    def __post_init__(self) -> None:
        self.sightings = Sightings(self.clock)

    def until_idle(self) -> int:
        """Work until nothing is queued and no running job is left alone; how many attempts were run.

        Raises:
            Stopped: This process was asked to stop while a job ran; the job is left for the next start.
        """
        attempts = 0
        while not self.stopping():
            for left in self.jobs.recover(self.sightings, self.processes):
                self.told.job(left, f"recovered: {left.error or left.reason}")
            self.flush()
            job = self.jobs.claim(self.who)
            while job is not None:
                attempts += 1
                job = self._attempt(job)
            self.flush()
            wait = self._idle_wait()
            if wait is None:
                break
            self.clock.sleep(min(wait, LONGEST_WAIT_SECONDS))
        return attempts

    def flush(self) -> None:
        """Bring run-log rows of ended attempts into the run log; what fails is kept and told."""
        for batch in self.jobs.closed_batches():
            try:
                project = load.load_project(self.agent.project)
                places = Places(project, environment_named(project, batch.env))
                rows = [RunRow.from_text(text) for text in batch.rows]
                runlog.append_rows(places, batch.name, rows, clock=self.clock, ids=self.ids)
            except FdagentError as err:
                self.told.trouble(f"The run log of {batch.env} could not be written; its rows are kept. {err}")
                continue
            self.jobs.drop_batch(batch)

    def _attempt(self, job: Job) -> Job | None:
        """Run one claimed job to the end of its attempt; the next claimed job, if one was due."""
        started = self.clock.elapsed()
        belief = Belief(job.lease_seconds, self.clock)
        belief.confirmed(started)
        self.told.job(job, f"attempt {job.attempt} of {job.max_attempts}")
        runner = Runner(self.jobs, self.agent, belief, self.clock, self.ids, self.stopping, self.told.row)
        try:
            with self._keeper(job, belief):
                end = runner.run(job)
        except StoodDown as err:
            self.told.job(job, f"stood down: {err}")
            return None if self.stopping() else self.jobs.claim(self.who)
        return self._finish(job, end)

    def _keeper(self, job: Job, belief: Belief) -> Keeper:
        """Keeps the claim from a thread, over a connection of its own."""

        def renew() -> bool:
            database = self.open_database()
            try:
                jobs = Jobs(database, clock=self.clock, ids=self.ids)
                return not isinstance(jobs.renew(job, lapsed=not belief.held()), Refusal)
            finally:
                database.close()

        return Keeper(belief, renew, self.clock)

    def _finish(self, job: Job, end: End) -> Job | None:
        now = self.jobs.get(job.id)
        event = _event(job, end, stop=now.stop if now else "")
        facts = JobFacts(
            tables=end.tables,
            error=end.error,
            category=end.category,
            retryable=end.retryable,
            reason=now.stop if now else "",
            wait_seconds=self.retry.wait(job.attempt, self.ids),
        )
        next_for = None if self.stopping() else self.who
        ended, following = self.jobs.finish(job, event, facts, rows=end.rows, next_for=next_for)
        said = f"not ended, {ended}" if isinstance(ended, Refusal) else f"{ended.state}. {ended.error}".strip()
        self.told.job(job, said)
        return following

    def _idle_wait(self) -> float | None:
        """Seconds until there may be work again; None when there is none to wait for."""
        due = self.jobs.next_due()
        waits = [] if due is None else [max(due - self.clock.wall(), 0.05)]
        running = [job for job in self.jobs.unfinished() if job.state == "running"]
        waits += [LONGEST_WAIT_SECONDS for job in running if not self._lives(job)]
        return min(waits) if waits else None

    def _lives(self, job: Job) -> bool:
        """Is the job's worker a process of this machine that is there?"""
        same = bool(job.place) and job.place == self.processes.place()
        return same and self.processes.started_at(job.pid) == job.process_started_at


def _event(job: Job, end: End, *, stop: str) -> str:
    """Which arrow ends the attempt."""
    if not end.error:
        return "succeed"
    if stop:
        return "cancel"
    if not end.retryable:
        return "fail"
    return "retry" if job.attempt < job.max_attempts else "bury"


__all__ = ["Retry", "Stopped", "Told", "Work"]
