"""Three agents over simulated hours: P1 to P5, P8, P9, P11 and P12. `python -m tests.soak` runs far more of it."""

import fleet_world
import pytest

SEEDS, SLOTS = 30, 10


@pytest.fixture(scope="module")
def met():
    # One is long enough that what ended a day ago is swept.
    return fleet_world.run(SEEDS, SLOTS) + fleet_world.run(1, 40, first=SEEDS)


def test_every_hour_has_one_request_and_one_effective_run(met):
    assert met["posted"] >= met["slots"] * 0.9
    assert met["succeeded"] >= met["posted"] * 0.8


@pytest.mark.parametrize("what", fleet_world.SOMETIMES)
def test_each_of_what_should_happen_now_and_then_did(met, what):
    assert met[what] > 0
