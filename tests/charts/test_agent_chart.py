"""One start of an agent under one name, and how its readers judge whether it lives."""

import math
from dataclasses import replace

import pytest
from chart_kit import NOW, MemoryCell, go

from fdagent.commit import Committed
from machines.agent import AGENT
from models.agent import AgentFacts, AgentRecord, AgentState, Pipeline
from models.jsonrecord import JsonPart
from models.liveness import (
    Liveness,
    covers,
    default_span_seconds,
    grace_for,
    is_gone,
    is_lost,
    is_silent,
    liveness,
    lost_after_seconds,
    serves,
    span_seconds,
)
from models.step import Move, Refusal, Step

SERVED = Pipeline(enabled=True, entities=("silver.*", "gold.sales"), allow_backfill=False)
ALIVE = AgentRecord(
    name="etl-01",
    state=AgentState.RUNNING,
    instance="i1",
    op="b1",
    env="prod",
    metadata_version="v1",
    heartbeat_at=NOW,
    stale_after=NOW + 90,
    grace_seconds=60.0,
    status_seconds=30.0,
    pipeline=SERVED,
)
ME = AgentFacts(instance="i1", ops=frozenset({"b1"}), new=replace(ALIVE, op=""), stale_seconds=90.0)
NEW = AgentFacts(instance="i2", new=replace(ALIVE, instance="i2", op=""), stale_seconds=90.0)


def opened(event, facts, record=ALIVE):
    return isinstance(AGENT.judge(event, Step(record, NOW, facts, "new-op")), Move)


def test_a_free_name_and_a_stopped_one_are_announced_at_once():
    for record in (None, replace(ALIVE, state=AgentState.STOPPED)):
        cell = MemoryCell(record)
        assert isinstance(go(AGENT, cell, "announce", NEW, op="n1"), Committed)
        said = cell.record
        assert (said.state, said.instance, said.op, said.started_at) == ("running", "i2", "n1", NOW)
        assert (said.heartbeat_at, said.stale_after) == (NOW, NOW + 90)


@pytest.mark.parametrize("state", [AgentState.RUNNING, AgentState.STOPPING])
@pytest.mark.parametrize("fact", ["holder_lost", "process_gone", "silent"])
def test_a_name_that_may_be_in_use_is_taken_only_from_a_dead_one(state, fact):
    record = replace(ALIVE, state=state)
    assert not opened("announce", NEW, record)
    assert opened("announce", replace(NEW, **{fact: True}), record)


def test_a_replaced_start_is_told_so_at_its_next_beat():
    answer = AGENT.judge("beat", Step(replace(ALIVE, instance="i2", op="x"), NOW, ME, "new-op"))
    assert "another process wrote its last version: this one was replaced" in str(answer)


def test_a_clone_that_shares_the_instance_is_noticed_by_its_op():
    assert not opened("beat", replace(ME, ops=frozenset({"mine"})))
    cell = MemoryCell(ALIVE)
    clone = replace(ME)
    cell.before = [lambda: go(AGENT, cell, "beat", clone, op="clone-op")]
    answer = go(AGENT, cell, "beat", ME, op="b2")
    assert isinstance(answer, Refusal)
    assert cell.record.op == "clone-op"


def test_a_draining_agent_still_beats():
    """(8c)"""
    cell = MemoryCell(ALIVE)
    assert isinstance(go(AGENT, cell, "drain", ME, op="b2"), Committed)
    assert isinstance(go(AGENT, cell, "beat", replace(ME, ops=frozenset({"b2"})), op="b3"), Committed)
    assert (cell.record.state, cell.record.op) == ("stopping", "b3")
    assert isinstance(go(AGENT, cell, "stop", replace(ME, ops=frozenset({"b3"})), op="b4"), Committed)
    assert cell.record.state == "stopped"


