"""A job: one run of some entities of one environment, in an agent's own queue.

Guarantees: a `Job` is frozen; its invariants are checked when it is made; each next-record function changes exactly
what its arrow means and stamps the writer's op. A job's run key never depends on a queue that may be lost: the request
id, or agent/schedule/due time, or the job id.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from models.errors import BadRecord
from models.step import Guard, Step, guard

SET_BACK_SECONDS = 5.0
"""A clock that moves by less is being corrected, not set."""
CANCEL_REASONS = ("cancelled", "expired", "handed_over")


class JobState(StrEnum):
    """`failed`: trying again would fail the same way. `dead`: every try is used."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


FINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.DEAD, JobState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the queue. Times are seconds since the epoch by this machine's wall clock."""

    id: str
    state: JobState
    op: str
    env: str
    run_key: str
    dedupe_key: str
    source: str = "cli"
    """`cli`, `schedule:<id>` or `pipeline:<request id>`."""
    entities: tuple[str, ...] = ()
    """Names and globs; empty: all of the environment."""
    cascade: bool = False
    backfill: bool = False
    version: int = 1
    attempt: int = 0
    max_attempts: int = 3
    not_before: float = 0.0
    deadline: float | None = None
    claim: str = ""
    """The op of the claim that runs it; empty unless running."""
    worker: str = ""
    place: str = ""
    pid: int = 0
    process_started_at: float = 0.0
    lease_seconds: float = 60.0
    renewals: int = 0
    stop: str = ""
    """Why somebody asked it to stop; empty: nobody did."""
    tables: Mapping[str, Any] = field(default_factory=dict)
    """Per entity: its state, rows and run id, for progress and for skipping what is done."""
    reason: str = ""
    error: str = ""
    category: str = ""
    created_at: float = 0.0
    started_at: float | None = None
    updated_at: float = 0.0
    finished_at: float | None = None

    def __post_init__(self) -> None:
        for broken, sentence in (
            (not self.id or not self.op or not self.run_key or not self.dedupe_key, "lacks an id, op or key"),
            (self.version < 1 or self.attempt < 0 or self.max_attempts < 1, "has a count out of range"),
            (self.attempt > self.max_attempts, "has more attempts than it may have"),
            ((self.state == JobState.RUNNING) is not bool(self.claim), "is claimed without running, or the reverse"),
            (
                (self.state in FINAL) is not (self.finished_at is not None),
                "has finished without a time, or the reverse",
            ),
            (bool(self.stop) and self.stop not in CANCEL_REASONS, "is asked to stop for an unknown reason"),
        ):
            if broken:
                raise BadRecord(f"Job {self.id!r} {sentence}.")


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What one judgement of a job needs to know beyond its row; the default of each is the answer that opens nothing."""

    key_free: bool = False
    """No unfinished row has its dedupe key (of a request: no kept row at all)."""
    worker_free: bool = False
    claim: str = ""
    """The claim op of whoever asks."""
    believed: bool = False
    """To its holder: its own span, counted from the last confirmed renewal, has not ended."""
    lapsed: bool = False
    """To others: the row was seen unchanged for its whole lease span."""
    process_gone: bool = False
    """The worker's process is gone: same place, and no such process with that start time."""
    status_names_us: bool = False
    status_final: bool = False
    by_a_person: bool = False
    retention_seconds: float = float("inf")
    error: str = ""
    category: str = ""
    retryable: bool = False
    reason: str = ""
    wait_seconds: float = 0.0
    unspent: bool = False
    """The attempt could not begin its work (a table was busy, the agent was stopped), so it is not counted."""
    worker: str = ""
    place: str = ""
    pid: int = 0
    process_started_at: float = 0.0
    tables: Mapping[str, Any] | None = None
    new: Job | None = None
    """The job to enqueue."""


JobStep = Step[Job, JobFacts]
JobGuard = Guard[Job, JobFacts]


@guard("no other job stands for the same work", "a job for the same work is already there")
def key_free(step: JobStep) -> bool:
    """Its dedupe key is not taken."""
    return step.facts.key_free


@guard("its time has come", "its time has not come yet")
def due(step: JobStep) -> bool:
    """`not_before` has passed, or was reckoned by a clock that was set back since, so that it says nothing."""
    return step.was.not_before <= step.now or reckoned_ahead(step.was.updated_at, step.now)


def reckoned_ahead(updated_at: float, now: float) -> bool:
    """Was a row written by a clock that was well ahead of what it says now?"""
    return updated_at - now > SET_BACK_SECONDS


@guard("a worker is free", "no worker is free")
def worker_free(step: JobStep) -> bool:
    """Whoever asks has a free worker."""
    return step.facts.worker_free


@guard("it runs under this claim", "another claim runs it")
def mine(step: JobStep) -> bool:
    """The claim that runs it is the asker's."""
    return bool(step.was.claim) and step.was.claim == step.facts.claim


@guard("its claim still believes that it runs it", "its claim's own span has ended")
def believed(step: JobStep) -> bool:
    """See `JobFacts.believed`."""
    return step.facts.believed


@guard("its worker is gone, or its lease has lapsed", "its worker still lives and its lease has not lapsed")
def left_alone(step: JobStep) -> bool:
    """Nobody runs it any more."""
    return step.facts.lapsed or step.facts.process_gone


@guard("another attempt may end differently", "another attempt would fail the same way")
def retryable(step: JobStep) -> bool:
    """The error is of a kind that passes."""
    return step.facts.retryable


