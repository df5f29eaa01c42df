"""From every status that can come about, a request can still end; and it does, once an agent that may act is alive."""

from dataclasses import replace

import pytest
from chart_kit import BASE, NOW

from machines.request import POLL, REQUEST
from models.status import FINAL, RequestFacts, Status
from models.step import Move, Step

STARTS = [("etl-01", "i1"), ("etl-01", "i2"), ("etl-02", "j1")]
ABLE: RequestFacts = replace(
    BASE["request"],
    request_file=True,
    cancel_file=False,
    readable=True,
    may_serve=True,
    take_over=True,
    worker_free=True,
    max_attempts=2,
    holds_name=True,
    has_job=True,
    to_be_tried_again=True,
)
DEADLINE = NOW + 600
MOST_STEPS = 12


def menu():
    """What each start of each agent may find: files there or not, the holder gone or not, able or not."""
    for agent, instance in STARTS:
        me = replace(ABLE, agent=agent, instance=instance, deadline=DEADLINE)
        for changes in (
            {},
            {"holder_gone": True},
            {"has_job": False},
            {"cannot_run_soon": True, "worker_on_it": False},
            {"cancel_file": True},
            {"request_file": False},
            {"may_serve": False, "holder_gone": True},
            {"store_now": DEADLINE},
        ):
            yield replace(me, **changes)


def judge(event, record, facts):
    answer = REQUEST.judge(event, Step(record, NOW, facts, "op"))
    return answer.next if isinstance(answer, Move) else None


def reachable():
    """Every status that any events of any starts can make, but for its times."""
    found, todo = {}, [None]
    while todo:
        record = todo.pop()
        for facts in menu():
            for event in REQUEST.events:
                if event == "sweep" or (after := judge(event, record, facts)) is None:
                    continue
                key = (after.state, after.agent, after.instance, after.agents, after.offered)
                if key not in found:
                    found[key] = after
                    todo.append(after)
    return list(found.values())


STATUSES = reachable()
OPEN = [status for status in STATUSES if status.state not in FINAL]


def name(status: Status) -> str:
    offered = "-offered" if status.offered else ""
    return f"{status.state}-{status.instance}-{len(status.holds)}{offered}"


def run_on(status, facts, *, works):
    """Go on as one agent does: its poll first, then its job; the state it ends in."""
    for _ in range(MOST_STEPS):
        if status.state in FINAL:
            return status.state
        after = next((a for event in POLL if (a := judge(event, status, facts)) is not None), None)
        if after is None and works:
            after = judge("start", status, facts) or judge("succeed", status, facts)
        if after is None:
            return status.state
        status = after
    return "it goes round"


def test_the_search_met_what_it_should():
    assert {status.state for status in STATUSES} == set(REQUEST.states) - {"rejected"}
    assert any(status.offered for status in OPEN)
    assert max(len(status.holds) for status in OPEN) == 2
    assert len(OPEN) >= 20


@pytest.mark.parametrize("status", OPEN, ids=name)
def test_an_able_agent_that_finds_the_holder_gone_brings_it_to_an_end(status):
    facts = replace(ABLE, agent="etl-09", instance="k1", holder_gone=True, deadline=DEADLINE)
    assert run_on(status, facts, works=True) in ("succeeded", "failed")


@pytest.mark.parametrize("status", OPEN, ids=name)
def test_the_holder_itself_brings_it_to_an_end(status):
    facts = replace(ABLE, agent=status.agent, instance=status.instance, deadline=DEADLINE)
    able = run_on(status, facts, works=True)
    assert able == "succeeded" or (status.offered and len(status.holds) == 2), "nobody may hold it again: the deadline"


@pytest.mark.parametrize("status", OPEN, ids=name)
def test_a_new_start_of_the_holder_brings_it_to_an_end(status):
    facts = replace(ABLE, agent=status.agent, instance="i9", deadline=DEADLINE)
    assert run_on(status, facts, works=True) in ("succeeded", "failed")


@pytest.mark.parametrize("status", OPEN, ids=name)
@pytest.mark.parametrize(
    "changes",
    [
        {"take_over": False},
        {"may_serve": False},
        {"worker_free": False},
        {"request_file": False},
        {"cancel_file": None},
    ],
    ids=str,
)
def test_past_the_deadline_any_agent_ends_what_a_gone_one_held(status, changes):
    facts = replace(ABLE, agent="etl-09", instance="k1", holder_gone=True, store_now=DEADLINE, **changes)
    assert run_on(status, facts, works=False) == "expired"


@pytest.mark.parametrize("status", [s for s in OPEN if s.state == "accepted"], ids=name)
def test_a_minute_past_the_deadline_any_agent_ends_what_nobody_started_though_its_holder_stays_unknown(status):
    facts = replace(ABLE, agent="etl-09", instance="k1", may_serve=False, store_now=DEADLINE + 60)
    assert run_on(status, facts, works=False) == "expired"


@pytest.mark.parametrize("status", OPEN, ids=name)
def test_a_person_can_always_end_it(status):
    facts = replace(ABLE, by_a_person=True, named_op=status.op)
    assert judge("abandon", status, facts).state == "failed"
