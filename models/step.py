"""One judgement of one version of a record: what a chart is asked, and what it answers.

Guarantees: a `Step` is made for one judgement and thrown away, so a conflict leaves nothing to roll back; guards are
pure over (record, now, facts, op) and answer a bool; an answer is a value, `Move` or `Refusal`, never an exception.
Does not read, write or know any chart.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

ABSENT = "absent"
"""The pseudo-state of a key that holds no record."""


class Write(Enum):
    """The one conditional write that an arrow is."""

    CREATE = "CREATE"
    REPLACE = "REPLACE"
    DELETE = "DELETE"


def write_of(source: str, dest: str) -> Write:
    """The write an arrow must be: absent -> x creates, x -> absent deletes, x -> y replaces."""
    if source == ABSENT:
        return Write.CREATE
    return Write.DELETE if dest == ABSENT else Write.REPLACE


class Record(Protocol):
    """What every record has: its state and the op of the write that made this version."""

    @property
    def state(self) -> str:
        """Its state's name."""
        ...

    @property
    def op(self) -> str:
        """The random id of the logical write that made this version."""
        ...


R = TypeVar("R")
F = TypeVar("F")


@dataclass(slots=True, eq=False)
class Step(Generic[R, F]):
    """One judgement: `record` as read (None: absent), `now` in epoch seconds, the facts gathered for this try, my op.

    `state` and `move` are the chart engine's to set.
    """

    record: R | None
    now: float
    facts: F
    op: str
    state: str = ABSENT
    move: "Move[R] | None" = None
    checks: list["Check"] = field(default_factory=list)

    @property
    def was(self) -> R:
        """The record, where the arrow's source says that there is one."""
        if self.record is None:
            raise AssertionError("a guard or next-record function asked for the record of an absent key")
        return self.record


@dataclass(frozen=True, slots=True)
class Check:
    """One guard's answer: its name, whether it holds as the arrow wants it, and that in an operator's words."""

    guard: str
    held: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Move(Generic[R]):
    """An open arrow: the write to try and the record it writes (None for a delete)."""

    event: str
    source: str
    dest: str
    write: Write
    next: R | None
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """No arrow of this event is open; `checks` holds the answers of every arrow that starts here."""

    chart: str
    event: str
    source: str
    checks: tuple[Check, ...] = ()

    @property
    def failed(self) -> tuple[Check, ...]:
        """The guards that said no, each once."""
        return tuple(dict.fromkeys(check for check in self.checks if not check.held))

    @property
    def words(self) -> str:
        """Why not, as the end of a sentence."""
        return "; ".join(check.sentence for check in self.failed) or f"the {self.chart} is {self.source}"

    def __str__(self) -> str:
        if not self.failed:
            return f"{self.event}: not possible while the {self.chart} is {self.source}"
        return f"{self.event} while the {self.chart} is {self.source}: {self.words}"


@dataclass(frozen=True, slots=True)
class Guard(Generic[R, F]):
    """A named predicate. `yes` and `no` say its two answers in an operator's words."""

    name: str
    judge: Callable[[Step[R, F]], bool]
    yes: str
    no: str
    wanted: bool = True
    _yes: Check = field(init=False, repr=False, compare=False)
    _no: Check = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Its two answers, made once: a poll asks dozens of guards of each request.
        object.__setattr__(self, "_yes", Check(self.label, self.wanted, self.yes))
        object.__setattr__(self, "_no", Check(self.label, not self.wanted, self.no))

    def __invert__(self) -> "Guard[R, F]":
        """The same predicate, wanted false."""
        return Guard(self.name, self.judge, self.yes, self.no, not self.wanted)

    @property
    def label(self) -> str:
        """Its name as a chart shows it."""
        return self.name if self.wanted else f"not {self.name}"

    def check(self, step: Step[R, F]) -> Check:
        """Ask it. A guard that answers anything but a bool is a bug, not a refusal."""
        answer: Any = self.judge(step)
        if not isinstance(answer, bool):
            raise TypeError(f"guard {self.name} answered {answer!r}, not a bool")
        return self._yes if answer else self._no


def guard(yes: str, no: str) -> Callable[[Callable[[Step[R, F]], bool]], Guard[R, F]]:
    """Make a predicate a guard; its name is the function's.

    Args:
        yes: What an operator reads when it answers true, such as "its time has come".
        no: The same for false, such as "its time has not come yet".
    """

    def name(judge: Callable[[Step[R, F]], bool]) -> Guard[R, F]:
        return Guard(judge.__name__, judge, yes, no)

    return name
