"""Times as records write them, and spans as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdagent.errors import BadTime
from models.times import ahead, lasted, reached, seconds, stamp

FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The years 1 and 9999."""


@given(st.integers(FIRST, LAST))
def test_a_written_time_reads_back_the_same(moment):
    assert seconds(stamp(moment)) == moment


def test_times_are_in_utc_and_cut_to_the_second():
    assert stamp(1_800_000_000) == "2027-01-15T08:00:00Z"
    assert stamp(1_800_000_000.999) == "2027-01-15T08:00:00Z"
    assert stamp(0) == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), float("-inf"), 1e15, -1e15, LAST + 1, FIRST - 1])
def test_a_time_that_no_text_can_say_is_refused_in_a_sentence(moment):
    with pytest.raises(BadTime, match=r"is no time of the years 1 to 9999\. Name a nearer time\."):
        stamp(moment)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T08:00:00.5Z", 1_800_000_000.5),
        ("2024-02-29T00:00:00Z", 1_709_164_800.0),
        ("1969-12-31T23:59:59Z", -1.0),
        ("0001-01-01T00:00:00Z", FIRST),
    ],
)
def test_a_time_is_read_as_seconds_since_the_epoch(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2027-01-15",
        "2027-01-15T08:00Z",
        "2027-01-15T08:00:00",
        "2027-01-15T08:00:00+00:00",
        "2027-01-15T08:00:00z",
        "2027-01-15 08:00:00Z",
        "2027-01-15T08:00:00Z\n",
        " 2027-01-15T08:00:00Z",
        "02027-01-15T08:00:00Z",
        "2027-01-15T08:00:00.Z",
        "２027-01-15T08:00:00Z",
        "x" * 10_000,
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text):
    with pytest.raises(BadTime, match=r"is not a time\. Write it in UTC as 2027-01-15T09:00:00Z\.") as caught:
        seconds(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "2027-02-29T00:00:00Z",
        "2027-13-01T00:00:00Z",
        "2027-01-15T24:00:00Z",
        "2027-01-15T08:00:60Z",
        "0000-01-01T00:00:00Z",
    ],
)
def test_a_time_that_does_not_exist_is_refused(text):
    with pytest.raises(BadTime, match="does not exist"):
        seconds(text)


@pytest.mark.parametrize(
    ("moment", "now", "is_reached", "is_ahead"),
    [
        (5.0, 4.9, False, True),
        (5.0, 5.0, True, False),
        (5.0, 5.1, True, False),
        (None, 5.0, False, False),
        (5.0, None, False, False),
    ],
)
def test_an_unknown_time_is_neither_reached_nor_ahead(moment, now, is_reached, is_ahead):
    assert reached(moment, now) is is_reached
    assert ahead(moment, now) is is_ahead


def test_the_year_one_is_written_with_its_zeros():
    assert stamp(FIRST) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (-3, "0.0 s"),
        (0.44, "0.4 s"),
        (9.949, "9.9 s"),
        (9.951, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (599.7, "10 min 00 s"),
        (1589, "26 min 29 s"),
        (3599.6, "1 h 00 min"),
        (3900, "1 h 05 min"),
        (86_399, "1 day"),
        (90_000, "1 day 1 h"),
        (200_000, "2 days 8 h"),
        (863_999, "10 days"),
    ],
)
def test_a_span_is_said_in_units_that_a_person_counts_in(span, words):
    assert lasted(span) == words


@given(st.floats(0, 10**9))
def test_no_unit_of_a_span_is_ever_full_and_a_longer_span_is_never_said_shorter(span):
    sizes = {"s": 1, "min": 60, "h": 3600, "day": 86_400, "days": 86_400}
    words = lasted(span).split()
    told = [(float(number), unit) for number, unit in zip(words[::2], words[1::2], strict=True)]
    assert all(number < {"s": 60, "min": 60, "h": 24}.get(unit, 10**9) for number, unit in told)
    said = sum(number * sizes[unit] for number, unit in told)
    assert abs(said - span) <= max(sizes[told[-1][1]] / 2, 0.05 if span < 10 else 0.5) + 1e-6
