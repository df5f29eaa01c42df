"""The chart engine: a table of arrows becomes a `transitions.Machine` that only judges.

Guarantees
- A table is checked when its module is imported: an unknown state, something that is not a guard, the same arrow twice,
  an unreachable state, or a state without a way to a final one (where the chart has final ones) is an ImportError.
- Each arrow is exactly one conditional write, and which one follows from its ends (`models.step.write_of`).
- `judge` has no side effect outside the step it is given, so a judgement can be thrown away; the machine holds no model
  and no queue, so threads may share it.
- A refusal names every guard that said no, not only the first.

Does not guarantee that at most one arrow of an event is open: that is a property of the guards, proved by tests over
generated records and facts. This is the only file that imports `transitions`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

from transitions import Event, EventData, Machine, Transition
from transitions.core import Condition

from models.errors import FdagentError
from models.step import ABSENT, Guard, Move, Record, Refusal, Step, Write, write_of

R = TypeVar("R", bound=Record)
F = TypeVar("F")


class ChartError(FdagentError, ImportError):
    """A table of arrows that is not a chart. Raised while its module is imported."""


@dataclass(frozen=True, slots=True)
class Row(Generic[R, F]):
    """One line of a table.

    Args:
        event: What is asked for.
        source: The state it starts from, or several.
        dest: The state it leads to; None stays in the state it started from.
        then: Makes the next record from the step; answers None where the record is deleted.
        guards: What must hold, all of it.
    """

    event: str
    source: str | tuple[str, ...]
    dest: str | None
    then: Callable[[Step[R, F]], R | None]
    guards: tuple[Guard[R, F], ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Its start states, always as a tuple."""
        return (self.source,) if isinstance(self.source, str) else self.source


class Arrow(Transition):
    """A transition that is one conditional write."""

    dest: str  # `transitions` allows None for an internal transition; a chart has none

    def __init__(self, source: str, dest: str, *rest: Any, row: Row[Any, Any], **options: Any) -> None:
        super().__init__(source, dest, *rest, **options)
        self.row = row
        self.write: Write = write_of(source, dest)

    @property
    def guards(self) -> tuple[Guard[Any, Any], ...]:
        """The guards of its row."""
        return self.row.guards

    def execute(self, event_data: EventData) -> bool:
        """Ask every guard, not only up to the first no, so that a refusal can name each; fix the move where all hold.

        A chart has no other callbacks, so none are looked for.
        """
        checks = [condition.check(event_data) for condition in self.conditions]
        if not all(checks):
            return False
        step = cast("Step[Any, Any]", event_data.model)
        step.move = self._move(step)
        event_data.machine.set_state(self.dest, step)
        return True

    def _move(self, step: Step[Any, Any]) -> Move[Any]:
        record = self.row.then(step)
        if (record is None) is not (self.write is Write.DELETE):
            raise AssertionError(f"{self.row.event}: a next record where it deletes, or none where it writes")
        if record is not None and str(record.state) != self.dest:
            raise AssertionError(f"{self.row.event}: the next record is {record.state}, the arrow leads to {self.dest}")
        return Move(self.row.event, self.source, self.dest, self.write, record, tuple(step.checks))


class _Ask(Condition):
    """One guard as `transitions` asks it; its answer is kept in the step."""

    def __init__(self, guard: Guard[Any, Any], target: bool = True) -> None:
        super().__init__(guard.judge, target)
        self.guard = guard

    def check(self, event_data: EventData) -> bool:
        """Ask it, and keep the answer in the step."""
        step = cast("Step[Any, Any]", event_data.model)
        answer = self.guard.check(step)
        step.checks.append(answer)
        return answer.held


Arrow.condition_cls = _Ask


class _Event(Event):
    """An event of a machine that has no callbacks, queue or models: nothing is asked but its arrows."""

    def trigger(self, model: Any, *args: Any, **kwargs: Any) -> bool:
        """Ask the arrows from the step's state, in the table's order, up to the first that is open."""
        asked = EventData(None, self, self.machine, model, args, kwargs)
        return any(arrow.execute(asked) for arrow in self.transitions[model.state])


class _Machine(Machine):
    transition_cls = Arrow
    event_cls = _Event


def written_last(record: Record, op: str) -> bool:
    """Is this version the write `op`? Enough where one version has one writer."""
    return record.op == op


