"""C4: nobody's timestamp decides; only what this reader itself met, for as long as it met it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storefakes import HandClock

from fdagent.ports import Entry
from fdagent.stores.sightings import Sightings


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def met(clock):
    return Sightings(clock)


def test_what_was_never_met_is_unchanged_for_no_time_at_all(met):
    assert met.unchanged_for("agents/a.json", "v1") is None


def test_what_was_met_once_is_unchanged_for_zero_seconds_however_long_ago(met, clock):
    met.seen("agents/a.json", "v1")
    clock.move(1000)
    assert met.unchanged_for("agents/a.json", "v1") == 0


def test_the_span_runs_from_the_first_meeting_to_the_last(met, clock):
    for _ in range(4):
        met.seen("agents/a.json", "v1")
        clock.move(30)
    assert met.unchanged_for("agents/a.json", "v1") == 90


def test_another_version_starts_anew_and_the_old_one_is_no_longer_met(met, clock):
    met.seen("agents/a.json", "v1")
    clock.move(60)
    met.seen("agents/a.json", "v2")
    assert met.unchanged_for("agents/a.json", "v1") is None
    assert met.unchanged_for("agents/a.json", "v2") == 0
    met.seen("agents/a.json", "v1")
    assert met.unchanged_for("agents/a.json", "v1") == 0


def test_an_answer_that_took_long_proves_only_what_lies_between_its_arrival_and_the_next_request(met, clock):
    met.seen("agents/a.json", "v1", asked=clock.at - 500)  # asked long ago, held up, arrived now
    clock.move(10)
    asked = clock.at
    clock.move(300)  # this one is held up as well
    met.seen("agents/a.json", "v1", asked=asked)
    assert met.unchanged_for("agents/a.json", "v1") == 10


def test_an_answer_overtaken_by_a_later_one_does_not_shorten_the_span(met, clock):
    met.seen("agents/a.json", "v1")
    early = clock.at
    clock.move(50)
    met.seen("agents/a.json", "v1")
    met.seen("agents/a.json", "v1", asked=early)
    assert met.unchanged_for("agents/a.json", "v1") == 50


def test_a_request_from_the_future_counts_as_one_of_now(met, clock):
    met.seen("agents/a.json", "v1")
    met.seen("agents/a.json", "v1", asked=clock.at + 9999)
    assert met.unchanged_for("agents/a.json", "v1") == 0


def test_a_jump_of_the_wall_clock_changes_nothing(met, clock):
    met.seen("agents/a.json", "v1")
    clock.move(5)
    clock.epoch += 86_400
    met.seen("agents/a.json", "v1")
    assert met.unchanged_for("agents/a.json", "v1") == 5


def test_a_listing_meets_all_it_names_and_forgets_what_it_lacks_under_its_prefix_only(met, clock):
    for key in ("agents/a.json", "agents/b.json", "leases/a.json"):
        met.seen(key, "v1")
    clock.move(7)
    met.listed("agents/", [Entry("agents/a.json", "v1", 1.0, 10)])
    assert met.unchanged_for("agents/a.json", "v1") == 7
    assert met.unchanged_for("agents/b.json", "v1") is None
    assert met.unchanged_for("leases/a.json", "v1") == 0


def test_a_forgotten_key_starts_anew(met, clock):
    met.seen("agents/a.json", "v1")
    clock.move(7)
    met.forget("agents/a.json")
    met.forget("agents/never.json")
    met.seen("agents/a.json", "v1")
    assert met.unchanged_for("agents/a.json", "v1") == 0


def test_no_more_than_the_bound_is_remembered_and_the_one_met_longest_ago_goes(clock):
    met = Sightings(clock, most=3)
    for n in range(4):
        met.seen(f"k{n}", "v")
    met.seen("k1", "v")
    met.seen("k4", "v")
    assert [met.unchanged_for(f"k{n}", "v") for n in range(5)] == [None, 0, None, 0, 0]


def test_a_worker_goes_on_from_what_its_daemon_met(met, clock):
    met.seen("leases/a.json", "v1")
    clock.move(40)
    met.seen("leases/a.json", "v1")
    met.seen("agents/x.json", "v1")
    worker = Sightings(clock)
    worker.load(met.rows("leases/"))
    assert worker.unchanged_for("agents/x.json", "v1") is None
    clock.move(2)
    worker.seen("leases/a.json", "v1")
    assert worker.unchanged_for("leases/a.json", "v1") == 42


def test_a_row_of_another_boot_from_this_clocks_future_is_left_out(met, clock):
    met.load([("k", "v", clock.at + 1, clock.at + 100), ("k2", "v", 5.0, 1.0)])
    assert met.unchanged_for("k", "v") is None
    assert met.unchanged_for("k2", "v") is None


def test_an_older_row_never_replaces_a_newer_version(met, clock):
    old = ("k", "v1", clock.at - 100, clock.at - 50)
    met.seen("k", "v2")
    met.load([old])
    assert met.unchanged_for("k", "v2") == 0
    clock.move(10)
    met.load([("k", "v3", clock.at - 4, clock.at - 1)])
    assert met.unchanged_for("k", "v3") == 3


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1000)), min_size=1, max_size=40))
def test_the_span_is_never_longer_than_the_version_was_really_there(steps):
    clock, began, current = HandClock(), 0.0, ""
    met = Sightings(clock)
    for version, pause in steps:
        if version != current:
            current, began = version, clock.at
        met.seen("k", current)
        assert met.unchanged_for("k", current) <= clock.at - began
        clock.move(pause)
