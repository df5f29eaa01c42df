"""P11 for agents' own schedules, in the simulated world: skewed clocks that jump, suspends, crashes, pauses."""

from dataclasses import replace

import pytest

from fdagent.fleet import settle
from fdagent.fleet.schedules import Schedules
from fdagent.queue.dues import Settled
from world.process import Violation
from world.schedules import INTERVAL, run

SEEDS = (1, 3, 4)
SOMETIMES = {"ran", "skipped", "paused", "missed", "not missed after all", "recovered as queued", "resumed"}


def test_own_schedules_are_never_early_twice_or_left_out_under_skew_jumps_and_suspend():
    seen = set().union(*map(run, SEEDS))
    assert seen >= SOMETIMES


def test_the_same_seed_is_the_same_run():
    assert run(7, steps=300) == run(7, steps=300)


def early(monkeypatch):
    look = Schedules.look
    monkeypatch.setattr(Schedules, "look", lambda self, schedule, now: look(self, schedule, now + INTERVAL))


def left_out(monkeypatch):
    monkeypatch.setattr(settle.Times, "latest", lambda *_: None)


def twice(monkeypatch):
    """What has run is forgotten when the clock is set back."""
    settled = settle.settled

    def forgetful(was, rule, times, book, now):
        return settled(was, rule, times, lambda *_: [], now)

    monkeypatch.setattr("fdagent.fleet.schedules.settled", forgetful)


def not_counted(monkeypatch):
    settled = settle.settled

    def careless(*arguments):
        found = settled(*arguments)
        return None if found is None else Settled(found.standing, tuple(replace(e, missed=0) for e in found.entries))

    monkeypatch.setattr("fdagent.fleet.schedules.settled", careless)


@pytest.mark.long
@pytest.mark.parametrize("broken", [early, left_out, twice, not_counted])
def test_a_scheduler_that_is_wrong_is_caught(broken, monkeypatch):
    broken(monkeypatch)
    with pytest.raises(Violation, match=r"world\.schedules\.run"):
        for seed in range(1, 9):
            run(seed)
