"""One environment's mailbox, as one agent serves it: each poll looks once, judges every open request once, and acts.

Guarantees
- A poll is one listing of each folder and reads of what changed; one request that can't be served, read or written
  hides no other. A poll takes at most `MOST_TAKEN` requests and ends at most `MOST_ENDED`, so that it never keeps its
  agent from beating; the next poll goes on.
- Each request is judged in the order of `machines.request.POLL`, on what the look showed; what is then written is
  judged again with facts read anew, so a look that is old costs a refusal, never a wrong write.
- Status first, then job: after a crash in between the next poll finds the status without a job and queues it.
- What this agent may not serve it leaves to those that may. It takes nothing while its agent record names another start.

Does not touch the status of a request whose job runs: its worker does (rule C9). A file whose name no request may have
can have no status either: it is told once and left alone.
"""

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fdagent.commit import Audit, Committed, commit
from fdagent.errors import FdagentError, QueueDamaged, Unavailable
from fdagent.fleet.folder import File
from fdagent.fleet.look import Look, Me
from fdagent.fleet.progress import results
from fdagent.fleet.records import status_cell, status_key
from fdagent.fleet.serving import Serving
from fdagent.fleet.sweep import Sweeper
from fdagent.ports import Clock, Ids, Store
from fdagent.queue.jobs import Jobs
from machines.request import POLL, REQUEST
from models.job import Job, JobFacts, JobState
from models.slot import Request
from models.status import FINAL, RequestFacts, RequestState, Status
from models.step import Move, Refusal, Step

MOST_TAKEN = 50
MOST_ENDED = 50
"""Requests that one poll takes, and ends without a run."""
MOST_TROUBLES = 3
"""A poll goes on after requests that the store has no answer for, up to so many: then the store is away."""
HELD = ("claim", "take_over", "adopt")
"""Events after which this agent holds the request and its job must be queued."""
ENDED = {"cancel": "cancelled", "expire": "expired", "give_up": "cancelled"}
"""Events that end a request by a poll, and why its queued job is then cancelled."""
UNFINISHED = (JobState.QUEUED, JobState.RUNNING)


def job_key(env: str, request_id: str) -> str:
    """The dedupe key of a request's job: each environment has its own ids; those equal but for case are one key."""
    return f"{keys_of(env)}{request_id.casefold()}"


def keys_of(env: str) -> str:
    """How the dedupe keys of an environment's requests begin."""
    return f"request:{env}:"


@dataclass(frozen=True, slots=True)
class Patience:
    """Spans and counts of the mailbox."""

    poll_seconds: float
    max_attempts: int
    retention_seconds: float