def test_an_agent_is_forgotten_only_when_a_person_asks_and_nothing_waits_for_it():
    """(4c)"""
    facts = AgentFacts(by_a_person=True, open_requests=False)
    stopped = replace(ALIVE, state=AgentState.STOPPED)
    assert opened("forget", facts, stopped)
    assert not opened("forget", facts)
    assert opened("forget", replace(facts, holder_lost=True))
    for changes in ({"open_requests": True}, {"open_requests": None}, {"by_a_person": False}):
        assert not opened("forget", replace(facts, **changes), stopped)


def test_a_beat_keeps_what_a_newer_program_wrote():
    cell = MemoryCell(replace(ALIVE, extra={"shard": 3}))
    go(AGENT, cell, "beat", ME, op="b2")
    assert cell.record.extra == {"shard": 3}


@pytest.mark.parametrize(
    ("changes", "span", "lost_after"),
    [
        ({}, 90.0, 150.0),
        ({"stale_after": NOW + 1800, "grace_seconds": None}, 1800.0, 1860.0),
        ({"stale_after": NOW + 20, "grace_seconds": None}, 20.0, 40.0),
        ({"grace_seconds": -1.0}, 90.0, 150.0),
        ({"grace_seconds": math.inf}, 90.0, 150.0),
        ({"stale_after": NOW - 5}, 90.0, 150.0),
        ({"stale_after": None, "status_seconds": 600.0}, 1800.0, 1860.0),
        ({"heartbeat_at": None}, 90.0, 150.0),
        ({"heartbeat_at": None, "status_seconds": None}, None, None),
        ({"heartbeat_at": None, "status_seconds": -3.0}, None, None),
    ],
)
def test_the_stale_span_is_the_records_own(changes, span, lost_after):
    record = replace(ALIVE, **changes)
    assert span_seconds(record) == span
    assert lost_after_seconds(record) == lost_after


def test_the_default_span_is_three_beats_and_at_least_ninety_seconds():
    assert [default_span_seconds(beat) for beat in (1.0, 30.0, 31.0, 600.0)] == [90.0, 90.0, 93.0, 1800.0]
    assert [grace_for(span) for span in (10.0, 60.0, 90.0)] == [10.0, 60.0, 60.0]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, Liveness.ALIVE),
        (89.9, Liveness.ALIVE),
        (90.0, Liveness.LATE),
        (149.9, Liveness.LATE),
        (150.0, Liveness.LOST),
        (None, Liveness.UNKNOWN),
        (-1.0, Liveness.UNKNOWN),
        (math.nan, Liveness.UNKNOWN),
        (math.inf, Liveness.UNKNOWN),
    ],
)
def test_an_agent_is_judged_by_how_long_it_was_seen_unchanged(seconds, expected):
    assert liveness(ALIVE, seconds) is expected
    assert liveness(replace(ALIVE, state=AgentState.STOPPING), seconds) is expected
    assert liveness(replace(ALIVE, state=AgentState.STOPPED), seconds) is Liveness.STOPPED
    assert is_lost(ALIVE, seconds) is (expected is Liveness.LOST)


def test_no_timestamp_of_another_machine_decides():
    for skew in (-1e9, 0.0, 1e9):
        record = replace(ALIVE, heartbeat_at=NOW + skew, stale_after=NOW + skew + 90, started_at=NOW + skew)
        assert liveness(record, 10.0) is Liveness.ALIVE
        assert liveness(record, 150.0) is Liveness.LOST


def test_no_record_is_unknown_never_lost_never_gone():
    assert liveness(None, 1e9) is Liveness.UNKNOWN
    assert not is_lost(None, 1e9)
    assert not is_gone(None, holder="i1", unchanged_seconds=1e9, instance_seconds=1e9, serves_mailbox=False)


