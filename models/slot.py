"""A request as its author wrote it, and the slots of shared schedules.

Guarantees: a slot's id is made of the schedule's id and the due time in UTC, never of the time somebody noticed, so
every agent that knows the schedule makes the same id; a request never changes once written, and is swept only when
its status is final, old enough and past the deadline, so that no late write can bring it back to life.

Does not compute daily and weekly due times: those need a time zone's rules.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from models.errors import BadRecord, BadTime
from models.ids import MAX_SHARED_SCHEDULE_LENGTH, check_id, shown
from models.jsonrecord import JsonRecord, Later, Time
from models.step import Guard, Step, guard
from models.times import ahead, reached, stamp

DAY = 86_400.0
OPEN_SECONDS = DAY
"""How long a request without a deadline may wait and run."""
LONGEST_SLOT_SECONDS = 6 * 3600.0
"""How long a slot may be claimed at most, however far off the next one is."""
PREFIX = "sched-"
_SLOT = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)Z", re.ASCII)


class SlotState(StrEnum):
    """A request is there or not; its progress is in its status."""

    POSTED = "posted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(JsonRecord):
    """`requests/<id>.json`. Everything is optional: an empty object asks for all of the environment."""

    WHAT: ClassVar[str] = "request"

    entities: Annotated[tuple[str, ...] | None, "Names and globs of what to run; missing: all of the environment"] = (
        None
    )
    cascade: Annotated[bool | None, "Also everything downstream"] = None
    backfill: Annotated[str | None, "`full`: rebuild from all source rows"] = None
    deadline: Annotated[Time | None, "When it expires; missing: 24 hours after it was submitted or first seen"] = None
    submitted_by: Annotated[str | None, "Who asks, in words"] = None
    submitted_at: Annotated[Time | None, "When, by the author's clock"] = None
    schedule: Annotated[str | None, "Of a slot: its schedule's id"] = None
    slot: Annotated[str | None, "Of a slot: its due time in UTC, such as `20270115T0900Z`"] = None
    due_at: Annotated[Time | None, "Of a slot: the same as a time"] = None
    op: Annotated[str, Later("The write that made it, when an agent did; tells an own write from another's")] = ""

    def __post_init__(self) -> None:
        if self.entities is not None and not self.entities:
            raise BadRecord("The request has an empty list of entities.", fix="Leave entities out to ask for all.")
        if self.backfill not in (None, "full"):
            raise BadRecord(f"The request has backfill {shown(self.backfill or '')}, only 'full' is known.")

    @property
    def state(self) -> SlotState:
        """It is there."""
        return SlotState.POSTED


def deadline_of(request: Request, first_seen: float) -> float:
    """When a request expires, in epoch seconds of the store's clock.

    A `submitted_at` later than the moment this reader first saw it comes from a wrong clock and counts as that moment.
    """
    if request.deadline is not None:
        return request.deadline
    submitted = first_seen if request.submitted_at is None else min(request.submitted_at, first_seen)
    return submitted + OPEN_SECONDS


def slot_name(due: float) -> str:
    """The due time as a slot names it, `20270115T0900Z`.

    Raises:
        BadTime: It is not a whole minute.
    """
    if due % 60:
        raise BadTime(f"{stamp(due)} is not a whole minute.", fix="Shared schedules are due at whole minutes.")
    return datetime.fromtimestamp(due, UTC).strftime("%Y%m%dT%H%MZ")


def slot_due(name: str) -> float:
    """The due time of a slot, in epoch seconds.

    Raises:
        BadTime: It is not such a name.
    """
    found = _SLOT.fullmatch(name)
    try:
        if found is not None:
            year, month, day, hour, minute = (int(part) for part in found.groups())
            return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()
    except ValueError:
        pass  # a month 13: the same sentence as for any other text that is no slot
    raise BadTime(f"{shown(name)} is not a slot.", fix="A slot is a due time in UTC such as 20270115T0900Z.")


def slot_id(schedule: str, due: float) -> str:
    """The request id of a slot: the same on every agent.

    Raises:
        BadId: The schedule's id may not be part of a path, or is longer than 40 characters.
        BadTime: The due time is not a whole minute.
    """
    check_id(schedule, "shared schedule id", longest=MAX_SHARED_SCHEDULE_LENGTH)
    return f"{PREFIX}{schedule}-{slot_name(due)}"


def slot_deadline(due: float, next_due: float) -> float:
    """Until when a slot may be claimed: the next one, at most six hours on."""
    return min(next_due, due + LONGEST_SLOT_SECONDS)


def every(minutes: int, now: float) -> tuple[float, float]:
    """The newest due time at or before `now` and the next after it, for every N minutes: multiples since the epoch."""
    if minutes < 1:
        raise ValueError(f"a shared schedule can't be due every {minutes} minutes")
    span = minutes * 60.0
    due = now // span * span
    return due, due + span


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFacts:
    """What must be known before something of a request is swept."""

    store_now: float | None = None
    """The store's clock, epoch seconds."""
    status_final: bool = False
    finished_at: float | None = None
    deadline: float | None = None
    retention_seconds: float = float("inf")
    """Less than a day counts as a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFacts(SweepFacts):
    """What one judgement of a request file needs; the default of each is the answer that opens nothing."""

    new: Request | None = None
    """The request to post; its `due_at` and `deadline` are judged."""
    asked: bool = False
    """A person or a pipeline asked for it."""


SlotStep = Step[Request, SlotFacts]
SlotGuard = Guard[Request, SlotFacts]


def _new(step: SlotStep) -> Request:
    if step.facts.new is None:
        raise AssertionError("post without a request")
    return step.facts.new


@guard("it is a slot of a shared schedule", "it is not a slot of a shared schedule")
def of_a_schedule(step: SlotStep) -> bool:
    """A schedule posts it, not a person."""
    return step.facts.new is not None and step.facts.new.slot is not None


@guard("it is due", "it is not due yet")
def due(step: SlotStep) -> bool:
    """Its due time has come, by the store's clock."""
    return step.facts.new is not None and reached(step.facts.new.due_at, step.facts.store_now)


