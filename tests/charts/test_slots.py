"""Slots, requests, wishes and releases."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from chart_kit import BASE, DAY, LONG_AGO, NEW_SLOT, NOW, MemoryCell, go
from hypothesis import given
from hypothesis import strategies as st

from fdagent.commit import Committed
from fdagent.errors import BadId, BadTime
from machines.release import RELEASE
from machines.slot import SLOT
from machines.wish import WISH
from models.ids import id_problem
from models.release import Release, ReleaseFacts
from models.slot import Request, SlotFacts, deadline_of, every, slot_deadline, slot_due, slot_id, slot_name
from models.step import Move, Refusal, Step
from models.times import seconds
from models.wish import Wish, WishFacts

DUE = seconds("2027-01-15T09:00:00Z")


def opened(chart, event, record, facts):
    return isinstance(chart.judge(event, Step(record, NOW, facts, "new-op")), Move)


def test_a_slots_id_is_its_schedule_and_its_due_time_in_utc():
    assert slot_id("hourly", DUE) == "sched-hourly-20270115T0900Z"
    assert slot_due("20270115T0900Z") == DUE


@given(st.integers(0, 4_000_000_000 // 60))
def test_a_slots_name_reads_back_as_its_due_time(minute):
    assert slot_due(slot_name(minute * 60.0)) == minute * 60.0


def test_the_longest_shared_schedule_id_makes_an_id_that_may_be_in_a_path():
    assert id_problem(slot_id("s" * 40, DUE)) == ""
    with pytest.raises(BadId, match="41 characters, 40 are allowed"):
        slot_id("s" * 41, DUE)


@pytest.mark.parametrize("schedule", ["", "a/b", "..", "con", "a b", "ä"])
def test_a_schedule_that_may_not_be_in_a_path_makes_no_slot(schedule):
    with pytest.raises(BadId):
        slot_id(schedule, DUE)


def test_a_due_time_between_minutes_makes_no_slot():
    with pytest.raises(BadTime, match="2027-01-15T09:00:30Z is not a whole minute"):
        slot_name(DUE + 30)


@pytest.mark.parametrize(
    "name", ["", "20270115", "20270115T0900", "20271315T0900Z", "20270115T2500Z", "20270115T090000Z", "２0270115T0900Z"]
)
def test_what_is_no_slot_is_refused(name):
    with pytest.raises(BadTime, match="is not a slot"):
        slot_due(name)


@pytest.mark.parametrize(
    ("next_due", "expected"), [(DUE + 60, DUE + 60), (DUE + 21_600, DUE + 21_600), (DUE + 86_400, DUE + 21_600)]
)
def test_a_slot_may_be_claimed_until_the_next_one_and_six_hours_at_most(next_due, expected):
    assert slot_deadline(DUE, next_due) == expected


@given(st.integers(1, 7 * 24 * 60), st.floats(0, 4e9))
def test_every_n_minutes_is_due_at_multiples_since_the_epoch(minutes, now):
    due, after = every(minutes, now)
    assert due <= now < after
    assert after - due == minutes * 60
    assert due % (minutes * 60) == 0


def test_every_forty_five_minutes_does_not_follow_the_hour_or_the_day():
    found = [every(45, DUE + n * 2700)[0] for n in range(3)]
    assert [datetime.fromtimestamp(due, UTC).strftime("%H:%M") for due in found] == ["09:00", "09:45", "10:30"]


def test_less_than_a_minute_is_no_shared_schedule():
    with pytest.raises(ValueError, match="every 0 minutes"):
        every(0, NOW)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request(), NOW + DAY),
        (Request(submitted_at=NOW - 3600), NOW + DAY - 3600),
        (Request(submitted_at=NOW + 1e9), NOW + DAY),
        (Request(deadline=NOW + 5), NOW + 5),
        (Request(deadline=LONG_AGO, submitted_at=NOW), LONG_AGO),
    ],
)
def test_every_request_has_a_deadline(request_, expected):
    assert deadline_of(request_, first_seen=NOW) == expected


@pytest.mark.parametrize(
    ("store_now", "expected"),
    [(None, False), (NOW - 61, False), (NOW - 60, True), (NOW + 3539, True), (NOW + 3540, False)],
)
def test_a_slot_is_posted_from_its_due_time_to_its_deadline_by_the_stores_clock(store_now, expected):
    assert opened(SLOT, "post", None, SlotFacts(store_now=store_now, new=NEW_SLOT)) is expected
    assert not opened(SLOT, "post", None, SlotFacts(store_now=store_now, new=replace(NEW_SLOT, due_at=None)))
    assert not opened(SLOT, "post", None, SlotFacts(store_now=store_now, new=replace(NEW_SLOT, deadline=None)))


def test_a_person_can_not_post_a_slot_early():
    facts = SlotFacts(store_now=NOW - 61, new=NEW_SLOT, asked=True)
    assert not opened(SLOT, "post", None, facts)


def test_of_all_agents_that_find_a_slot_due_one_posts_it():
    cell = MemoryCell()
    facts = SlotFacts(store_now=NOW, new=replace(NEW_SLOT, submitted_by="etl-01"))
    cell.before = [lambda: go(SLOT, cell, "post", replace(facts, new=replace(NEW_SLOT, submitted_by="etl-02")), op="2")]
    answer = go(SLOT, cell, "post", facts, op="1")
    assert str(answer) == "post: not possible while the slot is posted"
    assert cell.record.submitted_by == "etl-02"


def test_a_slot_whose_answer_was_lost_is_known_as_ones_own():
    cell = MemoryCell(lose_answers=1)
    assert isinstance(go(SLOT, cell, "post", SlotFacts(store_now=NOW, new=NEW_SLOT), op="1"), Committed)


SPENT = SlotFacts(
    store_now=NOW, status_final=True, finished_at=NOW - 15 * DAY, deadline=NOW, retention_seconds=14 * DAY
)


@pytest.mark.parametrize(
    "changes",
    [
        {"status_final": False},
        {"finished_at": None},
        {"finished_at": NOW - 13 * DAY},
        {"deadline": None},
        {"deadline": NOW + 1},
        {"store_now": None},
        {"retention_seconds": 0.0, "finished_at": NOW - DAY},
    ],
)
def test_a_request_is_swept_only_when_it_ended_long_ago_and_its_deadline_has_passed(changes):
    assert opened(SLOT, "sweep", NEW_SLOT, SPENT)
    assert not opened(SLOT, "sweep", NEW_SLOT, replace(SPENT, **changes))


def test_an_open_request_is_kept_for_ever():
    assert not opened(SLOT, "sweep", NEW_SLOT, replace(SPENT, status_final=False, finished_at=LONG_AGO))


def test_a_wish_that_belongs_to_nothing_is_swept_by_its_own_age():
    facts = WishFacts(store_now=NOW, orphan=True, file_written_at=NOW - 15 * DAY, retention_seconds=14 * DAY)
    assert opened(WISH, "sweep", Wish(), facts)
    for changes in ({"orphan": False}, {"file_written_at": None}, {"file_written_at": NOW - 13 * DAY}):
        assert not opened(WISH, "sweep", Wish(), replace(facts, **changes))


def test_a_wish_says_who_has_it():
    cell = MemoryCell()
    go(WISH, cell, "post", replace(BASE["wish"], asked=True, asked_by="Kim"))
    assert (cell.record.asked_by, cell.record.asked_at) == ("Kim", NOW)


PROMOTED = ReleaseFacts(by_a_person=True, person="Kim", shown="", metadata_version="v1", git_commit="abc")


def test_two_people_who_promote_at_once_never_overwrite_each_other_unseen():
    cell = MemoryCell()
    other = replace(PROMOTED, person="Lee", metadata_version="v2")
    cell.before = [lambda: go(RELEASE, cell, "promote", other, op="2")]
    answer = go(RELEASE, cell, "promote", PROMOTED, op="1")
    assert isinstance(answer, Refusal)
    assert str(answer) == "promote while the release is promoted: somebody promoted since it was shown"
    assert (cell.record.metadata_version, cell.record.promoted_by) == ("v2", "Lee")


def test_a_release_names_the_version_before_it():
    cell = MemoryCell(Release(metadata_version="v0", extra={"later": 1}))
    go(RELEASE, cell, "promote", replace(PROMOTED, shown="v0"))
    assert (cell.record.metadata_version, cell.record.previous, cell.record.promoted_at) == ("v1", "v0", NOW)
    go(RELEASE, cell, "promote", replace(PROMOTED, shown="v1"), op="again")
    assert (cell.record.metadata_version, cell.record.previous, cell.record.extra) == ("v1", "v0", {"later": 1})
