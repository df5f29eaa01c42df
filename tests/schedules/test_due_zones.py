"""Due times in every zone of the tz database, 2020 to 2035, against the standard library's reading of the same zones.

`pytest --exhaustive` walks each day of the sixteen years in each zone; without it, the days around each clock change and
some others.
"""

import math
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise, product
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from schedule_kit import DAY, around, at, behaviours, changes, days, instant_of, zone_names

from fdagent.config.shapes import DAYS
from fdagent.errors import ConfigError
from fdagent.fleet import due
from fdagent.fleet.due import NEVER, Times

ROOT = Path(__file__).parents[2]
CHUNKS, EXHAUSTIVE_CHUNKS = 4, 12
SAMPLES = tuple(date(year, month, day) for year, month, day in product((2020, 2024, 2029, 2035), (1, 6, 12), (1, 30)))
OTHER_MACHINES = ("Pacific/Apia", "America/St_Johns", "Australia/Lord_Howe", "UTC")


def chain(times: Times, after: float, until: float) -> list[float]:
    """One due time after the other, each asked for by the one before it."""
    found, at_ = [], after
    while (at_ := times.next_after(at_)) <= until:
        assert not found or at_ > found[-1], "the next due time is not later"
        found.append(at_)
    return found


def check_days(name: str, start: date, number: int, clock: str) -> None:
    """A daily time is due once for each day, at the instant that the standard library says."""
    zone = ZoneInfo(name)
    dues = chain(
        Times(daily=(clock,), zone=name),
        instant_of(start, clock, zone) - 1,
        instant_of(start + timedelta(number), clock, zone) - 1,
    )
    assert dues == [instant_of(day, clock, zone) for day in days(start, number)], (name, start, clock)
    of_days = Counter(datetime.fromtimestamp(due, zone).date() for due in dues)
    for day in days(start, number):
        # Only where clocks skip over midnight can a shifted time be of the next day.
        shifted = datetime.fromtimestamp(instant_of(day, clock, zone), zone).date() != day
        before = datetime.fromtimestamp(instant_of(day - timedelta(1), clock, zone), zone).date() == day
        assert of_days[day] == 1 - shifted + (before and day != start), (name, day, clock)


def check_weeks(name: str, start: date, clock: str) -> None:
    """A weekly time is due once a week, on its weekday."""
    zone = ZoneInfo(name)
    times = Times(weekly=(f"{DAYS[start.weekday()]} {clock}",), zone=name)
    wanted = [instant_of(start + timedelta(7 * n), clock, zone) for n in (-1, 0, 1)]
    assert chain(times, wanted[0] - 1, wanted[-1] + 1) == wanted, (name, start, clock)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_around_each_clock_change_a_time_is_due_once_a_day_and_once_a_week(chunk):
    for name in behaviours()[chunk::CHUNKS]:
        for change in changes(name)[1]:
            day, clocks = around(change)
            for clock in clocks:
                check_days(name, day - timedelta(2), 5, clock)
            check_weeks(name, day, clocks[2])


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_on_days_of_every_season_a_time_is_due_once_a_day_and_once_a_week(chunk):
    for number, name in enumerate(behaviours()[chunk::CHUNKS]):
        for day in SAMPLES[number % 2 :: 2]:
            check_days(name, day, 4, "00:00")
            check_weeks(name, day, "23:59")


def test_every_zone_by_any_of_its_names_is_read_as_the_standard_library_reads_it():
    assert len(zone_names()) > 400
    for name in zone_names():
        zone, (_, found) = ZoneInfo(name), changes(name)
        for change in found:
            day, clocks = around(change)
            wanted = instant_of(day, clocks[2], zone)
            times = Times(daily=(clocks[2],), zone=name)
            assert times.latest(wanted - DAY / 2, wanted) == wanted == times.next_after(wanted - DAY / 2), (name, day)


def test_several_times_a_day_are_due_in_order_and_two_that_meet_are_one():
    for name in behaviours():
        zone = ZoneInfo(name)
        for change in changes(name)[1][-6::2]:
            day, clocks = around(change)
            wanted = {instant_of(one, clock, zone) for one in days(day - timedelta(1), 3) for clock in clocks}
            first, last = min(wanted), max(wanted)
            times = Times(daily=clocks, zone=name)
            dues = chain(times, first - 1, last)
            assert dues == sorted(wanted), (name, day, clocks)
            assert times.count(first - 1, last) == len(dues)
            assert times.latest(first, last - 1) == dues[-2]


def test_machines_with_other_local_zones_count_the_same_instants():
    assert {digest_on(machine) for machine in OTHER_MACHINES} == {digest()}