@guard("its deadline is ahead", "its deadline has passed, or is not known")
def before_deadline(step: SlotStep) -> bool:
    """There is still time, by the store's clock."""
    return step.facts.new is not None and ahead(step.facts.new.deadline, step.facts.store_now)


@guard("a person or a pipeline asked", "nobody asked")
def asked(step: SlotStep) -> bool:
    """Somebody wants it."""
    return step.facts.asked


@guard("its status is final", "its status is not final")
def status_final(step: Step[Any, Any]) -> bool:
    """The request has ended."""
    facts: SweepFacts = step.facts
    return facts.status_final


@guard("it ended longer ago than it is kept", "it is kept for a while after it ended")
def kept_long_enough(step: Step[Any, Any]) -> bool:
    """The retention has passed, counted from the finish, by the store's clock."""
    facts: SweepFacts = step.facts
    return long_ago(facts.finished_at, facts.store_now, facts.retention_seconds)


@guard("its deadline has passed", "its deadline is ahead, or is not known")
def past_deadline(step: Step[Any, Any]) -> bool:
    """No late write can bring it back to life: whoever finds it sees it expired."""
    facts: SweepFacts = step.facts
    return reached(facts.deadline, facts.store_now)


def long_ago(moment: float | None, now: float | None, retention_seconds: float) -> bool:
    """Has the retention (at least a day) passed since `moment`? No, when a time is not known."""
    return moment is not None and now is not None and now - moment > max(retention_seconds, DAY)


def post(step: SlotStep) -> Request:
    """The request, stamped with the write that made it."""
    return replace(_new(step), op=step.op)


def sweep(step: SlotStep) -> None:  # a deletion has no next record
    """It is gone; the cancel file and the status follow."""
