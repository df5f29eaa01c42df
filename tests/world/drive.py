"""Drivers that walk one path: a replay, a schedule told by hand, and a run by a seed.

Guarantees: a run by a seed and its replay are the same run; every violation they meet carries its line.
"""

from collections.abc import Callable, Sequence
from typing import Self

from .process import DONE, Violation
from .replay import line
from .scope import Scope
from .state import State, World


class Walk:
    """One path through a scope, choice by choice, keeping the words that replay it.

    Args:
        scope: Where to walk.
        told: Called with a line of text for each choice.
    """

    def __init__(self, scope: Scope, told: Callable[[str], None] | None = None) -> None:
        self.scope, self.told = scope, told
        # A process that is copied goes on in two ways from where it is.
        self.world = World(scope, branching=bool(scope.clones))
        self.state: State = self.world.start()
        self.words: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.world.end()

    def take(self, choice: str) -> Self:
        """Take one choice; it must be open."""
        if choice not in self.state.choices():
            raise AssertionError(f"{choice} is not open here; {' '.join(self.state.choices())} are")
        return self.go(choice)

    def go(self, choice: str) -> Self:
        """Take one choice that is known to be open."""
        doing = self._doing(choice) if self.told else ""
        self.words.append(choice)
        try:
            self.state.take(choice)
        except Violation as err:
            raise Violation(f"{err}\n{line(self.scope.name, self.words)}") from err
        if self.told:
            self.told(f"{self.state.now:8.1f} s  {choice:12} {doing}")
        return self

    def rest(self) -> None:
        """Nothing more is taken: ask the monitors about the end."""
        for monitor in self.scope.monitors:
            try:
                monitor.rest(self.state)
            except Violation as err:
                raise Violation(f"{err}\n{line(self.scope.name, self.words)}") from err

    def _doing(self, choice: str) -> str:
        name = choice.partition("!")[0]
        proc = self.state.procs.get(name)
        if proc is None or proc.node is None or proc.node.call is DONE:
            return ""
        kind, *about = proc.node.call
        return f"{kind} {' '.join(str(part)[:60] for part in about[:2])}"

    # ---- telling a schedule

    def until(self, name: str, kind: str, *, most: int = 200) -> Self:
        """Let one process go on until it waits in a call of this kind."""
        for _ in range(most):
            proc = self.state.procs[name]
            asleep = proc.wake > self.state.now
            if proc.node is not None and proc.node.call[0] == kind and asleep is (kind == "sleep"):
                return self
            self.take("tick" if asleep else name)
        raise AssertionError(f"{name} never came to {kind}")

    def spend(self, name: str, ticks: int) -> Self:
        """Time goes on, and one process with it, while the others stand still."""
        for _ in range(ticks):
            self.take("tick")
            while name in self.state.choices():
                self.take(name)
        return self

    def finish(self, *names: str, most: int = 2000) -> Self:
        """Let these processes go on, in turn, until they are done; time goes on when they all sleep."""
        for _ in range(most):
            procs = [self.state.procs[name] for name in names]
            if all(proc.node is not None and proc.node.call is DONE for proc in procs):
                return self
            open_now = self.state.choices()
            awake = [name for name in names if name in open_now]
            self.take(awake[0] if awake else "tick")
        raise AssertionError(f"{', '.join(names)} never finished")


def replay(scope: Scope, words: Sequence[str], told: Callable[[str], None] | None = None) -> None:
    """Walk the words; raises the Violation they lead to."""
    with Walk(scope, told) as walk:
        for word in words:
            walk.take(word)
        if not walk.state.choices():
            walk.rest()