@dataclass(slots=True)
class Mailbox:
    """The mailbox of one environment.

    Args:
        me: This start of this agent.
        serving: What it may serve now.
        holds_name: Does the agent record name this start?
        free: Workers that have nothing to do and nothing waiting; negative when more waits than there are workers.
        stopping: Takes no new work.
        queued: Told that a job was queued.
    """

    env: str
    store: Store
    me: Me
    serving: Callable[[], Serving]
    holds_name: Callable[[], bool]
    free: Callable[[], int]
    stopping: Callable[[], bool]
    jobs: Jobs
    patience: Patience
    clock: Clock
    ids: Ids
    tell: Callable[..., None]
    queued: Callable[[], None]
    audit: Audit | None = None
    look: Look = field(init=False)
    _sweeper: Sweeper = field(init=False)
    _ids: dict[str, str] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)
    """What was told of a request or file that makes trouble."""
    _lapse: float = math.inf
    _free_now: int = 0
    _may_take: int = 0
    _may_end: int = 0
    _troubles: int = 0

    def __post_init__(self) -> None:
        self.look = Look(self.env, self.store, self.me, self.clock)
        kept = self.patience.retention_seconds
        self._sweeper = Sweeper(self.env, self.store, self.look, kept, self.clock, self.ids, self._trouble, self.audit)

    @property
    def every(self) -> float:
        """Seconds between two polls."""
        return self.patience.poll_seconds

    def tick(self) -> None:
        """One poll.

        Raises:
            StoreError: The control root can't be looked at; nothing is claimed, and the next poll looks again.
        """
        self._lapse = math.inf
        self.look.poll()
        self._free_now, self._may_take, self._may_end, self._troubles = self.free(), MOST_TAKEN, MOST_ENDED, 0
        for key in self.look.strange() - self._told.keys():
            self._told[key] = key
            self.tell("warning", "file_ignored", f"No request may have a name such as {key!r}; the file is left alone.")
        self._drop_ended()
        # What may be served is looked up only when somebody asks for something: an idle poll reads nothing.
        if self.look.open:
            serving = self.serving()
            for request_id in self._in_order():
                self._serve(request_id, serving)
        self._sweeper.turn()
        self._lapse = self.look.next_lapse()

    def is_early(self) -> bool:
        """Is a poll worth while before the next one: has a holder been silent for long enough since the last?"""
        return self.clock.elapsed() > self._lapse

    def seen(self, request_id: str) -> tuple[Status | None, RequestFacts]:
        """A request's status, and the facts that its guards would be told now; changes nothing. After `look.poll`."""
        record, _ = status_cell(self.store, request_id).read()
        self._free_now = self.free()
        return record, self._facts(request_id, record, self._job(request_id), self.serving(), fresh=True)

    def _serve(self, request_id: str, serving: Serving) -> None:
        try:
            job = self._job(request_id)
            self._follow(request_id, job)
            self._judge(request_id, job, serving)
        except QueueDamaged:
            raise
        except FdagentError as err:
            self._trouble(request_id, err)
            self._troubles += isinstance(err, Unavailable)
            if self._troubles >= MOST_TROUBLES:
                raise

    def _trouble(self, request_id: str, err: Exception) -> None:
        """One request can't be served just now; told once for each reason."""
        if self._told.get(request_id) != str(err):
            self._told[request_id] = str(err)
            self.tell("warning", "request_trouble", f"Request {request_id}: {err}", request_id=request_id)

    def _drop_ended(self) -> None:
        """Jobs here of requests that are not open any more."""
        for request_id in self.look.ended:
            self._ids.pop(request_id, None)
            self._told.pop(request_id, None)
        for job in self.jobs.unfinished_of(keys_of(self.env)):
            status = self.look.status(job.run_key)
            if status is None and job.run_key not in self.look.open:
                self._drop(job, "handed_over")
            elif status is not None and status.record is not None and status.record.state in FINAL:
                self._drop(job, "cancelled", queued_only=True)

    def _in_order(self) -> Iterator[str]:
        """Open requests for this poll, the oldest due first; where others serve, each agent begins at another place."""
        found = sorted(self.look.open, key=lambda name: (self.look.due_at(name), name))
        start = zlib.crc32(self.me.agent.encode()) % len(found) if found and self.look.others_alive() else 0
        over = 0
        for name in found[start:] + found[:start]:
            # What can only expire waits for its turn without being judged, however much of it there is.
            over += self.look.is_over(name)
            if over <= MOST_ENDED or not self.look.is_over(name):
                yield name

    def _job(self, request_id: str) -> Job | None:
        """The newest job of the request; one of another id that is equal but for case is not it."""
        job = self.jobs.of_key(job_key(self.env, request_id))
        return job if job is not None and job.run_key == request_id else None

    def _judge(self, request_id: str, job: Job | None, serving: Serving) -> None:
        """The first open event of the poll's order, if any."""
        status = self.look.status(request_id)
        if (status is not None and status.problem) or (job is not None and job.state is JobState.RUNNING):
            return
        record = None if status is None else status.record
        facts = self._facts(request_id, record, job, serving, fresh=False)
        for event in POLL[:-1]:
            answer = REQUEST.judge(event, Step(record, self.clock.wall(), facts, ""))
            if isinstance(answer, Move):
                self._act(event, request_id, serving)
                return

    def _act(self, event: str, request_id: str, serving: Serving) -> None:
        """Carry one event out, judged again on what is there now; what a poll has no time for is left to the next."""
        if not self._has_time(event):
            return

        def facts(record: Status | None) -> RequestFacts:
            return self._facts(request_id, record, self._job(request_id), serving, fresh=True)

        answer = self._commit(event, request_id, facts)
        if isinstance(answer, Refusal) or answer.record is None:
            return
        self.tell("info", f"request_{event}", f"Request {request_id} is {answer.record.state}.", request_id=request_id)
        if event in HELD:
            self._queue(request_id, answer.record)
        elif event == "hand_back" or event in ENDED:
            job = self._job(request_id)
            if job is not None:
                self._drop(job, ENDED.get(event, "handed_over"))

    def _has_time(self, event: str) -> bool:
        if event in HELD:
            self._may_take -= 1
            return self._may_take >= 0
        self._may_end -= 1
        return self._may_end >= 0

    def _commit(
        self, event: str, request_id: str, facts: Callable[[Status | None], RequestFacts]
    ) -> Committed[Status] | Refusal:
        return commit(
            REQUEST,
            status_cell(self.store, request_id),
            event,
            op=self.ids.new(),
            facts=facts,
            clock=self.clock,
            ids=self.ids,
            key=f"{self.env}/{status_key(request_id)}",
            audit=self.audit,
        )

    def _facts(
        self, request_id: str, record: Status | None, job: Job | None, serving: Serving, *, fresh: bool
    ) -> RequestFacts:
        """What the guards need to know; `fresh`: read anew from the store."""
        file, twin = self.look.request(request_id, fresh=fresh), self.look.is_twin(request_id)
        me, request = self.me.agent, None if file is None else file.record
        resolved = serving.resolve(request) if request is not None else None
        could = request is not None and resolved is not None and serving.could_serve(request, resolved)
        may = request is not None and resolved is not None and serving.may_serve(request, resolved)
        return RequestFacts(
            agent=me,
            instance=self.me.instance,
            host=self.me.host,
            holds_name=self.holds_name(),
            store_now=self.look.store_now(),
            deadline=None if file is None else self.look.deadline(request_id, request),
            request_file=file is not None,
            cancel_file=self.look.cancelled(request_id, fresh=fresh),
            cancel_seen_seconds=self.look.cancel_seen_seconds(request_id),
            readable=request is not None,
            unreadable_seconds=self.look.unreadable_seconds(request_id),
            unknown_entities=resolved is not None and bool(resolved.unknown),
            may_serve=may and not twin and not self.stopping() and self.holds_name(),
            nobody_may_serve=twin or (request is not None and not could and self.look.nobody_else(request, resolved)),
            take_over=serving.pipeline.take_over,
            # What it has offered itself it takes back only to start it: else it would use up the holds by itself.
            when_free=serving.pipeline.claim == "when_free" or (record is not None and self._is_mine(record)),
            worker_free=self._free_now > 0,
            max_attempts=self.patience.max_attempts,
            holder_gone=record is not None and self.look.holder_gone(record, fresh=fresh),
            has_job=job is not None and job.state is not JobState.CANCELLED,
            worker_on_it=job is not None and job.state is JobState.RUNNING,
            cannot_run_soon=self._cannot_run_soon(record, job, serving, may=may),
            id=request_id,
            env=self.env,
            job_id=self._ids.setdefault(request_id, self.ids.new()[:12]) if job is None else job.id,
            entities=None if resolved is None else resolved.entities,
            reason=self._reason(file, twin=twin),
            refusal=None if may or request is None or resolved is None else serving.refusal(me, request, resolved),
        )

    def _cannot_run_soon(self, record: Status | None, job: Job | None, serving: Serving, *, may: bool) -> bool:
        """Stopping; or another may run it sooner: this one may not any more, or has no worker when it is due again."""
        if record is None or not self._is_mine(record) or job is None or job.state is not JobState.QUEUED:
            return False
        if self.stopping():
            return True
        if not self.look.others_alive() or len(record.holds) >= self.patience.max_attempts:
            return False
        waits = job.attempt > 0 or serving.pipeline.claim == "when_free"
        soon = job.not_before <= self.clock.wall() + self.patience.poll_seconds
        return not may or (waits and soon and self.free() < 0)

    def _is_mine(self, record: Status) -> bool:
        return (record.agent, record.instance) == (self.me.agent, self.me.instance)

    @staticmethod
    def _reason(file: File[Request] | None, *, twin: bool) -> str | None:
        if twin:
            return "Another request has this id but for letter case."
        return file.problem if file is not None and file.problem else None

    def _queue(self, request_id: str, status: Status) -> None:
        """Queue the job of a request that is held: the run key lets finished tables be skipped."""
        file = self.look.request(request_id, fresh=False)
        if file is None or file.record is None:
            return
        new = Job(
            status.job_id or self.ids.new()[:12],
            JobState.QUEUED,
            self.ids.new(),
            self.env,
            run_key=request_id,
            dedupe_key=job_key(self.env, request_id),
            source=f"pipeline:{request_id}",
            entities=file.record.entities or (),
            cascade=bool(file.record.cascade),
            backfill=file.record.backfill == "full",
            max_attempts=self.patience.max_attempts,
            deadline=status.deadline,
        )
        if isinstance(self.jobs.enqueue(new, once=True), Refusal):
            kept = self._job(request_id)
            if kept is None:
                self._report(
                    "fail", request_id, reason="This agent ran a request whose id differs in letter case only."
                )
            elif kept.state is JobState.CANCELLED:
                self.jobs.ask(kept.id, "requeue", JobFacts(status_names_us=True))
        self._free_now -= 1
        self.queued()

    def _drop(self, job: Job, reason: str, *, queued_only: bool = False) -> None:
        """The queued job of a request that is not run here; a running one's worker stands down by itself."""
        if job.state is JobState.QUEUED:
            self.jobs.ask(job.id, "cancel", JobFacts(reason=reason))
        elif job.state is JobState.RUNNING and not job.stop and not queued_only:
            self.jobs.ask(job.id, "ask_to_stop", JobFacts(reason=reason))

    def _follow(self, request_id: str, job: Job | None) -> None:
        """Make job and status agree, where a crash or another agent's write left them apart."""
        status = self.look.status(request_id)
        record = None if status is None else status.record
        if job is None or (status is not None and record is None):
            return
        if record is None or not self._is_mine(record):
            older = record is not None and record.agent == self.me.agent
            if job.state in UNFINISHED and not older:
                self._drop(job, "handed_over")
        elif job.state is JobState.QUEUED and record.state is RequestState.RUNNING:
            self._wait(request_id, job)
        elif job.state is JobState.SUCCEEDED:
            if record.state is RequestState.ACCEPTED:
                self._report("start", request_id)
            self._report("succeed", request_id)
        elif job.state in (JobState.FAILED, JobState.DEAD):
            self._report("fail", request_id, job.error, job.category)
        elif job.state is JobState.CANCELLED and job.reason != "handed_over":
            self._report("fail", request_id, reason=f"Its job was {job.reason}.")

    def _wait(self, request_id: str, job: Job) -> None:
        """Its attempt is over and is to be tried again, unless somebody wishes that it is not."""
        if self.look.cancelled(request_id, fresh=False):
            self._drop(job, "cancelled")
            self._report("fail", request_id, job.error, job.category, reason="It was cancelled before another attempt.")
        else:
            self._report("wait", request_id, job.error, job.category)

    def _report(self, event: str, request_id: str, error: str = "", category: str = "", reason: str = "") -> None:
        """Bring a status of ours to what its job says, as it is at each try."""

        def facts(record: Status | None) -> RequestFacts:
            job = self._job(request_id)
            return RequestFacts(
                agent=self.me.agent,
                instance=self.me.instance,
                store_now=self.look.store_now(),
                request_file=self.look.request(request_id, fresh=True) is not None,
                cancel_file=self.look.cancelled(request_id, fresh=True),
                to_be_tried_again=job is not None and job.state is JobState.QUEUED,
                error=error or None,
                category=category or None,
                reason=reason or None,
                **({} if job is None else results(job.tables, self.me.agent, record)),
            )

        self._commit(event, request_id, facts)
