"""Long runs by a seed: a scope with more time, more faults and more starts, walked by chance.

Guarantees: a seed is one run; a violation carries the line that replays it, choice by choice.
"""

import random
from collections.abc import Iterable
from dataclasses import replace

from .drive import Walk
from .process import Violation
from .replay import line
from .scopes import SCOPES
from .state import Scope

SEEDED = (
    "append",
    "merge",
    "append-keys",
    "merge-keys",
    "lease",
    "lease-workers",
    "lease-release",
    "job",
    "job-stop",
)
STEPS = 3000
"""The most choices of one run."""
FAULT_SHARE = 0.06
"""How often a fault is taken where one is open."""
PAUSE_SECONDS = 5.0
LONGER = {"budget": 12, "boots": 6}


def wider(scope: Scope) -> Scope:
    """The scope as seeded runs use it: many faults and starts, four times the time, and time that waits for nobody."""
    wide = replace(scope, until=scope.until * 4, **LONGER)
    if scope.name.startswith("lease"):
        return replace(wide, lockstep=False, faults=scope.faults | {"slow", "pause", "lost"}, pause=PAUSE_SECONDS)
    return wide


def run(name: str, seed: int) -> set[str]:
    """One run; what was seen.

    Raises:
        Violation: With the line that replays it.
    """
    scope, chance = wider(SCOPES[name]), random.Random(f"{name}@{seed}")
    with Walk(scope) as walk:
        for _ in range(STEPS):
            choices = walk.state.choices()
            if not choices:
                walk.rest()
                break
            plain = [choice for choice in choices if "!" not in choice]
            faults = [choice for choice in choices if "!" in choice]
            pick = faults if faults and (not plain or chance.random() < FAULT_SHARE) else plain
            try:
                walk.take(chance.choice(pick))
            except Violation as err:
                raise Violation(f"{str(err).splitlines()[0]}\n{line(f'{name}+', walk.words)}") from err
        return set(walk.world.seen)


def runs(names: Iterable[str], seeds: Iterable[int]) -> tuple[int, dict[str, set[str]]]:
    """Many runs; how many there were, and what was seen in each scope."""
    count, seen = 0, {name: set() for name in names}
    for seed in seeds:
        for name in seen:
            seen[name] |= run(name, seed)
            count += 1
    return count, seen
