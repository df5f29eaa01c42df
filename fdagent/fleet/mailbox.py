"""One environment's mailbox, as one agent serves it: each poll looks once, judges every open request once, and acts.

Guarantees
- A poll is one listing of each folder and reads of what changed; one request that can't be served hides no other.
- Each request is judged in the order of `machines.request.POLL`, on what the look showed; what is then written is
  judged again with facts read anew, so a look that is old costs a refusal, never a wrong write.
- Status first, then job: after a crash in between the next poll finds the status without a job and queues it.
- What this agent may not serve it leaves to those that may.

Does not touch the status of a request whose job runs: its worker does (rule C9).
"""

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from fdagent.commit import Audit, Committed, commit
from fdagent.fleet.folder import File
from fdagent.fleet.look import Look, Me
from fdagent.fleet.records import cancel_key, request_cell, request_key, status_cell, status_key, wish_cell
from fdagent.fleet.serving import Serving
from fdagent.ports import Cell, Clock, Ids, Store
from fdagent.queue.jobs import Jobs
from machines.chart import Chart
from machines.request import POLL, REQUEST
from machines.slot import SLOT
from machines.wish import WISH
from models.job import Job, JobFacts, JobState
from models.slot import DAY, Request, SlotFacts
from models.status import RequestFacts, RequestState, Status
from models.step import Move, Refusal, Step
from models.wish import WishFacts

SWEEPS_A_POLL = 100
SWEEP_SECONDS = 600.0
"""Between two looks for what ended long ago."""
HELD = ("claim", "take_over", "adopt")
"""Events after which this agent holds the request and its job must be queued."""
ENDED = {"cancel": "cancelled", "expire": "expired", "give_up": "cancelled"}
"""Events that end a request by a poll, and why its queued job is then cancelled."""


