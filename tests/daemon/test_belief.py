"""What a holder may believe, and the thread that keeps it: with spans of fractions of a second."""

import threading
import time

import pytest
from duty_kit import JumpClock
from fakes import FakeClock

from fdagent.errors import GaveUp, StoodDown
from fdagent.system import SystemClock
from fdagent.work import holding
from fdagent.work.holding import MARGIN_SECONDS, WALL_JUMP_SECONDS, Belief, Keeper

SPAN = 30.0


@pytest.fixture
def clock():
    return JumpClock()


@pytest.fixture
def belief(clock):
    made = Belief(SPAN, clock)
    made.confirmed(clock.elapsed())
    return made


def test_nothing_is_believed_before_anything_is_confirmed(clock):
    assert not Belief(SPAN, clock).held()


def test_it_ends_a_margin_before_its_span(belief, clock):
    clock.now += SPAN - MARGIN_SECONDS - 0.001
    assert belief.held()
    clock.now += 0.001
    assert not belief.held()


def test_it_counts_from_the_start_of_the_renewal_however_late_its_answer_came(clock):
    belief = Belief(SPAN, clock)
    started = clock.elapsed()
    clock.now += SPAN - MARGIN_SECONDS
    belief.confirmed(started)
    assert not belief.held()


def test_a_renewal_gives_it_a_whole_span_again(belief, clock):
    for _ in range(10):
        clock.now += SPAN / 2
        assert belief.held()
        belief.confirmed(clock.elapsed())


@pytest.mark.parametrize("jump", [WALL_JUMP_SECONDS + 0.1, -WALL_JUMP_SECONDS - 0.1, 1e9])
def test_a_jump_of_the_wall_clock_ends_it(belief, clock, jump):
    clock.ahead += jump
    assert not belief.held()
    belief.confirmed(clock.elapsed())
    assert belief.held(), "until it is confirmed anew"


@pytest.mark.parametrize("jump", [WALL_JUMP_SECONDS - 0.1, -WALL_JUMP_SECONDS + 0.1])
def test_a_small_correction_of_the_wall_clock_does_not(belief, clock, jump):
    clock.ahead += jump
    assert belief.held()


def test_a_check_says_what_could_not_be_kept(belief, clock):
    belief.check("The job's claim")
    belief.end()
    with pytest.raises(StoodDown, match="The job's claim could not be kept for its whole span"):
        belief.check("The job's claim")


@pytest.fixture
def short(monkeypatch):
    """A believed span of 0.3 s of real time."""
    monkeypatch.setattr(holding, "MARGIN_SECONDS", 0.05)
    clock = SystemClock()
    belief = Belief(0.35, clock)
    belief.confirmed(clock.elapsed())
    return belief


def wait_until(answer, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not answer():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_keeper_keeps_it_for_ten_spans(short):
    renewals = []
    with Keeper(short, lambda: renewals.append(1) or True, SystemClock()):
        wait_until(lambda: len(renewals) >= 30)
        assert short.held()


def test_a_keeper_that_is_told_that_it_is_another_s_ends_the_belief_and_asks_no_more(short):
    asked = threading.Event()
    with Keeper(short, lambda: asked.set() or False, SystemClock()) as keeper:
        assert asked.wait(10)
        wait_until(lambda: not short.held())
        keeper._thread.join(10)
        assert not keeper._thread.is_alive()


def test_a_renewal_that_fails_is_tried_again_sooner_and_saves_the_belief(short):
    answers = iter([GaveUp("busy"), GaveUp("busy")])
    renewed = threading.Event()

    def renew() -> bool:
        error = next(answers, None)
        if error is not None:
            raise error
        renewed.set()
        return True

    with Keeper(short, renew, SystemClock()):
        assert renewed.wait(10)
        assert short.held()


def test_an_error_that_nobody_foresaw_is_told_without_its_text_and_tried_again(short):
    told, tries = [], []

    def renew() -> bool:
        tries.append(1)
        if len(tries) < 3:
            raise OSError(24, "secret")
        return True

    with Keeper(short, renew, SystemClock(), told.append):
        wait_until(lambda: len(tries) > 3)
        assert short.held()
    assert [sentence.count("OSError (errno 24) at test_belief.py") for sentence in told] == [1, 1]
    assert "secret" not in "".join(told)


def test_renewals_that_go_on_failing_let_the_belief_end_by_itself(short):
    def renew() -> bool:
        raise GaveUp("away")

    with Keeper(short, renew, SystemClock()) as keeper:
        wait_until(lambda: not short.held())
        assert keeper._thread.is_alive(), "it goes on trying"


def test_a_renewal_that_hangs_lets_the_belief_end(short):
    go = threading.Event()
    with Keeper(short, lambda: go.wait(10), SystemClock()):
        wait_until(lambda: not short.held())
        go.set()


def test_a_renewal_that_was_begun_before_the_end_and_answered_after_it_is_believed_from_its_start():
    clock = FakeClock()
    belief = Belief(10.0, clock)
    belief.confirmed(clock.elapsed())
    clock.now += 5
    started = clock.elapsed()
    clock.now += 6
    assert not belief.held(), "the renewal has not been answered yet"
    belief.confirmed(started)
    assert belief.held()
    clock.now += 4
    assert not belief.held(), "ten seconds after it was asked for, whenever it was answered"


def test_a_keeper_ends_with_its_block(short):
    with Keeper(short, lambda: True, SystemClock()) as keeper:
        pass
    assert not keeper._thread.is_alive()
