"""Runs a mutant's drivers until one catches it."""

from tests.world.explore import explore
from tests.world.process import Violation
from tests.world.scopes import SCOPES
from tests.world.seeds import run

from .mutant import Mutant, applied


def caught_by(mutant: Mutant) -> str:
    """Which driver catches it, and how; empty when none does."""
    with applied(mutant):
        for driver in mutant.drivers:
            name, at, seeds = driver.partition("@")
            try:
                if at:
                    for seed in range(int(seeds)):
                        run(name, seed)
                else:
                    explore(SCOPES[name])
            except Violation as err:
                return f"{driver}: {str(err).splitlines()[0]}"
    return ""
