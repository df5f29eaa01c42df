"""Turns: a duty that fails stops no other, and is told without flooding the log."""

from dataclasses import dataclass, field

import pytest
from duty_kit import JumpClock, Told

from fdagent.daemon.duties import OTHER_TROUBLE_SECONDS, SAME_TROUBLE_SECONDS, Turns
from fdagent.errors import GaveUp, QueueDamaged, QueueUnreadable

SECRET = "https://example.invalid/hook?sig=secret"


@dataclass
class Counts:
    """A duty that counts its turns, and fails as it is told."""

    every: float = 1.0
    turns: int = 0
    error: Exception | None = None
    at: list[float] = field(default_factory=list)

    def tick(self) -> None:
        self.turns += 1
        if self.error is not None:
            raise self.error


class Other(Counts):
    """Another name."""


@pytest.fixture
def clock():
    return JumpClock()


def turns(clock, *duties):
    return Turns(duties, clock, Told(), Told())


def pass_time(made: Turns, clock, seconds: float, step: float = 0.5) -> None:
    for _ in range(round(seconds / step)):
        clock.now += step
        made.tick()


def test_each_duty_has_its_turn_as_often_as_it_asks(clock):
    often, seldom = Counts(every=1.0), Counts(every=10.0)
    made = turns(clock, often, seldom)
    assert made.tick() == 1.0
    pass_time(made, clock, 20)
    assert (often.turns, seldom.turns) == (21, 3)


def test_the_time_to_the_next_turn_is_counted_from_now(clock):
    made = turns(clock, Counts(every=10.0))
    made.tick()
    clock.now += 4
    assert made.tick() == 6.0


@pytest.mark.parametrize(
    "error", [GaveUp("It was locked."), ValueError(SECRET), OSError(24, SECRET), QueueUnreadable("a row")]
)
def test_a_duty_that_fails_stops_no_other_and_has_its_next_turn(clock, error):
    bad, good = Counts(error=error), Other()
    made = turns(clock, bad, good)
    pass_time(made, clock, 10)
    assert bad.turns == good.turns >= 10
    assert [name for name, _ in made.failed.lines] == ["Counts"]


def test_an_unforeseen_error_is_told_by_kind_and_place_and_never_by_its_text(clock):
    made = turns(clock, Counts(error=OSError(24, SECRET)))
    made.tick()
    ((_, sentence),) = made.failed.lines
    assert sentence.startswith("OSError (errno 24) at test_turns.py:")
    assert "sig=" not in sentence


def test_the_same_trouble_is_told_again_only_after_a_while(clock):
    made = turns(clock, Counts(every=0.1, error=GaveUp("It was locked.")))
    made.tick()
    pass_time(made, clock, SAME_TROUBLE_SECONDS - 1)
    assert len(made.failed.lines) == 1
    pass_time(made, clock, 2)
    assert len(made.failed.lines) == 2


def test_another_trouble_is_told_soon_and_many_different_ones_are_no_flood(clock):
    duty = Counts(every=0.1)
    made = turns(clock, duty)
    for number in range(1000):
        duty.error = GaveUp(f"Trouble {number}.")
        clock.now += 0.1
        made.tick()
    assert 10 <= len(made.failed.lines) <= 100 / OTHER_TROUBLE_SECONDS + 1


def test_that_it_works_again_is_told_once(clock):
    duty = Counts(error=GaveUp("It was locked."))
    made = turns(clock, duty)
    made.tick()
    duty.error = None
    pass_time(made, clock, 5)
    assert made.works.lines == [("Counts",)]
    duty.error = GaveUp("It was locked.")
    pass_time(made, clock, 1)
    assert len(made.failed.lines) == 2, "a new trouble is told at once"


def test_a_damaged_queue_passes_through(clock):
    later = Counts()
    with pytest.raises(QueueDamaged):
        turns(clock, Counts(error=QueueDamaged("It is no queue.")), later).tick()
    assert later.turns == 0
