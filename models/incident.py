"""An incident: one problem of one workload, as an entry of the ledger.

Guarantees: what happened is named by an occurrence (a failed run's id, a slot), and an occurrence that an entry has
seen never counts, opens or reopens again, also for an evaluator that reads late; a person's word ends an entry for
what it has seen, not for what comes after. Does not detect anything, and does not write: an entry is written with its
ledger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from models.jsonrecord import JsonPart, Later, Time
from models.person import PersonFacts
from models.step import Guard, Step, guard

REOPEN_SECONDS = 24 * 3600.0
"""A problem that comes back within this long reopens its entry; later it is a new one."""
SEEN = "seen"
"""Where the evidence keeps the occurrences, newest last."""
MOST_SEEN = 20


class IncidentState(StrEnum):
    """`acknowledged`: a person has seen it, and it is still so."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class Resolution(StrEnum):
    """How it ended."""

    RECOVERED = "recovered"
    CLEARED = "cleared"
    BY_HAND = "by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemKey(JsonPart):
    """What makes two problems the same one."""

    WHAT: ClassVar[str] = "key"

    kind: Annotated[str, "run_failed, freshness, objective, agent_offline, slot_missed or cannot_evaluate"]
    workload: Annotated[str, "The entity, agent or schedule"]
    env: Annotated[str, "The environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident(JsonPart):
    """One entry of `incidents[]`."""

    WHAT: ClassVar[str] = "incident"

    id: Annotated[str, "The entry"]
    key: Annotated[ProblemKey, "What makes it the same problem"]
    state: Annotated[IncidentState, "Whether it is still so"]
    op: Annotated[str, Later("The write that last changed this entry")] = ""
    kind: Annotated[str | None, "As in the key"] = None
    workload: Annotated[str | None, "As in the key"] = None
    name: Annotated[str | None, "The workload as people call it"] = None
    env: Annotated[str | None, "As in the key"] = None
    title: Annotated[str | None, "One line for people"] = None
    text: Annotated[str | None, "What happened, in sentences"] = None
    evidence: Annotated[Mapping[str, Any] | None, "The figures behind it; `seen` lists its occurrences"] = None
    opened_at: Annotated[Time | None, "When it opened, or opened again"] = None
    last_seen_at: Annotated[Time | None, "When it was last seen to be so"] = None
    occurrences: Annotated[int | None, "How often it happened"] = None
    opened_by: Annotated[str | None, "The evaluator that opened it"] = None
    owner: Annotated[str | None, "The entity's owner"] = None
    team: Annotated[str | None, "The entity's team"] = None
    criticality: Annotated[str | None, "The entity's criticality"] = None
    classification: Annotated[str | None, "The likely category of the error"] = None
    escalated_at: Annotated[Time | None, "When it was escalated"] = None
    escalated_to: Annotated[str | None, "To whom"] = None
    acknowledged_by: Annotated[str | None, "Who acknowledged it"] = None
    acknowledged_at: Annotated[Time | None, "When"] = None
    resolved_by: Annotated[str | None, "Who resolved it: a person, or the evaluator"] = None
    resolved_at: Annotated[Time | None, "When"] = None
    resolution: Annotated[Resolution | None, "How it ended"] = None
    announced: Annotated[str | None, "The last thing that was told of it: open, escalated or resolved"] = None
    notes: Annotated[tuple[str, ...] | None, "What people and evaluators noted, oldest first"] = None

    @property
    def seen(self) -> tuple[str, ...]:
        """The occurrences it has counted, the newest last."""
        found = (self.evidence or {}).get(SEEN)
        return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list | tuple) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFacts(PersonFacts):
    """What one judgement of an entry needs; the default of each is the answer that opens nothing."""

    holds: bool = False
    """The condition holds now."""
    over: bool = False
    """There is evidence that it does not hold any more."""
    workload_gone: bool = False
    """Its entity, objective or agent record is no longer there."""
    occurrence: str = ""
    """What happened, by the id of the run or slot; empty: nothing new."""
    stands: bool = True
    """The ledger has an entry for the same problem that this belongs to: `models.ledger.stands`."""
    surplus: bool = False
    """It is beyond the newest resolved ones that are kept: `models.ledger.surplus`."""
    escalate_after_seconds: float = float("inf")
    escalate_to: str | None = None
    told: str = ""
    """What a message that was sent said of it: open, escalated or resolved; empty: none was sent."""
    note: str = ""
    new: Incident | None = None
    """The entry as it would open or be seen now, with its evidence; the occurrence is added to it."""
    evaluator: str = ""


IncidentStep = Step[Incident, IncidentFacts]
IncidentGuard = Guard[Incident, IncidentFacts]


@guard("the condition holds", "the condition does not hold")
def holds(step: IncidentStep) -> bool:
    """It is so now."""
    return step.facts.holds


@guard("no entry stands for the same problem", "an entry stands for the same problem")
def none_stands(step: IncidentStep) -> bool:
    """It is a new problem."""
    return not step.facts.stands


@guard("it happened again", "nothing happened that it has not counted")
def new_occurrence(step: IncidentStep) -> bool:
    """There is an occurrence that this entry has not seen."""
    return bool(step.facts.occurrence) and step.facts.occurrence not in step.was.seen


