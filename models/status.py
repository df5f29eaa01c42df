"""The status of a request: who holds it, how far it is, how it ended, and what each arrow of its chart makes of it.

Guarantees: every hold is kept in `agents`, repeats included, so a request that kills whoever runs it can be counted.
A next record keeps what its arrow does not change: the last attempt's error, tables and run ids, and fields this
version does not know. A status of the first version, which names no instance and no holds, reads as one hold by its
agent. Does not decide what may happen: the guards are in `request.py`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from models.errors import BadRecord
from models.jsonrecord import JsonPart, JsonRecord, Later, Time
from models.person import PersonFacts
from models.step import Step


class RequestState(StrEnum):
    """`accepted`: an agent holds it and has not started, or waits to try again."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"


OPEN = frozenset({RequestState.ACCEPTED, RequestState.RUNNING})
FINAL = frozenset(RequestState) - OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult(JsonPart):
    """What became of one table."""

    WHAT: ClassVar[str] = "table result"

    entity: Annotated[str | None, "The table"] = None
    state: Annotated[str | None, "succeeded, failed, skipped, no_change or already_done; running while it runs"] = None
    run_id: Annotated[str | None, "Its row in the run log"] = None
    rows_read: Annotated[int | None, "Rows read"] = None
    rows_written: Annotated[int | None, "Rows inserted and updated"] = None
    quarantined: Annotated[int | None, "Rows put aside by checks"] = None
    by: Annotated[str | None, Later("The agent that finished it")] = None
    error: Annotated[str | None, "Why it failed"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(JsonRecord):
    """`status/<id>.json`. Times of an agent are by the store's clock where it is known, else by its own."""

    WHAT: ClassVar[str] = "status"

    id: Annotated[str, "The request"]
    env: Annotated[str, "The environment whose mailbox it lies in"]
    state: Annotated[RequestState, "How far it is"]
    op: Annotated[str, Later("The write that made this version")] = ""
    agent: Annotated[str | None, "The agent that holds it; of an unclaimed request that ended: who judged it"] = None
    instance: Annotated[str | None, Later("The start of that agent")] = None
    host: Annotated[str | None, "Where that agent runs"] = None
    agents: Annotated[tuple[str, ...] | None, Later("Every agent that held it, one entry a hold, in order")] = None
    job_id: Annotated[str | None, "The job in that agent's queue"] = None
    attempt: Annotated[int | None, "That job's attempt"] = None
    accepted_at: Annotated[Time | None, "When it was first accepted"] = None
    started_at: Annotated[Time | None, "When the attempt shown began"] = None
    updated_at: Annotated[Time | None, "When this version was written"] = None
    finished_at: Annotated[Time | None, "When it ended"] = None
    deadline: Annotated[Time | None, "When it expires unless it has ended"] = None
    offered: Annotated[bool | None, Later("Its holder can't run it soon: any agent may take it")] = None
    entities: Annotated[tuple[str, ...] | None, "The entities the request resolved to"] = None
    tables: Annotated[tuple[TableResult, ...] | None, "What became of each table so far"] = None
    run_ids: Annotated[tuple[str, ...] | None, "Its rows in the run log"] = None
    rows_written: Annotated[int | None, "Rows written by all tables"] = None
    error: Annotated[str | None, "Why the last attempt failed"] = None
    category: Annotated[str | None, "The likely kind of that error"] = None
    reason: Annotated[str | None, "Why it ended or waits, where it was not an error of a run"] = None
    taken_over_from: Annotated[str | None, Later("The agent it was last taken from")] = None
    taken_over_at: Annotated[Time | None, Later("When")] = None

    def __post_init__(self) -> None:
        if not self.id or not self.env:
            raise BadRecord("The status names no request or no environment.")
        if self.attempt is not None and self.attempt < 0:
            raise BadRecord("The status has an attempt below zero.")

    @property
    def holds(self) -> tuple[str, ...]:
        """Every hold; a status that keeps none counts its agent as one."""
        if self.agents is not None:
            return self.agents
        return () if self.agent is None else (self.agent,)

    @property
    def is_offered(self) -> bool:
        """Only an accepted one is: an agent of the first version keeps the mark when it starts it."""
        return self.state is RequestState.ACCEPTED and self.offered is True


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts(PersonFacts):
    """What one judgement of a status needs; the default of each is the answer that opens nothing."""

    agent: str = ""
    instance: str = ""
    """The agent that asks, and its start."""
    host: str = ""
    holds_name: bool = False
    """That start is the one its agent record names."""
    store_now: float | None = None
    """The store's clock, epoch seconds; None: not known."""
    deadline: float | None = None
    """The request's, by `models.slot.deadline_of`; used where the status has none."""
    request_file: bool | None = None
    cancel_file: bool | None = None
    """Is the file there? None: that could not be looked up."""
    cancel_seen_seconds: float = 0.0
    """For how long this agent has seen the cancel file."""
    readable: bool = False
    unreadable_seconds: float = 0.0
    """For how long this agent has seen the same unreadable file."""
    unknown_entities: bool = False
    """It names an entity that the promoted version doesn't have."""
    may_serve: bool = False
    """This agent may: environment, entities, backfill and promoted version."""
    nobody_may_serve: bool = False
    """Neither this agent nor any that lives ever may, the version apart."""
    take_over: bool = False
    """Taking over is switched on."""
    when_free: bool = True
    worker_free: bool = False
    max_attempts: int | None = None
    """The most holds."""
    holder_gone: bool = False
    """`models.liveness.is_gone` of the agent and instance that the status names."""
    has_job: bool | None = None
    """This agent's queue has a job of the request; None: it could not be looked up."""
    worker_on_it: bool = True
    to_be_tried_again: bool = False
    """The attempt is over, and its job went back into the queue."""
    cannot_run_soon: bool = False
    """Promotion, configuration, draining, or no worker free within a poll of its retry time."""
    retention_seconds: float = float("inf")
    id: str = ""
    env: str = ""
    job_id: str | None = None
    attempt: int | None = None
    entities: tuple[str, ...] | None = None
    tables: tuple[TableResult, ...] | None = None
    run_ids: tuple[str, ...] | None = None
    rows_written: int | None = None
    """Progress and results; None leaves what the status has."""
    error: str | None = None
    category: str | None = None
    reason: str | None = None
    refusal: str | None = None
    """Why this agent would not serve it, in a sentence: what a rejected one's status says."""


RequestStep = Step[Status, RequestFacts]


def is_mine(step: RequestStep) -> bool:
    """Does the status name the agent that asks, and this very start of it?"""
    was, facts = step.record, step.facts
    return was is not None and bool(facts.instance) and (was.agent, was.instance) == (facts.agent, facts.instance)


def _at(step: RequestStep) -> float:
    return step.now if step.facts.store_now is None else step.facts.store_now


def _progress(step: RequestStep) -> dict[str, Any]:
    """What is reported, where it is: what is not keeps its value."""
    facts = step.facts
    told = {
        "attempt": facts.attempt,
        "entities": facts.entities,
        "tables": facts.tables,
        "run_ids": facts.run_ids,
        "rows_written": facts.rows_written,
    }
    return {name: value for name, value in told.items() if value is not None}


def _next(step: RequestStep, **changes: Any) -> Status:
    return replace(step.was, op=step.op, updated_at=_at(step), **changes)


def _held(step: RequestStep, **changes: Any) -> Status:
    """One hold more, by the start that asks."""
    facts = step.facts
    who = {"agent": facts.agent, "instance": facts.instance, "host": facts.host}
    return _next(step, **who, agents=(*step.was.holds, facts.agent), job_id=facts.job_id, offered=None, **changes)


def claim(step: RequestStep) -> Status:
    """Accepted: held by this agent for the first time, with its deadline fixed."""
    facts = step.facts
    return Status(
        id=facts.id,
        env=facts.env,
        state=RequestState.ACCEPTED,
        op=step.op,
        agent=facts.agent,
        instance=facts.instance,
        host=facts.host,
        agents=(facts.agent,),
        job_id=facts.job_id,
        accepted_at=_at(step),
        updated_at=_at(step),
        deadline=facts.deadline,
        entities=facts.entities,
    )


def take_over(step: RequestStep) -> Status:
    """Accepted: held by this agent now, which is one hold more; names whom it was taken from."""
    if is_mine(step):
        return _held(step, state=RequestState.ACCEPTED)
    source = {"taken_over_from": step.was.agent, "taken_over_at": _at(step)}
    return _held(step, state=RequestState.ACCEPTED, reason=None, **source)


def adopt(step: RequestStep) -> Status:
    """As it was, held by this start of the same agent, which is one hold more."""
    return _held(step)


def adopt_own(step: RequestStep) -> Status:
    """As it was: the same hold goes on, and its job is queued."""
    return _next(step, job_id=step.facts.job_id)


def start(step: RequestStep) -> Status:
    """Running: a worker begins an attempt."""
    attempt = step.was.attempt if step.facts.attempt is None else step.facts.attempt
    return _next(step, state=RequestState.RUNNING, started_at=_at(step), attempt=attempt, reason=None)


def report(step: RequestStep) -> Status:
    """Running, with its progress."""
    return _next(step, **_progress(step))


def wait(step: RequestStep) -> Status:
    """Accepted: the attempt failed in a way that passes; it is tried again."""
    facts = step.facts
    why = {"error": facts.error, "category": facts.category, "reason": facts.reason}
    return _next(step, state=RequestState.ACCEPTED, **why, **_progress(step))


def hand_back(step: RequestStep) -> Status:
    """Accepted and offered: any agent may take it, this one too."""
    return _next(step, state=RequestState.ACCEPTED, offered=True, reason=step.facts.reason)


def _end(step: RequestStep, state: RequestState, **changes: Any) -> Status:
    facts, at = step.facts, _at(step)
    was = step.record
    if was is None:
        was = Status(
            id=facts.id,
            env=facts.env,
            state=state,
            agent=facts.agent,
            instance=facts.instance,
            host=facts.host,
            agents=(),
            deadline=facts.deadline,
        )
    return replace(was, state=state, op=step.op, updated_at=at, finished_at=at, offered=None, **changes)


def cancel(step: RequestStep) -> Status:
    """Cancelled; what its last attempt left stays in it."""
    return _end(step, RequestState.CANCELLED, reason=step.facts.reason or "It was cancelled.")


def expire(step: RequestStep) -> Status:
    """Expired; what its last attempt left stays in it."""
    gone = step.facts.request_file is False
    why = "Its request file is gone." if gone else "Its deadline passed."
    return _end(step, RequestState.EXPIRED, reason=step.facts.reason or why)


def give_up(step: RequestStep) -> Status:
    """Failed; the error names each agent that held it, and the last attempt's error."""
    was = step.was
    error = f"Given up: held by {', '.join(was.holds) or 'nobody'}; none finished it."
    if step.facts.request_file is False:
        error += " Its request file is gone."
    if was.error:
        error += f" The last error: {was.error}"
    return _end(step, RequestState.FAILED, error=error)


def reject(step: RequestStep) -> Status:
    """Rejected, with the reason."""
    return _end(step, RequestState.REJECTED, reason=step.facts.reason or step.facts.refusal or "No agent can serve it.")


def succeed(step: RequestStep) -> Status:
    """Succeeded: every table is done."""
    return _end(step, RequestState.SUCCEEDED, error=None, category=None, reason=None, **_progress(step))


def fail(step: RequestStep) -> Status:
    """Failed, with the last attempt's error, tables and run ids."""
    facts, was = step.facts, step.was
    why = {"error": facts.error or was.error, "category": facts.category or was.category}
    return _end(step, RequestState.FAILED, **why, reason=facts.reason, **_progress(step))


def abandon(step: RequestStep) -> Status:
    """Failed: a person gave up waiting for its agent."""
    return _end(step, RequestState.FAILED, reason=f"Abandoned by {step.facts.person or 'a person'}.")


def sweep(step: RequestStep) -> None:  # a deletion has no next record
    """It is gone, after its request and cancel files."""
