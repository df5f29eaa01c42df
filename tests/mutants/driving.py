"""Runs a mutant's drivers until one catches it."""

from tests.world.explore import explore
from tests.world.scopes import SCOPES
from tests.world.seeds import run

from .mutant import Mutant, applied
from .schedules import find


def caught_by(mutant: Mutant) -> str:
    """Which driver catches it, and how; empty when none does."""
    with applied(mutant):
        for driver in mutant.drivers:
            try:
                _drive(driver)
            except AssertionError as err:
                return f"{driver}: {(str(err) or 'it ends otherwise').splitlines()[0]}"
    return ""


def _drive(driver: str) -> None:
    schedule = find(driver)
    name, at, seeds = driver.partition("@")
    if schedule is not None:
        schedule()
    elif at:
        for seed in range(int(seeds)):
            run(name, seed)
    else:
        explore(SCOPES[name])