def job_key(request_id: str) -> str:
    """The dedupe key of a request's job; ids equal but for case are one key."""
    return f"request:{request_id.casefold()}"


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
        free: Workers that have nothing to do and nothing waiting.
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
    _ids: dict[str, str] = field(default_factory=dict)
    _free_now: int = 0
    _swept_at: float = float("-inf")

    def __post_init__(self) -> None:
        self.look = Look(self.env, self.store, self.me, self.clock)

    @property
    def every(self) -> float:
        """Seconds between two polls."""
        return self.patience.poll_seconds

    def tick(self) -> None:
        """One poll.

        Raises:
            StoreError: The control root can't be looked at; nothing is claimed, and the next poll looks again.
        """
        self.look.poll()
        self._free_now = self.free()
        for request_id in self.look.ended:
            self._drop_job(request_id, "cancelled", queued_only=True)
        # What may be served is looked up only when somebody asks for something: an idle poll reads nothing.
        serving = self.serving() if self.look.open else None
        for request_id in self._in_order():
            self._follow(request_id)
            if serving is not None:
                self._judge(request_id, serving)
        self._sweep()

    def _in_order(self) -> Iterable[str]:
        """Open requests, the oldest due first; where others serve too, each agent begins at another place."""
        found = sorted(self.look.open, key=lambda name: (self.look.due_at(name), name))
        start = zlib.crc32(self.me.agent.encode()) % len(found) if found and self.look.others_alive() else 0
        return found[start:] + found[:start]

    def _judge(self, request_id: str, serving: Serving) -> None:
        """The first open event of the poll's order, if any."""
        status = self.look.status(request_id)
        if status is not None and status.problem:
            return
        record = None if status is None else status.record
        if self._runs(request_id):
            return
        facts = self._facts(request_id, record, serving, fresh=False)
        for event in POLL[:-1]:
            answer = REQUEST.judge(event, Step(record, self.clock.wall(), facts, ""))
            if isinstance(answer, Move):
                self._act(event, request_id, serving)
                return

    def _act(self, event: str, request_id: str, serving: Serving) -> None:
        """Carry one event out, judged again on what is there now."""
        answer = self._commit(event, request_id, lambda record: self._facts(request_id, record, serving, fresh=True))
        if isinstance(answer, Refusal) or answer.record is None:
            return
        self.tell("info", f"request_{event}", f"Request {request_id} is {answer.record.state}.", request_id=request_id)
        if event in HELD:
            self._queue(request_id, answer.record)
        elif event == "hand_back":
            self._drop_job(request_id, "handed_over")
        elif event in ENDED:
            self._drop_job(request_id, ENDED[event])

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

    def _facts(self, request_id: str, record: Status | None, serving: Serving, *, fresh: bool) -> RequestFacts:
        """What the guards need to know; `fresh`: read anew from the store."""
        file = self.look.request(request_id, fresh=fresh)
        request = None if file is None else file.record
        resolved = serving.resolve(request) if request is not None else None
        could = request is not None and resolved is not None and serving.could_serve(request, resolved)
        may = request is not None and resolved is not None and serving.may_serve(request, resolved)
        twin = self.look.is_twin(request_id)
        job = self.jobs.of_key(job_key(request_id))
        mine = record is not None and (record.agent, record.instance) == (self.me.agent, self.me.instance)
        waiting = job is not None and job.state is JobState.QUEUED
        return RequestFacts(
            agent=self.me.agent,
            instance=self.me.instance,
            host=self.me.host,
            holds_name=self.holds_name(),
            store_now=self.look.store_now(),
            deadline=self.look.deadline(request_id, request),
            request_file=file is not None,
            cancel_file=self.look.cancelled(request_id, fresh=fresh),
            cancel_seen_seconds=self.look.cancel_seen_seconds(request_id),
            readable=request is not None,
            unreadable_seconds=self.look.unreadable_seconds(request_id),
            unknown_entities=resolved is not None and resolved.unknown,
            may_serve=may and not twin and not self.stopping(),
            nobody_may_serve=twin or (request is not None and not could and self.look.nobody_else(request, resolved)),
            take_over=serving.pipeline.take_over,
            when_free=serving.pipeline.claim == "when_free",
            worker_free=self._free_now > 0,
            max_attempts=self.patience.max_attempts,
            holder_gone=record is not None and self.look.holder_gone(record, request, resolved, fresh=fresh),
            has_job=job is not None and job.state is not JobState.CANCELLED,
            worker_on_it=job is not None and job.state is JobState.RUNNING,
            cannot_run_soon=mine and waiting and self._cannot_run_soon(job, may=may),
            id=request_id,
            env=self.env,
            job_id=self._ids.setdefault(request_id, self.ids.new()[:12]),
            entities=None if resolved is None else resolved.entities,
            reason=self._reason(file, twin=twin),
        )

    def _cannot_run_soon(self, job: Job | None, *, may: bool) -> bool:
        """Stopping, not served any more, or no worker free by the time it is due again."""
        soon = job is not None and job.not_before <= self.clock.wall() + self.patience.poll_seconds
        begun = job is not None and job.attempt > 0
        return self.stopping() or not may or (begun and soon and self.free() < 0)

    @staticmethod
    def _reason(file: File[Request] | None, *, twin: bool) -> str | None:
        if twin:
            return "Another open request has this id but for letter case."
        return file.problem if file is not None and file.problem else None

    def _queue(self, request_id: str, status: Status) -> None:
        """Queue the job of a request that is held: the run key lets finished tables be skipped."""
        file = self.look.request(request_id, fresh=False)
        request = file.record if file is not None and file.record is not None else Request()
        key = job_key(request_id)
        new = Job(
            status.job_id or self.ids.new()[:12],
            JobState.QUEUED,
            self.ids.new(),
            self.env,
            run_key=request_id,
            dedupe_key=key,
            source=f"pipeline:{request_id}",
            entities=request.entities or (),
            cascade=bool(request.cascade),
            backfill=request.backfill == "full",
            max_attempts=self.patience.max_attempts,
            deadline=status.deadline,
        )
        if isinstance(self.jobs.enqueue(new, once=True), Refusal):
            kept = self.jobs.of_key(key)
            if kept is not None and kept.state is JobState.CANCELLED:
                self.jobs.ask(kept.id, "requeue", JobFacts(status_names_us=True))
        self._free_now -= 1
        self.queued()

    def _drop_job(self, request_id: str, reason: str, *, queued_only: bool = False) -> None:
        """The queued job of a request that is not run here; a running one's worker stands down by itself."""
        job = self.jobs.of_key(job_key(request_id))
        if job is not None and job.state is JobState.QUEUED:
            self.jobs.ask(job.id, "cancel", JobFacts(reason=reason))
        elif job is not None and job.state is JobState.RUNNING and not job.stop and not queued_only:
            self.jobs.ask(job.id, "ask_to_stop", JobFacts(reason=reason))

    def _runs(self, request_id: str) -> bool:
        job = self.jobs.of_key(job_key(request_id))
        return job is not None and job.state is JobState.RUNNING

    def _follow(self, request_id: str) -> None:
        """Make job and status agree, where a crash or another agent's write left them apart."""
        status, job = self.look.status(request_id), self.jobs.of_key(job_key(request_id))
        record = None if status is None else status.record
        if job is None or (status is not None and record is None):
            return
        mine = record is not None and (record.agent, record.instance) == (self.me.agent, self.me.instance)
        if not mine or record is None:
            older = record is not None and record.agent == self.me.agent
            if job.state in (JobState.QUEUED, JobState.RUNNING) and not older:
                self._drop_job(request_id, "handed_over")
        elif job.state is JobState.QUEUED and record.state is RequestState.RUNNING:
            facts = RequestFacts(to_be_tried_again=True, error=job.error or None, category=job.category or None)
            self._report("wait", request_id, facts)
        elif job.state is JobState.SUCCEEDED:
            if record.state is RequestState.ACCEPTED:
                self._report("start", request_id, RequestFacts())
            self._report("succeed", request_id, RequestFacts())
        elif job.state in (JobState.FAILED, JobState.DEAD):
            self._report("fail", request_id, RequestFacts(error=job.error or None, category=job.category or None))
        elif job.state is JobState.CANCELLED and job.reason == "cancelled":
            self._report("fail", request_id, RequestFacts(reason="A person cancelled its job."))

    def _report(self, event: str, request_id: str, told: RequestFacts) -> None:
        """Bring a status of ours to what its job says."""

        def facts(_: Status | None) -> RequestFacts:
            return replace(
                told,
                agent=self.me.agent,
                instance=self.me.instance,
                store_now=self.look.store_now(),
                request_file=self.look.request(request_id, fresh=True) is not None,
                cancel_file=self.look.cancelled(request_id, fresh=True),
            )

        self._commit(event, request_id, facts)

    def _sweep(self) -> None:
        """Remove what ended long ago: request file, cancel file, then status, so that it can't be claimed again."""
        now = self.clock.elapsed()
        if now - self._swept_at < SWEEP_SECONDS:
            return
        self._swept_at = now
        at, kept = self.look.store_now(), max(self.patience.retention_seconds, DAY)
        old = [
            (name, status)
            for name, status in self.look.finals()
            if at is not None and status.finished_at is not None and at - status.finished_at > kept
        ]
        for name, status in old[:SWEEPS_A_POLL]:
            self._sweep_one(name, status)
        for name in list(self.look.orphan_cancels())[:SWEEPS_A_POLL]:
            self._sweep_wish(name, None)

    def _sweep_one(self, request_id: str, status: Status) -> None:
        facts = SlotFacts(
            store_now=self.look.store_now(),
            status_final=True,
            finished_at=status.finished_at,
            deadline=status.deadline,
            retention_seconds=self.patience.retention_seconds,
        )
        self._delete(SLOT, request_cell(self.store, request_id), request_key(request_id), facts)
        self._sweep_wish(request_id, status)

        def final(_: Status | None) -> RequestFacts:
            return RequestFacts(
                store_now=self.look.store_now(),
                request_file=self.look.request(request_id, fresh=True) is not None,
                cancel_file=self.look.cancelled(request_id, fresh=True),
                retention_seconds=self.patience.retention_seconds,
            )

        self._commit("sweep", request_id, final)

    def _sweep_wish(self, request_id: str, status: Status | None) -> None:
        cell = wish_cell(self.store, request_id)
        blob = self.store.read(cancel_key(request_id))
        at = self.look.store_now()
        if blob is None or at is None:
            return
        facts = WishFacts(
            store_now=at,
            status_final=status is not None,
            finished_at=None if status is None else status.finished_at,
            deadline=None if status is None else status.deadline,
            retention_seconds=self.patience.retention_seconds,
            orphan=status is None,
            file_written_at=None if blob.age is None else at - blob.age,
        )
        self._delete(WISH, cell, cancel_key(request_id), facts)

    def _delete(self, chart: Chart[Any, Any], cell: Cell[Any], key: str, facts: SlotFacts | WishFacts) -> None:
        commit(
            chart,
            cell,
            "sweep",
            op=self.ids.new(),
            facts=lambda _: facts,
            clock=self.clock,
            ids=self.ids,
            key=f"{self.env}/{key}",
            audit=self.audit,
        )
