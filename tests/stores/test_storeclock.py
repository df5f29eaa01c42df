import pytest
from storefakes import HandClock

from fdagent.stores.storeclock import OFFSET_SHOWN, OFFSET_WRONG, SAMPLES, StoreClock, age, skew, store_now


@pytest.fixture
def clock():
    return HandClock()


def answer(measured, clock, offset, took=0.1):
    """An answer whose store is `offset` ahead, stamped half way, cut to the second."""
    asked = clock.elapsed()
    clock.move(took / 2)
    stamp = float(int(clock.wall() + offset))
    clock.move(took / 2)
    measured.observe(stamp, asked)


def test_without_an_answer_the_offset_is_not_known_and_the_store_clock_is_this_machines(clock):
    assert StoreClock(clock).offset() is None
    assert store_now(clock, None) == clock.wall()


@pytest.mark.parametrize("offset", [0.0, 3.0, -3.0, 1800.0, -86_400.0])
def test_the_offset_is_known_to_within_a_second(clock, offset):
    measured = StoreClock(clock)
    for n in range(SAMPLES):
        answer(measured, clock, offset)
        clock.move(n * 0.37)
    assert measured.offset() == pytest.approx(offset, abs=1.0)
    assert store_now(clock, measured.offset()) == pytest.approx(clock.wall() + offset, abs=1.0)


def test_a_few_wrong_answers_move_nothing(clock):
    measured = StoreClock(clock)
    for n in range(SAMPLES):
        answer(measured, clock, 5000.0 if n % 3 == 0 else 2.0)
    assert measured.offset() == pytest.approx(2.0, abs=1.0)


def test_a_jump_of_this_machines_clock_shows_at_once(clock):
    measured = StoreClock(clock)
    answer(measured, clock, 0.0)
    clock.epoch += 600
    assert measured.offset() == pytest.approx(-600.0, abs=1.0)
    assert store_now(clock, measured.offset()) == pytest.approx(clock.wall() - 600, abs=1.0)


def test_a_jump_of_the_stores_clock_shows_once_most_answers_tell_it(clock):
    measured = StoreClock(clock)
    for _ in range(SAMPLES):
        answer(measured, clock, 0.0)
    for _ in range(SAMPLES // 2 + 1):
        answer(measured, clock, 100.0)
    assert measured.offset() == pytest.approx(100.0, abs=1.0)


def test_an_answer_that_took_too_long_or_no_time_at_all_says_nothing(clock):
    measured = StoreClock(clock)
    answer(measured, clock, 7.0, took=60.0)
    measured.observe(clock.wall(), clock.elapsed() + 5)
    measured.observe(float("nan"), clock.elapsed())
    measured.observe(float("inf"), clock.elapsed())
    assert measured.offset() is None


@pytest.mark.parametrize("offset", [None, 0.0, OFFSET_SHOWN, -OFFSET_SHOWN])
def test_a_small_or_unknown_offset_is_not_worth_a_word(offset):
    assert skew(offset) is None


@pytest.mark.parametrize(
    ("offset", "wrong", "words"),
    [
        (5.1, False, "5.1 s behind the store's"),
        (-OFFSET_WRONG, False, "4 min 00 s ahead of the store's"),
        (240.1, True, "4 min 00 s behind the store's"),
        (-1800.0, True, "30 min 00 s ahead of the store's"),
    ],
)
def test_an_offset_says_how_far_and_which_way_and_from_four_minutes_on_that_it_is_an_error(offset, wrong, words):
    found = skew(offset)
    assert found.wrong is wrong
    assert words in found.sentence


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, 0.0), (-0.9, 0.0), (60.0, 60.0), (-2.0, None), (-1e9, None), (1e9, None), (float("nan"), None)],
)
def test_a_negative_or_absurd_age_is_not_known(seconds, expected):
    assert age(1_800_000_000.0 + seconds, 1_800_000_000.0) == expected
