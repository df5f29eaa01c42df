"""What a world contains, what may happen in it, and what must hold: the words in which every scope is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .ports import EMPTY, Contents
from .process import Call, Program

if TYPE_CHECKING:
    from .state import State

BASE = 1_800_000_000.0
"""The wall clock at the world's time 0: 2027-01-15T08:00:00Z."""


class Machine(NamedTuple):
    """One machine: how its clocks differ from the world's, where its processes are, and its queue."""

    elapsed: float = 0.0
    wall: float = 0.0
    rate: float = 1.0
    place: str = ""
    rows: Contents = EMPTY


class Monitor:
    """A property. `check` is asked after every choice, `asked` when a process comes to wait in a call, `wrote` at every
    change of a record, `told` when a process says something, `rest` where nothing may happen any more; each raises
    Violation."""

    def check(self, state: "State") -> None: ...

    def asked(self, state: "State", name: str, call: Call) -> None: ...

    def told(self, state: "State", name: str, what: str, about: tuple[Any, ...]) -> None: ...

    def wrote(self, state: "State", key: str, old: bytes | None, new: bytes | None) -> None: ...

    def rest(self, state: "State") -> None: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """What a world contains and what may happen in it.

    Args:
        name: For replay lines.
        programs: The processes.
        faults: Which faults, by the words above; each use takes one from `budget`.
        tick: How far one `tick` goes, in seconds; 0: time stands still.
        until: No tick goes beyond.
        lands: Nothing that is on its way arrives later: what it does must have time to end.
        lockstep: Time goes on only when everybody sleeps or has stalled; else at any moment.
        boots: How often a process may start.
        foreign, cleans: How often anybody may commit to, and clean, each table.
        records: What is in the store at first.
        constant: Key prefixes that nobody writes here: reading them is no choice.
        jump, pause: How far a wall clock jumps, and how long a pause lasts, in seconds.
        clones: Whose process may be copied, as it is, into which one that has ended (searches only).
        by_itself: What happens at each tick, such as the beats of live agents.
        ended: Where given, every state must have a way to a state of which this is true.
        sometimes: What must have been seen by the end of a search or a long run.
        real_time: Sleeps last as long as they say and records have ages, as seeded runs want it; a search leaves both out,
            for they only make states differ.
        limit: The most states of an exhaustive search; reaching it is a failure.
    """

    name: str
    programs: tuple[Program, ...]
    monitors: tuple[Monitor, ...] = ()
    faults: frozenset[str] = frozenset({"late", "twice", "crash", "sent"})
    budget: int = 1
    tick: float = 0.0
    until: float = 0.0
    lands: float = float("inf")
    lockstep: bool = False
    boots: int = 2
    foreign: int = 0
    cleans: int = 0
    records: Mapping[str, bytes] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    machines: Mapping[str, Machine] = field(default_factory=dict)
    constant: tuple[str, ...] = ()
    jump: float = 0.0
    pause: float = 0.0
    clones: Mapping[str, str] = field(default_factory=dict)
    by_itself: Callable[["State"], None] = lambda _: None
    ended: Callable[["State"], bool] | None = None
    sometimes: frozenset[str] = frozenset()
    real_time: bool = False
    limit: int = 200_000
