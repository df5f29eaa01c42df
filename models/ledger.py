"""The ledger of incidents: one record that every evaluator reads and writes.

Guarantees: each entry keeps the op of the write that last changed it, so an evaluator recognises its own write also
after another one wrote over it; which entry a problem belongs to is decided here, in one place, so any number of
evaluators that read the same ledger decide the same. Every open incident is kept, and the newest 200 resolved.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, ClassVar

from models.incident import REOPEN_SECONDS, Incident, IncidentState, ProblemKey
from models.jsonrecord import JsonRecord, Later, Time
from models.step import Guard, Step, guard

KEPT_RESOLVED = 200


class LedgerState(StrEnum):
    """A ledger is kept, once somebody opened the first incident."""

    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger(JsonRecord):
    """`incidents/incidents.json`."""

    WHAT: ClassVar[str] = "ledger"

    incidents: Annotated[tuple[Incident, ...], "The entries, oldest first"]
    op: Annotated[str, Later("The write that made this version")] = ""
    updated_at: Annotated[Time | None, "When it was written, by the writer's clock"] = None

    @property
    def state(self) -> LedgerState:
        """It is there."""
        return LedgerState.KEPT

    def wrote(self, op: str) -> bool:
        """Did the write `op` land, whoever wrote after it? The newest op, or one an entry keeps (rule C3)."""
        return bool(op) and (self.op == op or any(entry.op == op for entry in self.incidents))


def _same(one: ProblemKey, other: ProblemKey) -> bool:
    return (one.kind, one.workload, one.env) == (other.kind, other.workload, other.env)


def newest(entries: tuple[Incident, ...], key: ProblemKey) -> Incident | None:
    """The entry that the problem belongs to if it goes on: an unresolved one first, else the last resolved."""
    found = [entry for entry in entries if _same(entry.key, key)]
    unresolved = [entry for entry in found if entry.state is not IncidentState.RESOLVED]
    belongs = unresolved or sorted(found, key=_resolved_at)
    return belongs[-1] if belongs else None


def stands(entries: tuple[Incident, ...], key: ProblemKey, occurrence: str, now: float) -> bool:
    """Does an entry stand for this problem, so that no new one may open?

    It does when it is unresolved, was resolved within 24 hours, or has seen this very occurrence.
    """
    return any(
        entry.state is not IncidentState.RESOLVED
        or now - _resolved_at(entry) < REOPEN_SECONDS
        or (bool(occurrence) and occurrence in entry.seen)
        for entry in entries
        if _same(entry.key, key)
    )


def surplus(entries: tuple[Incident, ...], entry_id: str) -> bool:
    """Are 200 resolved entries newer than this resolved one?"""
    resolved = sorted(
        (entry for entry in entries if entry.state is IncidentState.RESOLVED), key=_resolved_at, reverse=True
    )
    return entry_id in {entry.id for entry in resolved[KEPT_RESOLVED:]}


def _resolved_at(entry: Incident) -> float:
    """An unknown time is long ago."""
    return float("-inf") if entry.resolved_at is None else entry.resolved_at


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """What one judgement of the ledger needs: the entries as they are to be, judged on the ledger just read."""

    entries: tuple[Incident, ...] | None = None
    """None: nothing was judged."""


LedgerStep = Step[Ledger, LedgerFacts]
LedgerGuard = Guard[Ledger, LedgerFacts]


@guard("an entry changes", "no entry changes")
def changed(step: LedgerStep) -> bool:
    """There is something to write."""
    entries = step.facts.entries
    return entries is not None and entries != (() if step.record is None else step.record.incidents)


def write(step: LedgerStep) -> Ledger:
    """The ledger with all that this evaluation changes, in one write."""
    was = Ledger(incidents=()) if step.record is None else step.record
    return replace(was, incidents=step.facts.entries or (), op=step.op, updated_at=step.now)