def digest_on(machine: str) -> str:
    """The same, in a process whose own zone is another."""
    code = "from test_due_zones import digest; print(digest())"
    folders = os.pathsep.join(map(str, (ROOT, ROOT / "tests", Path(__file__).parent)))
    env = {**os.environ, "TZ": machine, "PYTHONPATH": folders}
    answer = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def digest() -> str:
    """Due times around some clock changes of every zone that has any."""
    import hashlib

    found = []
    for name in (
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "America/Santiago",
        "Europe/Berlin",
        "America/Nuuk",
        "Asia/Gaza",
    ):
        for change in changes(name)[1]:
            day, clocks = around(change)
            start = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() - DAY
            found.append(Times(daily=clocks[1:4], zone=name).next_after(start))
            found.append(Times(weekly=(f"{DAYS[day.weekday()]} {clocks[2]}",), zone=name).next_after(start))
            found.append(Times(every_minutes=7.5, zone=name).next_after(start))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def test_without_a_zone_the_machines_own_counts(monkeypatch):
    for machine in OTHER_MACHINES:
        monkeypatch.setenv("TZ", machine)
        mine, named = Times(daily=("02:15",)), Times(daily=("02:15",), zone=machine)
        for start in (at("2027-03-26"), at("2027-10-29"), at("2027-04-02")):
            assert chain(mine, start, start + 4 * DAY) == chain(named, start, start + 4 * DAY)


def test_a_machine_whose_own_zone_does_not_exist_is_told_so_and_never_taken_for_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Mars/Olympus")
    with pytest.raises(ConfigError, match="TZ=Mars/Olympus"):
        Times(daily=("02:00",)).next_after(0)
    assert Times(every_minutes=1).next_after(0) == 60


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "Mars/Sol3", "UTC+3", "EST5EDT4", "/etc/passwd", "../UTC", "Europe", " "]
)
def test_a_name_that_is_no_zone_is_an_error_and_never_utc(name):
    with pytest.raises(ConfigError, match="tz database has no time zone"):
        Times(weekly=("mon 02:00",), zone=name).next_after(0)


def test_a_machine_without_tz_data_says_what_to_install(monkeypatch):
    due._zone.cache_clear()
    monkeypatch.setattr(due, "zone_problem", lambda _: "can't be looked up")
    with pytest.raises(ConfigError, match="tzdata"):
        Times(daily=("02:00",), zone="Europe/Vaduz").next_after(0)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chunk", range(EXHAUSTIVE_CHUNKS))
def test_each_day_of_sixteen_years_has_each_time_once(chunk, request):
    if not request.config.getoption("--exhaustive"):
        pytest.skip("pytest --exhaustive walks through every day")
    for name in behaviours()[chunk::EXHAUSTIVE_CHUNKS]:
        zone = ZoneInfo(name)
        for clock in ("00:00", "00:30", "02:00", "02:30", "12:00", "23:45"):
            check_days(name, date(2020, 1, 2), 5842, clock)
            monday, times = date(2020, 1, 6), Times(weekly=(f"mon {clock}",), zone=name)
            wanted = [instant_of(monday + timedelta(7 * week), clock, zone) for week in range(834)]
            assert chain(times, wanted[0] - 1, wanted[-1]) == wanted


def test_due_times_keep_their_order_and_their_distance():
    times = Times(every_minutes=7.5)
    dues = chain(times, at("2027-03-28"), at("2027-03-29"))
    assert {later - due for due, later in pairwise(dues)} == {450.0}


def test_what_dateutil_makes_of_a_name_without_a_file_is_not_taken_for_a_zone(monkeypatch):
    due._zone.cache_clear()
    monkeypatch.setattr(due.tz, "gettz", due.tz.tzstr)
    with pytest.raises(ConfigError, match="tz database has no time zone"):
        Times(daily=("02:00",), zone="Etc/GMT+5").next_after(0)
    due._zone.cache_clear()


@pytest.mark.parametrize("minutes", [1, 7.5, 0.025, 0.0201, 0.0333, 1440])
def test_a_moment_before_a_due_time_is_before_it_and_the_due_time_itself_is_not(minutes):
    times = Times(every_minutes=minutes)
    due = times.next_after(at("2027-01-15"))
    for _ in range(1000):
        before, due = due, times.next_after(due)
        just_before = math.nextafter(due, 0)
        assert times.next_after(just_before) == due
        assert times.latest(before - 1, just_before) == before
        assert times.latest(before, due) == due
        assert (times.count(before, due), times.count(just_before, due), times.count(due, due)) == (1, 1, 0)


def test_where_the_calendar_ends_nothing_is_due_any_more():
    for times in (
        Times(every_minutes=1),
        Times(daily=("02:00",), zone="UTC"),
        Times(weekly=("mon 02:00",), zone="UTC"),
    ):
        assert times.next_after(at("9995-01-01")) == NEVER
        assert times.next_after(1e300) == NEVER
