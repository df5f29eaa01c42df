"""Why something happens or doesn't: every arrow from a record's present state, open or shut, with each guard's answer.

Guarantees: asks the very charts and guards that decide, so what is explained is what would be done with these facts at
this moment. Pure: whoever calls reads the record and gathers the facts, and an answer is out of date when they are.
"""

from dataclasses import dataclass
from typing import TypeVar

from machines.chart import Chart
from models.step import Check, Record, Step

R = TypeVar("R", bound=Record)
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Answer:
    """One arrow: where its event would lead, with which write, whether it is open, and what each guard says."""

    event: str
    source: str
    dest: str
    write: str
    open: bool
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """What keeps it shut."""
        return tuple(check for check in self.checks if not check.held)


def explain(chart: Chart[R, F], record: R | None, facts: F, now: float) -> list[Answer]:
    """Answer every arrow that starts where the record is.

    Args:
        chart: The record's chart.
        record: The record as read; None: absent.
        facts: What the guards need, gathered now.
        now: Epoch seconds.

    Returns:
        The arrows in the table's order, which for requests is the order of precedence.
    """
    return [
        Answer(
            event,
            arrow.source,
            arrow.dest,
            arrow.write.value,
            not [c for c in answer.checks if not c.held],
            answer.checks,
        )
        for event in chart.events
        for arrow, answer in chart.answers(event, Step(record, now, facts, ""))
    ]
