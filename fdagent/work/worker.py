"""One worker: claims a job, keeps its claim, runs it, ends the attempt and claims the next in one transaction.

Guarantees
- At most one attempt of a job is believed in at a time: the claim is one conditional write, kept by renewals, and the
  runner stops before its next commit once the belief has ended.
- An attempt ends by one arrow: succeed, retry, bury, fail or cancel. If the claim was lost meanwhile, the end is
  refused and nothing is stored. An attempt that met only busy tables, or that was stopped, is given back uncounted.
- Run-log rows outlive any crash: they are flushed when nothing is due and every few seconds of work, and again at the
  next start until the run log has them.

Does not decide which jobs there are.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fdagent.commit import Audit
from fdagent.errors import FdagentError, HandedOver, StoodDown
from fdagent.ports import Clock, Ids, Processes
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.sightings import Sightings
from fdagent.work.flusher import Flusher
from fdagent.work.holding import Belief, Keeper
from fdagent.work.leases import Holder
from fdagent.work.news import News
from fdagent.work.requesthold import RequestHold
from fdagent.work.runner import Agent, End, Runner, Stopped, Wishes
from fdagent.work.tablehold import TableHolds
from models.job import Job, JobFacts, JobState
from models.run import RunRow
from models.step import Refusal

POLL_SECONDS = 0.05
"""Between two looks into the queue; a look that finds nothing new costs a few microseconds."""
RECOVER_SECONDS = 1.0
STATUS_EVENTS = {"succeed": "succeed", "retry": "wait", "fail": "fail", "bury": "fail", "cancel": "fail"}
"""The arrow of a request's status that follows an arrow of its job."""
BUSY_SECONDS = 24 * 3600.0
"""How long a job may be given back uncounted because its tables are busy, where it has no deadline."""


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


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed job, and when the claim was begun, in elapsed seconds: its belief counts from there."""

    job: Job
    asked: float


@dataclass(slots=True)
class Work:
    """A worker in this process.

    Args:
        who: This worker; its environments are those of `news`, where that is given.
        open_database: A connection of its own for the thread that keeps the claim.
        news: What its daemon told last.
    """

    jobs: Jobs
    agent: Agent
    who: Worker
    wishes: Wishes
    clock: Clock
    ids: Ids
    processes: Processes
    open_database: Callable[[], Database]
    retry: Retry = Retry()
    told: Told = Told()
    audit: Audit | None = None
    news: Callable[[], News] | None = None
    sightings: Sightings = field(init=False)
    holds: TableHolds = field(init=False)
    flusher: Flusher = field(init=False)

    def __post_init__(self) -> None:
        self.sightings = Sightings(self.clock)
        agent, who = self.agent, self.who
        holder = Holder(agent.name, agent.instance, agent.host, who.place, who.pid, who.process_started_at)
        self.holds = TableHolds(
            holder,
            agent.table_lease_seconds,
            self.sightings,
            self.clock,
            self.ids,
            self.processes,
            news=self.news or News,
            told=self.told.trouble,
            audit=self.audit,
        )
        self.flusher = Flusher(self.jobs, agent.project, self.wishes, self.clock, self.ids, self.told.trouble)

    def until_idle(self) -> int:
        """Work until nothing is queued and no running job is left alone; how many attempts were run."""
        attempts = 0
        while not self.wishes.stopping():
            self.recover()
            self.flusher.flush()
            attempts += self.work_off()
            wait = self._idle_wait()
            if wait is None:
                break
            self.clock.sleep(min(wait, RECOVER_SECONDS))
        self.flusher.flush()
        return attempts

    def serve(self, idle_seconds: float) -> None:
        """Work until this process is asked to stop, or nothing was due for `idle_seconds`."""
        if not self.work_off():
            self.flusher.flush()
        idle_from = self.clock.elapsed()
        while not self.wishes.stopping() and self.clock.elapsed() - idle_from < idle_seconds:
            if self.work_off():
                idle_from = self.clock.elapsed()
            else:
                self.flusher.flush_if_late()
                self.clock.sleep(POLL_SECONDS)

    def recover(self) -> None:
        """Take back what nobody runs any more."""
        for job in self.jobs.recover(self.sightings, self.processes):
            back = "recovered" if job.state is JobState.QUEUED else str(job.state)
            self.told.job(job, f"{back}. {job.error or job.reason}")

    def work_off(self) -> int:
        """Run what is due, one job after the other; how many attempts that were."""
        attempts = 0
        claimed = self._claim()
        while claimed is not None:
            attempts += 1
            claimed = self._attempt(claimed)
        if attempts:
            self.flusher.flush()
        return attempts

    def _claim(self) -> Claimed | None:
        who = self._me()
        due = self.jobs.next_due(who.envs)
        if self.wishes.stopping() or due is None or due > self.clock.wall():
            return None
        asked = self.clock.elapsed()
        job = self.jobs.claim(who)
        return None if job is None else Claimed(job, asked)

    def _me(self) -> Worker:
        """This worker, for the environments that its daemon serves now."""
        return self.who if self.news is None else replace(self.who, envs=self.news().envs)

    def _attempt(self, claimed: Claimed) -> Claimed | None:
        """Run one claimed job to the end of its attempt; the next claimed job, if one was due."""
        job = claimed.job
        belief = Belief(job.lease_seconds, self.clock)
        belief.confirmed(claimed.asked)
        self.told.job(job, f"attempt {job.attempt} of {job.max_attempts}")
        runner = Runner(
            self.jobs,
            self.agent,
            belief,
            self.holds,
            self.wishes,
            self.clock,
            self.ids,
            self.told.row,
            self.audit,
        )
        try:
            with self._keeper(job, belief):
                # Rows of the attempts before this one: a run log that is slow must not cost this one its claim.
                self.flusher.flush_if_due()
                with self.flusher.meanwhile(self.open_database):
                    end = runner.run(job)
        except HandedOver as err:
            self.told.job(job, f"handed over: {err}")
            return self._handed_over(job)
        except StoodDown as err:
            self.told.job(job, f"stood down: {err}")
            return self._claim()
        except Stopped as err:
            end = End(
                err.tables,
                err.rows,
                error="It was stopped before all its tables were run.",
                retryable=True,
                unspent=True,
            )
        return self._finish(job, end, runner.request)

    def _handed_over(self, job: Job) -> Claimed | None:
        """The request is another's: the job ends here and leaves the status alone."""
        asked = self.clock.elapsed()
        next_for = None if self.wishes.stopping() else self._me()
        _, following = self.jobs.finish(job, "cancel", JobFacts(reason="handed_over"), next_for=next_for)
        return None if following is None else Claimed(following, asked)

    def _keeper(self, job: Job, belief: Belief) -> Keeper:
        """Keeps the claim from a thread, over a connection of its own."""

        def renew() -> bool:
            database = self.open_database()
            try:
                jobs = Jobs(database, clock=self.clock, ids=self.ids)
                return not isinstance(jobs.renew(job, lapsed=not belief.held()), Refusal)
            finally:
                database.close()

        return Keeper(belief, renew, self.clock, self.told.trouble)

    def _finish(self, job: Job, end: End, request: RequestHold | None) -> Claimed | None:
        """End the attempt by the arrow that fits, and claim the next job; the request's status follows its job."""
        now = self.jobs.get(job.id)
        stop = now.stop if now else ""
        stopping = self.wishes.stopping()
        unspent = end.unspent and (stopping or self.clock.wall() < _busy_until(job))
        event = _event(job, end, stop=stop, unspent=unspent)
        if event == "retry" and request is not None and self._unwanted(request):
            event = "fail"
        facts = JobFacts(
            tables=end.tables,
            error=end.error,
            category=end.category,
            retryable=end.retryable,
            reason=stop,
            wait_seconds=0.0 if stopping else self.retry.wait(job.attempt, self.ids),
            unspent=unspent,
        )
        next_for = None if stopping else self._me()
        asked = self.clock.elapsed()
        ended, following = self.jobs.finish(job, event, facts, rows=end.rows, next_for=next_for)
        said = f"not ended, {ended}" if isinstance(ended, Refusal) else f"{ended.state}. {ended.error}".strip()
        self.told.job(job, said)
        if request is not None and not isinstance(ended, Refusal) and ended.reason != "handed_over":
            self._end_request(request, event, end)
        return None if following is None else Claimed(following, asked)

    @staticmethod
    def _unwanted(request: RequestHold) -> bool:
        """Somebody wishes that the request is cancelled: this attempt, which has ended, is its last."""
        try:
            return request.cancelled()
        except FdagentError:
            return False  # not known: it is asked again before the next attempt

    def _end_request(self, request: RequestHold, event: str, end: End) -> None:
        """What can't be said now the daemon's next poll says."""
        try:
            request.end(STATUS_EVENTS[event], end.tables, error=end.error, category=end.category)
        except FdagentError as err:
            self.told.trouble(f"The status of request {request.request_id} is behind its job. {err}")

    def _idle_wait(self) -> float | None:
        """Seconds until there may be work again; None when there is none to wait for."""
        due = self.jobs.next_due()
        waits = [] if due is None else [max(due - self.clock.wall(), POLL_SECONDS)]
        waits += [RECOVER_SECONDS for job in self.jobs.running() if not self._lives(job)]
        return min(waits) if waits else None

    def _lives(self, job: Job) -> bool:
        """Is the job's worker a process of this machine that is there?"""
        same = bool(job.place) and job.place == self.processes.place()
        return same and self.processes.started_at(job.pid) == job.process_started_at


def _event(job: Job, end: End, *, stop: str, unspent: bool) -> str:
    """Which arrow ends the attempt."""
    if not end.error:
        return "succeed"
    if stop:
        return "cancel"
    if not end.retryable:
        return "fail"
    return "retry" if unspent or job.attempt < job.max_attempts else "bury"


def _busy_until(job: Job) -> float:
    return job.deadline if job.deadline is not None else job.created_at + BUSY_SECONDS


if __name__ == "__main__":
    # The name a worker's process is started by; its pipes are another module's business.
    from fdagent.work.process import main

    main()
