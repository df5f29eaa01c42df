"""Long runs by a seed: a scope with more time, more starts and every fault, walked by chance; then calm, in which all that
was begun must end.

Guarantees: a seed is one run; a violation carries the line that replays it, choice by choice.
"""

import random
from collections.abc import Iterable
from dataclasses import replace

from .drive import Walk
from .process import Violation
from .replay import line
from .scope import Machine, Scope
from .scopes import SCOPES, WALKS

LONGER = 4
"""How much longer than a search faults go on."""
CALM = 2
"""For how many of the scope's own spans nothing goes wrong after that."""
STEPS = 6000
"""The most choices before it is calm, and the most after."""
FAULT_SHARES = (0.02, 0.06, 0.2, 0.5)
"""How often a fault is taken where one is open; each run has its share, and leaves about half of the kinds out."""
RESTARTS = (0.1, 0.01, 0.002)
"""How often it is even considered that a dead process starts again: others should miss it first. Each run has its share."""
EVERY_FAULT = frozenset({"lost", "never", "down", "stale", "slow"})
"""What seeded runs add to a scope's faults: a search needs most of them not, as a late answer contains them."""
BUDGET = 12
BOOTS = BUDGET + 2
"""Whatever dies may start again."""
OFF = {"ma": Machine(1e5, 3600.0, 1.004, "ma"), "mb": Machine(7.0, -7200.0, 0.996, "mb")}
"""Clocks that differ in all they may: their origins, by hours, and by almost a percent in rate."""
LEASES = {"tick": 1.0, "lockstep": False, "jump": 60.0, "pause": 5.0, "machines": OFF}
WALKED = {name: scope for name, scope in (SCOPES | WALKS).items() if not scope.clones}
SEEDED = tuple(WALKED)


def wider(scope: Scope) -> Scope:
    """The scope as seeded runs use it."""
    wide = replace(
        scope,
        until=scope.until * (LONGER + CALM),
        lands=min(scope.lands, scope.until * LONGER),
        budget=BUDGET,
        boots=BOOTS,
        faults=scope.faults | EVERY_FAULT,
    )
    if scope.name.startswith("lease"):
        return replace(wide, faults=wide.faults | {"pause", "jump"}, **LEASES)
    return wide


def run(name: str, seed: int) -> set[str]:
    """One run; what was seen.

    Raises:
        Violation: With the line that replays it.
    """
    chance = random.Random(f"{name}@{seed}")
    with Walk(wider(WALKED[name])) as walk:
        try:
            _stormy(walk, chance, WALKED[name].until * LONGER)
            _calm(walk, chance)
        except Violation as err:
            raise Violation(f"{str(err).splitlines()[0]}\n{line(f'{name}+', walk.words)}") from err
        return set(walk.world.seen)


def _stormy(walk: Walk, chance: random.Random, until: float) -> None:
    """Anything may happen."""
    share, restarts = chance.choice(FAULT_SHARES), chance.choice(RESTARTS)
    kinds = frozenset(kind for kind in sorted(walk.scope.faults) if chance.random() < 0.5)
    for _ in range(STEPS):
        choices = walk.state.choices()
        if not choices or (until and walk.state.now >= until):
            return
        plain = [one for one in choices if "!" not in one and (not one.endswith("+") or chance.random() < restarts)]
        faults = [choice for choice in choices if choice.partition("!")[2] in kinds]
        if not plain and not faults:
            plain = choices
        pick = faults if faults and (not plain or chance.random() < share) else plain
        walk.go(chance.choice(pick))


def _calm(walk: Walk, chance: random.Random) -> None:
    """Nothing goes wrong any more: what has not ended does, and then the monitors are asked about the end."""
    ended = walk.scope.ended
    for _ in range(STEPS):
        plain = [choice for choice in walk.state.choices() if "!" not in choice]
        if not plain:
            walk.rest()
            break
        if ended is not None and ended(walk.state):
            return
        walk.go(chance.choice(plain))
    if ended is not None and not ended(walk.state):
        raise Violation("nothing goes wrong any more, and it never ends")


def runs(names: Iterable[str], seeds: Iterable[int]) -> tuple[int, dict[str, set[str]]]:
    """Many runs; how many there were, and what was seen in each scope."""
    count, seen = 0, {name: set() for name in names}
    for seed in seeds:
        for name in seen:
            seen[name] |= run(name, seed)
            count += 1
    return count, seen
