"""Three agents over simulated hours: P1 to P5, P7 to P9, P11 and P12. `python -m tests.soak` runs far more of it."""

import fleet_world
import pytest

SEEDS, SLOTS = 10, 40
"""Runs in which nearly every hour something goes wrong."""
LONG_SEEDS, LONG_SLOTS, RATE = 30, 1000, 0.2
"""Runs as long as a person would wait for the next fault."""


@pytest.fixture(scope="module")
def met():
    return fleet_world.run(SEEDS, SLOTS, first=20)


def test_every_hour_has_one_request_and_one_effective_run(met, record_property):
    record_property("figure", f"fleet: {SEEDS} seeds x {SLOTS} hours x 3 agents: {told(met)}")
    assert met["posted"] >= met["slots"] * 0.9
    assert met["succeeded"] >= met["posted"] * 0.8


@pytest.mark.parametrize("what", fleet_world.SOMETIMES)
def test_each_of_what_should_happen_now_and_then_did(met, what):
    assert met[what] > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1000 + LONG_SEEDS))
def test_each_of_many_hours_has_one_request_and_one_effective_run(seed, record_property):
    world = fleet_world.World(seed, LONG_SLOTS, RATE)
    world.run()
    record_property("figure", f"fleet: seed {seed}: {LONG_SLOTS} hours x 3 agents: {told(world.met)}")
    assert len(world.posted) >= LONG_SLOTS * 0.95
    assert world.met["succeeded"] >= len(world.posted) * 0.95


def told(met):
    return ", ".join(f"{count} {what}" for what, count in sorted(met.items()))