class Chart(Generic[R, F]):
    """One record's chart, built once at import.

    Args:
        name: The record's name, for sentences and pages.
        states: The record's states; `absent` is added.
        rows: The table.
        final: States that nothing leads out of, but for `absent` and what a row says.
        within: For an entry of a larger record: the chart of the record that is really written.
        wrote: Does a version show that the write `op` landed? A record with several writers looks at its entries too.
    """

    def __init__(
        self,
        name: str,
        *,
        states: type[StrEnum],
        rows: Sequence[Row[R, F]],
        final: frozenset[str] = frozenset(),
        within: "Chart[Any, Any] | None" = None,
        wrote: Callable[[R, str], bool] = written_last,
    ) -> None:
        self.name = name
        self.states = tuple(str(state) for state in states)
        self.final = frozenset(str(state) for state in final)
        self.within = within
        self.wrote = wrote
        self._machine = _Machine(
            model=None,
            states=[ABSENT, *self.states],
            initial=ABSENT,
            send_event=True,
            auto_transitions=False,
        )
        for row in rows:
            self._add(row)
        self._check_reach()

    def _add(self, row: Row[R, F]) -> None:
        known = (ABSENT, *self.states)
        for source in row.sources:
            dest = source if row.dest is None else row.dest
            for state in (source, dest):
                if state not in known:
                    raise ChartError(f"Chart {self.name}: event {row.event} names the unknown state {state!r}.")
            for guard in row.guards:
                if not isinstance(guard, Guard):
                    raise ChartError(f"Chart {self.name}: event {row.event} has {guard!r}, which is not a guard.")
            same = [a for _, a in self.arrows() if (a.source, a.dest, a.row.event) == (source, dest, row.event)]
            if any(set(arrow.guards) == set(row.guards) for arrow in same):
                raise ChartError(f"Chart {self.name}: event {row.event} from {source} to {dest} stands there twice.")
            self._machine.add_transition(
                row.event, str(source), str(dest), conditions=cast("Any", list(row.guards)), row=row
            )

    def _check_reach(self) -> None:
        leads: dict[str, set[str]] = {state: set() for state in (ABSENT, *self.states)}
        for _, arrow in self.arrows():
            leads[arrow.source].add(arrow.dest)
        missing = set(self.states) - _reachable(leads, {ABSENT})
        if missing:
            raise ChartError(f"Chart {self.name}: nothing leads to {', '.join(sorted(missing))}.")
        if not self.final:
            return
        if not self.final <= set(self.states):
            raise ChartError(f"Chart {self.name}: a final state is not one of its states.")
        led_from: dict[str, set[str]] = {state: set() for state in leads}
        for source, dests in leads.items():
            for dest in dests:
                led_from[dest].add(source)
        stuck = set(self.states) - _reachable(led_from, set(self.final))
        if stuck:
            raise ChartError(f"Chart {self.name}: no way leads from {', '.join(sorted(stuck))} to a final state.")

    @property
    def events(self) -> tuple[str, ...]:
        """The events' names, in the table's order."""
        return tuple(self._machine.events)

    def arrows(self) -> Iterator[tuple[str, Arrow]]:
        """Every arrow with its event, in the table's order."""
        for name, event in self._machine.events.items():
            for group in list(event.transitions.values()):
                for arrow in group:
                    yield name, cast("Arrow", arrow)

    def judge(self, event: str, step: Step[R, F]) -> Move[R] | Refusal:
        """Judge one event on one version. The step is used up.

        Raises:
            KeyError: The chart has no such event (a bug in the caller).
        """
        asked = self._machine.events[event]
        step.state = ABSENT if step.record is None else str(step.record.state)
        source = step.state
        # A defaultdict: reading a missing state would add it.
        if source not in asked.transitions or not asked.trigger(step) or step.move is None:
            return Refusal(self.name, event, source, tuple(step.checks))
        return step.move

    def answers(self, event: str, step: Step[R, F]) -> list[tuple[Arrow, Move[R] | Refusal]]:
        """Judge every arrow of an event from the step's state by itself: for tests of exclusivity and for `why`."""
        state = ABSENT if step.record is None else str(step.record.state)
        found = []
        for name, arrow in self.arrows():
            if name == event and arrow.source == state:
                checks = tuple(guard.check(step) for guard in arrow.guards)
                answer: Move[R] | Refusal = Refusal(self.name, event, state, checks)
                if all(check.held for check in checks):
                    answer = Move(event, state, arrow.dest, arrow.write, None, checks)
                found.append((arrow, answer))
        return found


def _reachable(leads: dict[str, set[str]], start: set[str]) -> set[str]:
    """Everything that `leads` reaches from `start`."""
    found, todo = set(start), list(start)
    while todo:
        for state in leads[todo.pop()] - found:
            found.add(state)
            todo.append(state)
    return found
