"""Who may take, keep and break a lease."""

from dataclasses import replace

import pytest
from chart_kit import NOW, MemoryCell, go
from fakes import FakeProcesses

from fdagent.commit import Committed
from machines.lease import LEASE
from models.lease import Lease, LeaseFacts, has_lapsed, span_seconds
from models.place import process_gone
from models.step import Move, Refusal, Step

HELD = Lease(table="silver.orders", op="a1", agent="etl-01", instance="i1", seconds=300.0, renewed_at=NOW)
TAKER = LeaseFacts(new=Lease(table="silver.orders", agent="etl-02", instance="i2", seconds=120.0))


def opened(event, facts, record=HELD):
    return isinstance(LEASE.judge(event, Step(record, NOW, facts, "new-op")), Move)


def test_a_free_lease_is_taken_for_one_span():
    cell = MemoryCell()
    assert isinstance(go(LEASE, cell, "acquire", TAKER, op="t1"), Committed)
    taken = cell.record
    assert (taken.op, taken.agent, taken.acquired_at, taken.renewed_at) == ("t1", "etl-02", NOW, NOW)
    assert (taken.expires_at, taken.seconds) == (NOW + 120, 120)


def test_of_two_takers_of_a_lapsed_lease_one_wins_and_the_other_is_refused_in_words():
    cell = MemoryCell(HELD)
    rival = replace(TAKER, lapsed=True)
    cell.before = [lambda: go(LEASE, cell, "acquire", rival, op="rival")]
    answer = go(LEASE, cell, "acquire", lambda record: replace(TAKER, lapsed=record.op == "a1"))
    assert str(answer) == (
        "acquire while the lease is held: it was not yet seen unchanged for its whole span; "
        "its agent is not known to be lost or replaced, nor its worker to be gone"
    )
    assert cell.record.op == "rival"


@pytest.mark.parametrize("fact", ["lapsed", "left_alone", "process_gone"])
def test_a_lease_nobody_is_behind_is_taken_at_once(fact):
    assert opened("acquire", replace(TAKER, **{fact: True}))
    assert not opened("acquire", TAKER)


def test_a_lapsed_lease_is_anyones_ones_own_too():
    """(9a)"""
    assert opened("acquire", replace(TAKER, ops=frozenset({"a1"}), lapsed=True))


def test_a_claim_that_holds_it_renews_and_does_not_take_it_again():
    facts = LeaseFacts(ops=frozenset({"a0", "a1"}), believed=True)
    assert opened("renew", facts)
    assert not opened("acquire", facts)
    cell = MemoryCell(replace(HELD, extra={"later": 1}))
    assert isinstance(go(LEASE, cell, "renew", facts, op="a2"), Committed)
    assert (cell.record.op, cell.record.expires_at, cell.record.extra) == ("a2", NOW + 300, {"later": 1})


def test_a_holder_whose_own_span_has_ended_does_not_renew():
    assert not opened("renew", LeaseFacts(ops=frozenset({"a1"}), believed=False))


def test_two_workers_of_one_agent_are_strangers_to_each_other():
    """(9b)"""
    other = LeaseFacts(ops=frozenset({"b1"}), believed=True)
    assert not opened("renew", other)
    assert not opened("release", other)


def test_a_lease_without_an_op_is_nobodys_and_only_lapses():
    old = replace(HELD, op="")
    assert not opened("release", LeaseFacts(ops=frozenset({""})), old)
    assert opened("acquire", replace(TAKER, lapsed=True), old)


def test_a_release_whose_answer_is_lost_is_done_when_the_lease_is_gone():
    """(17)"""
    cell = MemoryCell(HELD, lose_answers=1)
    done = go(LEASE, cell, "release", LeaseFacts(ops=frozenset({"a1"})))
    assert isinstance(done, Committed)
    assert done.record is None
    assert done.move.event == "release"


def test_a_person_breaks_the_lease_they_saw_and_no_later_one():
    facts = LeaseFacts(by_a_person=True, named_op="a1")
    assert opened("break", facts)
    assert not opened("break", replace(facts, named_op="a0"))
    assert not opened("break", replace(facts, by_a_person=False))


def test_a_lease_that_a_late_create_brought_back_is_never_believed_by_its_writer():
    cell = MemoryCell(replace(HELD, op="late"))
    answer = go(LEASE, cell, "renew", LeaseFacts(ops=frozenset({"a7"}), believed=True))
    assert isinstance(answer, Refusal)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"seconds": 300.0}, 300.0),
        ({"seconds": None, "renewed_at": NOW, "expires_at": NOW + 60}, 60.0),
        ({"seconds": None, "renewed_at": None, "acquired_at": NOW, "expires_at": NOW + 90}, 90.0),
        ({"seconds": 0.0, "expires_at": NOW + 30}, 30.0),
        ({"seconds": -5.0, "expires_at": NOW - 30}, None),
        ({"seconds": None, "expires_at": None}, None),
        ({"seconds": None, "renewed_at": None, "expires_at": NOW}, None),
    ],
)
def test_the_span_to_watch_is_the_leases_own(changes, expected):
    lease = replace(HELD, **changes)
    assert span_seconds(lease) == expected
    assert has_lapsed(lease, 1e12) is (expected is not None)


@pytest.mark.parametrize(("unchanged", "expected"), [(None, False), (0.0, False), (299.9, False), (300.0, True)])
def test_a_lease_lapses_only_when_it_was_seen_unchanged_for_the_whole_span(unchanged, expected):
    """(11)"""
    assert has_lapsed(replace(HELD, expires_at=NOW - 1e9), unchanged) is expected


PLACED = replace(HELD, boot="host/boot/ns", pid=200, process_started_at=2.0)


@pytest.mark.parametrize(
    ("named", "alive", "place", "expected"),
    [
        (PLACED, {}, "host/boot/ns", True),
        (PLACED, {200: 2.0}, "host/boot/ns", False),
        (PLACED, {200: 9.0}, "host/boot/ns", True),
        (PLACED, {}, "host/boot2/ns", False),
        (PLACED, {}, "host/boot/ns2", False),
        (PLACED, {}, "", False),
        (replace(PLACED, boot=""), {}, "", False),
        (replace(PLACED, boot=None), {}, "host/boot/ns", False),
        (replace(PLACED, pid=None), {}, "host/boot/ns", False),
        (replace(PLACED, process_started_at=None), {}, "host/boot/ns", False),
    ],
)
def test_a_process_is_gone_only_when_this_very_place_knows_it(named, alive, place, expected):
    """(14)"""
    assert process_gone(named, place=place, started_at=FakeProcesses(alive=alive).started_at) is expected