@guard("it has attempts left", "it has no attempts left")
def attempts_left(step: JobStep) -> bool:
    """The attempt that runs is not its last, or isn't counted."""
    return step.facts.unspent or step.was.attempt < step.was.max_attempts


@guard("somebody asked it to stop", "nobody asked it to stop")
def stop_asked(step: JobStep) -> bool:
    """A stop was asked for."""
    return bool(step.was.stop)


@guard("a known reason is given", "no known reason is given: cancelled, expired or handed_over")
def has_reason(step: JobStep) -> bool:
    """Why it is cancelled."""
    return step.facts.reason in CANCEL_REASONS


@guard("it was handed over to another agent", "it was not handed over")
def handed_over(step: JobStep) -> bool:
    """It was cancelled because another agent took its request."""
    return step.was.reason == "handed_over"


@guard("its request names this agent", "its request does not name this agent")
def status_names_us(step: JobStep) -> bool:
    """The request came back."""
    return step.facts.status_names_us


@guard("a person asked", "only a person may ask")
def by_a_person(step: JobStep) -> bool:
    """Not something the agent does by itself."""
    return step.facts.by_a_person


@guard(
    "its request has ended, so it must be asked anew with `fdagent request`",
    "its request has not ended",
)
def status_final(step: JobStep) -> bool:
    """The request it stands for has a final status, which never changes."""
    return step.facts.status_final


@guard("it finished longer ago than it is kept", "it is kept for a while after it finished")
def kept_long_enough(step: JobStep) -> bool:
    """The retention has passed, counted from the finish."""
    finished = step.was.finished_at
    return finished is not None and step.now - finished > step.facts.retention_seconds


def _next(step: JobStep, **changes: Any) -> Job:
    """The next version: the writer's op, the time, and what changes."""
    was = step.was
    return replace(was, op=step.op, version=was.version + 1, updated_at=step.now, **changes)


def _progress(step: JobStep) -> Mapping[str, Any]:
    return step.was.tables if step.facts.tables is None else step.facts.tables


def enqueue(step: JobStep) -> Job:
    """The new job, stamped."""
    if step.facts.new is None:
        raise AssertionError("enqueue without a job")
    return replace(step.facts.new, op=step.op, created_at=step.now, updated_at=step.now)


def claim(step: JobStep) -> Job:
    """Running, one attempt more, named by this claim."""
    facts = step.facts
    return _next(
        step,
        state=JobState.RUNNING,
        attempt=step.was.attempt + 1,
        claim=step.op,
        worker=facts.worker,
        place=facts.place,
        pid=facts.pid,
        process_started_at=facts.process_started_at,
        started_at=step.now,
        renewals=0,
        reason="",
        error="",
        category="",
    )


def renew(step: JobStep) -> Job:
    """Seen to live, with its progress."""
    return _next(step, renewals=step.was.renewals + 1, tables=_progress(step))


def _finish(step: JobStep, state: JobState, **changes: Any) -> Job:
    return _next(step, state=state, claim="", finished_at=step.now, tables=_progress(step), **changes)


def succeed(step: JobStep) -> Job:
    """Every table is done."""
    return _finish(step, JobState.SUCCEEDED)


def fail(step: JobStep) -> Job:
    """Trying again would fail the same way."""
    return _finish(step, JobState.FAILED, error=step.facts.error, category=step.facts.category)


def bury(step: JobStep) -> Job:
    """Every try is used."""
    return _finish(step, JobState.DEAD, error=step.facts.error, category=step.facts.category)


def cancel(step: JobStep) -> Job:
    """It ends without an outcome of its own."""
    return _finish(step, JobState.CANCELLED, reason=step.facts.reason)


def retry(step: JobStep) -> Job:
    """Back into the queue, after a wait; an attempt that is not counted is given back."""
    return _next(
        step,
        state=JobState.QUEUED,
        claim="",
        attempt=step.was.attempt - step.facts.unspent,
        not_before=step.now + step.facts.wait_seconds,
        tables=_progress(step),
        error=step.facts.error,
        category=step.facts.category,
    )


LEFT = "Its worker ended without finishing it."


def requeue_left(step: JobStep) -> Job:
    """Recovered: back into the queue at once; the attempt counts."""
    return _next(step, state=JobState.QUEUED, claim="", not_before=step.now, error=step.facts.error or LEFT)


def bury_left(step: JobStep) -> Job:
    """Recovered, but that was its last attempt."""
    return _finish(step, JobState.DEAD, error=step.facts.error or LEFT)


def cancel_left(step: JobStep) -> Job:
    """Recovered, and somebody had asked it to stop."""
    return _finish(step, JobState.CANCELLED, reason=step.was.stop)


def ask_to_stop(step: JobStep) -> Job:
    """Its worker will see the wish."""
    return _next(step, stop=step.facts.reason)


def requeue(step: JobStep) -> Job:
    """The request came back to this agent."""
    return _again(step)


def revive(step: JobStep) -> Job:
    """A person wants it tried again, with all its attempts."""
    return _again(step)


def _again(step: JobStep) -> Job:
    return _next(
        step,
        state=JobState.QUEUED,
        attempt=0,
        not_before=step.now,
        stop="",
        reason="",
        error="",
        category="",
        started_at=None,
        finished_at=None,
    )


def prune(step: JobStep) -> None:  # a deletion has no next record
    """It is gone."""