@pytest.mark.parametrize(
    ("changes", "holder", "unchanged", "instance", "serves_it", "expected"),
    [
        ({}, "i1", 10.0, 500.0, True, False),
        ({}, "i1", 149.0, 500.0, True, False),
        ({}, "i1", 150.0, 500.0, True, True),
        ({}, "i1", None, 500.0, True, False),
        ({"state": AgentState.STOPPED}, "i1", 60.0, 500.0, True, False),
        ({"state": AgentState.STOPPED}, "i1", 60.1, 500.0, True, True),
        ({"state": AgentState.STOPPED}, "i1", None, 500.0, True, False),
        ({"instance": "i2"}, "i1", 10.0, 90.0, True, False),
        ({"instance": "i2"}, "i1", 10.0, 90.1, True, True),
        ({"instance": "i2"}, "i1", 10.0, None, True, False),
        ({"instance": "i2"}, None, 10.0, 500.0, True, False),
        ({"instance": None}, "i1", 10.0, 500.0, True, False),
        ({}, "i1", 10.0, 500.0, False, True),
        ({}, "i1", 10.0, 500.0, None, False),
        ({}, "i1", 100.0, 500.0, False, False),
    ],
)
def test_an_agent_is_gone_when_it_is_lost_stopped_replaced_or_serves_no_more(
    changes, holder, unchanged, instance, serves_it, expected
):
    """(4a, 4b)"""
    record = replace(ALIVE, **changes)
    found = is_gone(
        record, holder=holder, unchanged_seconds=unchanged, instance_seconds=instance, serves_mailbox=serves_it
    )
    assert found is expected


@pytest.mark.parametrize(("seconds", "expected"), [(None, False), (59.9, False), (60.0, True)])
def test_a_name_is_silent_after_two_beats_without_a_change(seconds, expected):
    assert is_silent(ALIVE, seconds) is expected
    assert not is_silent(None, seconds)
    assert not is_silent(replace(ALIVE, status_seconds=None), 1e9)


ORDERS = ("silver.orders",)


@pytest.mark.parametrize(
    ("changes", "asked", "expected"),
    [
        ({}, {}, True),
        ({}, {"env": "test"}, False),
        ({"env": None}, {}, None),
        ({}, {"entities": ("gold.sales", "silver.orders")}, True),
        ({}, {"entities": ("gold.costs",)}, False),
        ({}, {"entities": None}, None),
        ({}, {"backfill": True}, False),
        ({"pipeline": replace(SERVED, allow_backfill=True)}, {"backfill": True}, True),
        ({"pipeline": replace(SERVED, allow_backfill=None)}, {"backfill": True}, None),
        ({"pipeline": replace(SERVED, enabled=False)}, {}, False),
        ({"pipeline": replace(SERVED, enabled=None)}, {}, None),
        ({"pipeline": replace(SERVED, entities=None)}, {}, None),
        ({"pipeline": replace(SERVED, entities=("*",))}, {"entities": ("gold.costs",)}, True),
        ({"pipeline": replace(SERVED, entities=())}, {}, False),
        ({"pipeline": None}, {}, None),
        ({}, {"version": "v2"}, False),
        ({}, {"version": None}, True),
        ({"metadata_version": None}, {}, None),
        ({"metadata_version": None, "env": "test"}, {}, False),
    ],
)
def test_what_an_agent_serves_is_read_from_its_record_and_missing_is_never_an_answer(changes, asked, expected):
    question = {"env": "prod", "entities": ORDERS, "backfill": False, "version": "v1"} | asked
    assert serves(replace(ALIVE, **changes), **question) is expected


def test_globs_tell_letter_case_apart():
    assert covers(("Silver.*",), ORDERS) is False
    assert covers(("silver.[a-o]*",), ORDERS) is True


def test_announcing_without_saying_who_is_a_bug():
    with pytest.raises(AssertionError, match="announce without a record"):
        AGENT.judge("announce", Step(None, NOW, AgentFacts(instance="i2"), "op"))
    assert issubclass(AgentRecord, JsonPart)
