"""A chart decides, one conditional write carries it out, an audit line says so.

Guarantees
- One committed event is one arrow and one conditional write; a conflict or an unknown outcome is judged again on what
  is there now, with facts gathered anew on every try (rules C2 and C3).
- The same `op` names the write over all its tries; found in the record, the event is committed, whatever the answers
  said. An unknown delete followed by absence is done.
- A refusal is a value. `GaveUp` is the only way to end without an answer.

Does not decide which event comes when: that is the duty that calls.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fdagent.attempt import TRIES, Done, attempt
from fdagent.errors import Unknown
from fdagent.ports import Cell, Clock, Ids
from machines.chart import Chart
from models.step import ABSENT, Move, Record, Refusal, Step, Write

R = TypeVar("R", bound=Record)
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """An event that happened: the record now (None: deleted), its version's tag, and the arrow that was taken.

    `move` is None when the write was recognised by its op rather than seen to succeed on this try's judgement.
    """

    record: R | None
    tag: str
    move: Move[R] | None


@dataclass(frozen=True, slots=True)
class Transition:
    """One committed event, as the audit log tells it; `source` is empty where a lost answer hid it."""

    chart: str
    event: str
    source: str
    dest: str
    key: str
    op: str


Audit = Callable[[Transition], None]
"""Told of each committed event, once."""


def commit(
    chart: Chart[R, F],
    cell: Cell[R],
    event: str,
    *,
    op: str,
    facts: Callable[[R | None], F],
    clock: Clock,
    ids: Ids,
    key: str = "",
    audit: Audit | None = None,
    tries: int = TRIES,
) -> Committed[R] | Refusal:
    """Judge one event on the newest version of one record and write what the chart says.

    Args:
        chart: The record's chart.
        cell: Where the record lies.
        event: What is asked for.
        op: A fresh random id for this one logical write.
        facts: Gathers what the guards need; called on every try.
        clock: The wall clock of the judgement, and the waits.
        ids: Jitter.
        key: Which record it is, for sentences and the audit log.
        audit: Told of the committed event.
        tries: The most writes that are tried.

    Raises:
        GaveUp: The tries are used up.
        StoreError: The store can't be reached or refuses this identity.
    """
    task = _Change(chart, cell, event, op, facts, clock, key)
    answer = attempt(task, clock=clock, ids=ids, tries=tries)
    if audit is not None and isinstance(answer, Committed):
        dest = ABSENT if answer.record is None else str(answer.record.state)
        source = "" if answer.move is None else answer.move.source
        audit(Transition(chart.name, event, source, dest, key, op))
    return answer


@dataclass(slots=True)
class _Change(Generic[R, F]):
    """One event on one record, as a task of the loop."""

    chart: Chart[R, F]
    cell: Cell[R]
    event: str
    op: str
    facts: Callable[[R | None], F]
    clock: Clock
    key: str = ""
    tried: Move[R] | None = None
    deleting: Move[R] | None = None

    @property
    def what(self) -> str:
        """For the sentence when the tries are used up."""
        return f"{self.event} of the {self.chart.name} {self.key}".rstrip()

    def read(self) -> tuple[R | None, str]:
        """The record and its tag."""
        return self.cell.read()

    def own(self, version: tuple[R | None, str], *, unclear: bool) -> Done[Committed[R] | Refusal] | None:
        """Recognise an earlier try of this very write."""
        record, tag = version
        if record is not None and self.chart.wrote(record, self.op):
            move = self.tried if self.tried is not None and self.tried.dest == record.state else None
            return Done(Committed(record, tag, move))
        if record is None and unclear and self.deleting is not None:
            return Done(Committed(None, tag, self.deleting))
        return None

    def decide(self, version: tuple[R | None, str]) -> Move[R] | Done[Committed[R] | Refusal]:
        """Ask the chart, with facts of this very moment."""
        record, _ = version
        answer = self.chart.judge(self.event, Step(record, self.clock.wall(), self.facts(record), self.op))
        return Done(answer) if isinstance(answer, Refusal) else answer

    def write(self, version: tuple[R | None, str], plan: Move[R]) -> Done[Committed[R] | Refusal]:
        """The one conditional write."""
        self.tried = plan
        try:
            tag = self.cell.write(plan.write, plan.next, version[1])
        except Unknown:
            if plan.write is Write.DELETE:
                self.deleting = plan
            raise
        return Done(Committed(plan.next, tag, plan))
