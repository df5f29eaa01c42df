"""A lease: one writer of one table at a time, for a span that its holder renews.

Guarantees: it is taken by one conditional write, so two takers never both win; it lapses when a reader has seen it
unchanged for the whole span by its own clock, whatever the times in it say; a job claim knows its own lease by an op
it wrote, so two workers of one agent are strangers to each other.

Does not fence: a holder that was paused may still have a commit in flight. The table's own conditional commit is the
fence behind it.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, ClassVar

from models.jsonrecord import JsonRecord, Later, Time
from models.person import PersonFacts
from models.step import Guard, Step, guard


class LeaseState(StrEnum):
    """A lease is held or absent."""

    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(JsonRecord):
    """`leases/<layer>.<table>.json`, or `leases/_maintenance.json`."""

    WHAT: ClassVar[str] = "lease"

    table: Annotated[str, "`<layer>.<table>`, or `_maintenance`"]
    op: Annotated[str, Later("The write that made this version; its holder is whoever wrote it")] = ""
    agent: Annotated[str | None, "The holder's agent"] = None
    instance: Annotated[str | None, Later("That agent's start")] = None
    host: Annotated[str | None, "Where it runs"] = None
    boot: Annotated[str | None, Later("The holder's place: host, boot identity and pid namespace in one word")] = None
    pid: Annotated[int | None, "The worker's process"] = None
    process_started_at: Annotated[
        float | None, Later("When that process started, as its place counts: compared for equality only")
    ] = None
    job_id: Annotated[str | None, "The job it is held for"] = None
    request_id: Annotated[str | None, "The request that job runs, if one"] = None
    acquired_at: Annotated[Time | None, "When it was taken, by the holder's clock"] = None
    renewed_at: Annotated[Time | None, "When it was last renewed, by the holder's clock"] = None
    expires_at: Annotated[Time | None, "`renewed_at` and the span; shown to people, never decides"] = None
    seconds: Annotated[float | None, "Its span: unchanged for that long, it has lapsed"] = None

    @property
    def state(self) -> LeaseState:
        """Held: a lease that nobody holds is not there."""
        return LeaseState.HELD


def span_seconds(lease: Lease) -> float | None:
    """The span to watch a lease for; None when it does not say, and then it never lapses."""
    if lease.seconds is not None and lease.seconds > 0:
        return lease.seconds
    since = lease.acquired_at if lease.renewed_at is None else lease.renewed_at
    if since is None or lease.expires_at is None or lease.expires_at <= since:
        return None
    return lease.expires_at - since


def has_lapsed(lease: Lease, unchanged_seconds: float | None) -> bool:
    """Was it seen unchanged for its whole span? `unchanged_seconds` is by the reader's own clock, None: not watched."""
    span = span_seconds(lease)
    return span is not None and unchanged_seconds is not None and unchanged_seconds >= span


def is_left_alone(lease: Lease, unchanged_seconds: float | None) -> bool:
    """Was it seen unchanged for longer than its holder, if it lived, would leave it: half its span?

    A holder renews it at a third. Not enough to take it: its agent must be known to be gone, too.
    """
    span = span_seconds(lease)
    return span is not None and (unchanged_seconds or 0.0) >= span / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFacts(PersonFacts):
    """What one judgement of a lease needs; the default of each is the answer that opens nothing."""

    ops: frozenset[str] = frozenset()
    """The ops that this job claim wrote, or tried to write, on this lease."""
    believed: bool = False
    """To its holder: its own span, counted from the start of the last confirmed renewal, has not ended."""
    lapsed: bool = False
    """Seen unchanged for its whole span, by this reader's own clock: see `has_lapsed`."""
    left_alone: bool = False
    """This very version was watched not to be renewed, and its agent is lost, or an earlier start of this one: see
    `is_left_alone`."""
    process_gone: bool = False
    """Its worker's process has ended: `models.place.process_gone`."""
    new: Lease | None = None
    """The lease to take, without op and times."""


LeaseStep = Step[Lease, LeaseFacts]
LeaseGuard = Guard[Lease, LeaseFacts]


@guard("this claim wrote its last version", "another claim wrote its last version")
def mine(step: LeaseStep) -> bool:
    """Its op is one that this job claim wrote."""
    return bool(step.was.op) and step.was.op in step.facts.ops


@guard("this claim still believes that it holds it", "this claim's own span has ended")
def believed(step: LeaseStep) -> bool:
    """The holder's own clock says so: it must stop believing before anybody else may see it lapsed."""
    return step.facts.believed


@guard("it was seen unchanged for its whole span", "it was not yet seen unchanged for its whole span")
def lapsed(step: LeaseStep) -> bool:
    """Whoever's it is, the asker's own too."""
    return step.facts.lapsed


@guard(
    "nobody is behind it: its agent is lost or replaced, or its worker's process is gone",
    "its agent is not known to be lost or replaced, nor its worker to be gone",
)
def left_behind(step: LeaseStep) -> bool:
    """Nobody is behind it, so its span need not be waited out."""
    return step.facts.left_alone or step.facts.process_gone


def acquire(step: LeaseStep) -> Lease:
    """Held by this claim, for one span from now; what the old version held beside stays."""
    new = step.facts.new
    if new is None or new.seconds is None:
        raise AssertionError("acquire without a lease that has a span")
    kept = {} if step.record is None else step.record.extra
    taken = replace(new, op=step.op, acquired_at=step.now, extra={**kept, **new.extra})
    return _renewed(taken, step.now)


def renew(step: LeaseStep) -> Lease:
    """Held for one more span."""
    return _renewed(replace(step.was, op=step.op), step.now)


def _renewed(lease: Lease, now: float) -> Lease:
    return replace(lease, renewed_at=now, expires_at=now + (span_seconds(lease) or 0.0))


def release(step: LeaseStep) -> None:  # a deletion has no next record
    """It is free; its holder stopped believing before it asked."""


def break_off(step: LeaseStep) -> None:  # a deletion has no next record
    """It is free; the holder finds out at its next renewal, and its commit in flight may conflict."""