@guard("there is evidence that it is over", "there is no evidence that it is over")
def over(step: IncidentStep) -> bool:
    """A later run succeeded, it is fresh again, the agent beats again."""
    return step.facts.over


@guard("what it is about is no longer there", "what it is about is still there")
def workload_gone(step: IncidentStep) -> bool:
    """Its entity, objective or agent record was removed."""
    return step.facts.workload_gone


@guard("it was resolved within the last 24 hours", "it was resolved more than 24 hours ago, or at an unknown time")
def lately_resolved(step: IncidentStep) -> bool:
    """It may be the same problem again."""
    at = step.was.resolved_at
    return at is not None and step.now - at < REOPEN_SECONDS


@guard("nobody acknowledged it for as long as it may wait", "it may still wait for somebody to acknowledge it")
def unattended(step: IncidentStep) -> bool:
    """Open for `escalate_after_minutes`."""
    at = step.was.opened_at
    return at is not None and step.now - at >= step.facts.escalate_after_seconds


@guard("it was escalated", "it was not escalated yet")
def escalated(step: IncidentStep) -> bool:
    """Once is enough."""
    return step.was.escalated_at is not None


@guard("a message about it was sent", "no message about it was sent that is not marked yet")
def told(step: IncidentStep) -> bool:
    """Somebody sent a message that the entry does not know of."""
    return bool(step.facts.told) and step.facts.told != step.was.announced


@guard("enough newer ones are resolved", "it is among the newest resolved ones, which are kept")
def surplus(step: IncidentStep) -> bool:
    """Beyond the newest 200."""
    return step.facts.surplus


def _noted(step: IncidentStep) -> tuple[str, ...] | None:
    was = None if step.record is None else step.was.notes
    return (*(was or ()), step.facts.note) if step.facts.note else was


def _next(step: IncidentStep, **changes: Any) -> Incident:
    return replace(step.was, op=step.op, notes=_noted(step), **changes)


def _evidence(step: IncidentStep) -> Mapping[str, Any]:
    """What is known now, and the occurrences so far with this one."""
    facts = step.facts
    seen = () if step.record is None else step.record.seen
    if facts.occurrence:
        seen = (*seen, facts.occurrence)[-MOST_SEEN:]
    shown = (facts.new.evidence if facts.new is not None else None) or {}
    return {**shown, SEEN: list(seen)}


def open_new(step: IncidentStep) -> Incident:
    """Open, with its evidence and who found it."""
    if step.facts.new is None:
        raise AssertionError("open without an incident")
    return replace(
        step.facts.new,
        state=IncidentState.OPEN,
        op=step.op,
        evidence=_evidence(step),
        opened_at=step.now,
        last_seen_at=step.now,
        occurrences=1,
        opened_by=step.facts.evaluator,
        announced=None,
    )


def _again(step: IncidentStep) -> dict[str, Any]:
    new, was = step.facts.new, step.was
    told = {} if new is None else {"title": new.title, "text": new.text, "classification": new.classification}
    count = (was.occurrences or 1) + 1
    return {**told, "evidence": _evidence(step), "last_seen_at": step.now, "occurrences": count}


def see(step: IncidentStep) -> Incident:
    """As it was, with one occurrence more."""
    return _next(step, **_again(step))


def acknowledge(step: IncidentStep) -> Incident:
    """Acknowledged by a person."""
    return _next(step, state=IncidentState.ACKNOWLEDGED, acknowledged_by=step.facts.person, acknowledged_at=step.now)


def _resolve(step: IncidentStep, resolution: Resolution, by: str) -> Incident:
    ended = {"resolution": resolution, "resolved_by": by, "resolved_at": step.now}
    return _next(step, state=IncidentState.RESOLVED, **ended)


def recover(step: IncidentStep) -> Incident:
    """Resolved: it is over."""
    return _resolve(step, Resolution.RECOVERED, step.facts.evaluator)


def clear(step: IncidentStep) -> Incident:
    """Resolved: what it was about is no longer there."""
    return _resolve(step, Resolution.CLEARED, step.facts.evaluator)


def resolve(step: IncidentStep) -> Incident:
    """Resolved by a person, for what it has seen so far."""
    return _resolve(step, Resolution.BY_HAND, step.facts.person)


def reopen(step: IncidentStep) -> Incident:
    """Open again, told again, and to be escalated again."""
    ended = {"resolution": None, "resolved_by": None, "resolved_at": None}
    attended = {"acknowledged_by": None, "acknowledged_at": None, "escalated_at": None, "escalated_to": None}
    fresh = {"state": IncidentState.OPEN, "opened_at": step.now, "announced": None}
    return _next(step, **fresh, **ended, **attended, **_again(step))


def escalate(step: IncidentStep) -> Incident:
    """Open, marked as escalated."""
    return _next(step, escalated_at=step.now, escalated_to=step.facts.escalate_to)


def announce(step: IncidentStep) -> Incident:
    """As it was, with what was told."""
    return _next(step, announced=step.facts.told)


def forget(step: IncidentStep) -> None:  # a deletion has no next record
    """It is no longer listed."""
