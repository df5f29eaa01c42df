"""The exhaustive driver: every state that a scope's choices reach, each once, breadth first.

Guarantees: the first violation found is one of the shortest; a search that meets its limit fails, so "no violation"
always means that everything was seen. States are compared by their whole keys, never by a hash alone.
"""

import gc
import time
from collections import deque
from dataclasses import dataclass, field

from .process import Violation
from .replay import line
from .scope import Scope
from .state import State, World


@dataclass(slots=True)
class Report:
    """What a search saw; seconds are of the processor."""

    scope: str
    states: int = 0
    choices: int = 0
    seconds: float = 0.0
    seen: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.scope}: {self.states:,} states, {self.choices:,} choices, {self.seconds:.1f} s"


def explore(scope: Scope, *, most: int | None = None) -> Report:
    """Search the whole scope.

    Args:
        scope: What to search.
        most: Another limit than the scope's.

    Raises:
        Violation: A property does not hold; the message says how to see it again.
    """
    world = World(scope, branching=True)
    search = _Search(world, most or scope.limit)
    # Nearly everything a search makes is kept until its end: looking for garbage meanwhile takes most of the time.
    gc.disable()
    try:
        return search.run()
    finally:
        gc.enable()
        world.end()


class _Search:
    def __init__(self, world: World, most: int) -> None:
        self.world, self.most = world, most
        self.numbers: dict[object, int] = {}
        self.came: list[tuple[int, str]] = []
        self.leads: list[list[int]] = []
        self.fine: list[int] = []
        self.report = Report(world.scope.name)

    def run(self) -> Report:
        scope, begun = self.world.scope, time.process_time()
        first = self.world.start()
        todo = deque([(self._met(first, -1, ""), first)])
        while todo:
            number, state = todo.popleft()
            choices = state.choices()
            if not choices:
                self._guarded(number, "", lambda state=state: [monitor.rest(state) for monitor in scope.monitors])
            for index, choice in enumerate(choices):
                after = state if index + 1 == len(choices) else state.copy()
                self._guarded(number, choice, lambda after=after, choice=choice: after.take(choice))
                self.report.choices += 1
                known = len(self.numbers)
                reached = self._met(after, number, choice)
                if reached == known:
                    todo.append((reached, after))
                self.leads[reached].append(number)
                if known > self.most:
                    raise Violation(f"{scope.name}: more than {self.most:,} states, so not everything was seen")
        self._all_can_end()
        if missing := scope.sometimes - self.world.seen:
            raise Violation(
                f"{scope.name}: never seen, so what it would show is not shown: {', '.join(sorted(missing))}"
            )
        self.report.states, self.report.seen = len(self.numbers), self.world.seen
        self.report.seconds = time.process_time() - begun
        return self.report

    def _met(self, state: State, parent: int, choice: str) -> int:
        number = self.numbers.setdefault(state.key(), len(self.numbers))
        if number == len(self.came):
            self.came.append((parent, choice))
            self.leads.append([])
            if self.world.scope.ended is not None and self.world.scope.ended(state):
                self.fine.append(number)
        return number

    def path(self, number: int) -> list[str]:
        """The choices that led there."""
        words: list[str] = []
        while number > 0:
            number, choice = self.came[number]
            words.append(choice)
        return words[::-1]

    def _guarded(self, number: int, choice: str, act) -> None:
        try:
            act()
        except Violation as err:
            words = self.path(number) + ([choice] if choice else [])
            raise Violation(f"{err}\n{line(self.world.scope.name, words)}") from err

    def _all_can_end(self) -> None:
        """Walk back from every state that has ended: what is not met can never end."""
        if self.world.scope.ended is None:
            return
        can, todo = set(self.fine), list(self.fine)
        while todo:
            for before in self.leads[todo.pop()]:
                if before not in can:
                    can.add(before)
                    todo.append(before)
        stuck = next((number for number in range(len(self.numbers)) if number not in can), None)
        if stuck is not None:
            raise Violation(f"from here it can never end\n{line(self.world.scope.name, self.path(stuck))}")
