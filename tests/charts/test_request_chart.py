"""Who may do what to a request, case by case; the numbers in brackets are the traces that broke earlier drafts."""

from dataclasses import replace

import pytest
from chart_kit import BASE, DAY, HOLDER, LONG_AGO, ME, NOW, MemoryCell, go, record_in

from fdagent.commit import Committed
from machines.request import POLL, REQUEST
from models.status import FINAL, RequestFacts, RequestState, Status, TableResult
from models.step import Move, Refusal, Step

ACCEPTED, RUNNING = record_in("request", "accepted"), record_in("request", "running")
OTHER: RequestFacts = replace(
    BASE["request"],
    request_file=True,
    cancel_file=False,
    readable=True,
    may_serve=True,
    take_over=True,
    worker_free=True,
    max_attempts=3,
    holds_name=True,
    has_job=False,
)
"""Another agent that could serve the request; its holder lives."""
HOLDS = replace(OTHER, **HOLDER, has_job=True)
RESTARTED = replace(OTHER, agent="etl-01", instance="i9")


def judge(event, record, facts, **changes):
    return REQUEST.judge(event, Step(record, NOW, replace(facts, **changes), "new-op"))


def opened(event, record, facts, **changes):
    return isinstance(judge(event, record, facts, **changes), Move)


def first(record, facts, **changes):
    """What a poll would do."""
    return next((event for event in POLL if opened(event, record, facts, **changes)), None)


def test_the_poll_asks_in_the_order_of_the_table():
    order = [event for event in REQUEST.events if event in POLL]
    assert list(POLL) == order
    assert REQUEST.events == (
        "cancel", "expire", "give_up", "reject", "take_over", "adopt", "claim", "start", "report", "wait",
        "hand_back", "succeed", "fail", "abandon", "sweep",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "claim"),
        ({"cancel_file": True}, "cancel"),
        ({"cancel_file": True, "deadline": NOW}, "cancel"),
        ({"deadline": NOW}, "expire"),
        ({"deadline": NOW, "unknown_entities": True}, "expire"),
        ({"unknown_entities": True}, "reject"),
        ({"readable": False, "unreadable_seconds": 60.0}, "reject"),
        ({"readable": False, "unreadable_seconds": 59.9}, None),
        ({"may_serve": False, "nobody_may_serve": True}, "reject"),
        ({"may_serve": False}, None),
        ({"worker_free": False}, None),
        ({"worker_free": False, "when_free": False}, "claim"),
        ({"cancel_file": None}, None),
        ({"store_now": None}, None),
        ({"deadline": None}, None),
    ],
)
def test_what_a_poll_does_with_a_request_nobody_claimed(changes, expected):
    assert first(None, OTHER, **changes) == expected


@pytest.mark.parametrize("record", [ACCEPTED, RUNNING], ids=["accepted", "running"])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"holder_gone": True}, "take_over"),
        ({"holder_gone": True, "cancel_file": True}, "cancel"),
        ({"holder_gone": True, "take_over": False}, None),
        ({"holder_gone": True, "may_serve": False}, None),
        ({"holder_gone": True, "worker_free": False}, None),
        ({"holder_gone": True, "worker_free": False, "when_free": False}, "take_over"),
        ({"holder_gone": True, "max_attempts": 1}, "give_up"),
        ({"holder_gone": True, "max_attempts": None}, None),
        ({"holder_gone": True, "request_file": None}, None),
        ({"holder_gone": True, "cancel_file": None}, None),
        ({"holder_gone": True, "store_now": None}, None),
        ({"holder_gone": True, "store_now": NOW + 600}, "expire"),
        ({"holder_gone": True, "store_now": NOW + 600, "max_attempts": 1}, "expire"),
    ],
)
def test_what_a_poll_does_with_another_agents_request(record, changes, expected):
    assert first(record, OTHER, **changes) == expected


def test_a_request_without_its_file_ends_when_its_agent_is_gone():
    assert first(ACCEPTED, OTHER, holder_gone=True, request_file=False) == "expire"
    assert first(RUNNING, OTHER, holder_gone=True, request_file=False) == "give_up"


def test_a_late_create_of_a_swept_status_is_never_started_taken_or_adopted():
    """(7)"""
    for facts in (HOLDS, RESTARTED, replace(OTHER, holder_gone=True)):
        for event in ("start", "take_over", "adopt"):
            assert not opened(event, ACCEPTED, facts, request_file=False, has_job=False)
    assert opened("expire", ACCEPTED, HOLDS, request_file=False)


@pytest.mark.parametrize(
    ("seconds", "gone", "mine", "expected"),
    [
        (0, False, False, False),
        (59.9, False, False, False),
        (60, False, False, True),
        (0, True, False, True),
        (0, False, True, True),
    ],
)
def test_an_accepted_request_is_cancelled_by_its_holder_at_once_and_by_others_after_a_minute(
    seconds, gone, mine, expected
):
    facts = replace(HOLDS if mine else OTHER, cancel_file=True, cancel_seen_seconds=seconds, holder_gone=gone)
    assert opened("cancel", ACCEPTED, facts) is expected


def test_a_cancel_file_never_interrupts_a_running_request_of_a_live_agent():
    for facts in (HOLDS, replace(OTHER, cancel_seen_seconds=1e9)):
        assert not opened("cancel", RUNNING, facts, cancel_file=True)
    assert not opened("wait", RUNNING, HOLDS, cancel_file=True, to_be_tried_again=True)
    assert opened("succeed", RUNNING, HOLDS, cancel_file=True)
    assert opened("fail", RUNNING, HOLDS, cancel_file=True)


@pytest.mark.parametrize(
    ("late", "changes", "expected"),
    [
        (0, {}, False),
        (59, {}, False),
        (60, {}, True),
        (0, {"holder_gone": True}, True),
        (-1, {"holder_gone": True}, False),
        (0, HOLDER, True),
    ],
)
def test_an_accepted_request_is_expired_by_its_holder_at_once_and_by_others_a_minute_later(late, changes, expected):
    record = replace(ACCEPTED, deadline=NOW - late)
    assert opened("expire", record, OTHER, **changes) is expected


def test_an_offered_request_is_expired_by_anybody():
    assert opened("expire", replace(ACCEPTED, offered=True, deadline=NOW), OTHER)


def test_a_running_request_of_a_live_agent_outlives_its_deadline():
    late = replace(RUNNING, deadline=NOW - 1e6)
    for facts in (OTHER, HOLDS, RESTARTED):
        assert not opened("expire", late, facts)
    assert opened("expire", late, OTHER, holder_gone=True)


def test_an_agent_never_finds_its_own_start_gone():
    for event in ("cancel", "expire", "give_up", "take_over"):
        late = replace(RUNNING, deadline=NOW - 1 if event == "expire" else NOW + 600)
        assert not opened(event, late, HOLDS, holder_gone=True, cancel_file=event == "cancel", max_attempts=1)
    assert not opened("take_over", RUNNING, HOLDS, holder_gone=True)


def test_a_new_start_adopts_what_the_old_one_held():
    """(4a)"""
    for record in (ACCEPTED, RUNNING):
        move = judge("adopt", record, RESTARTED)
        assert (move.dest, move.next.instance, move.next.agents) == (record.state, "i9", ("etl-01", "etl-01"))
        assert first(record, RESTARTED) == "adopt"
        assert not opened("adopt", record, RESTARTED, holds_name=False)
        assert not opened("adopt", record, RESTARTED, may_serve=False)


def test_a_new_start_adopts_what_the_first_version_of_the_program_held_under_its_name():
    old = Status.from_json({"id": "r1", "env": "prod", "state": "running", "agent": "etl-01"})
    assert judge("adopt", old, RESTARTED).next.agents == ("etl-01", "etl-01")


def test_a_crash_loop_with_fast_restarts_ends():
    """(8a)"""
    record, starts = ACCEPTED, 0
    while opened("adopt", record, RESTARTED, instance=f"start-{starts}"):
        record = judge("adopt", record, RESTARTED, instance=f"start-{starts}").next
        starts += 1
        assert starts < 10
    assert starts == 2
    assert first(record, RESTARTED, instance="start-9") == "give_up"
    ended = judge("give_up", record, RESTARTED, instance="start-9").next
    assert ended.error == ("Given up: held by etl-01, etl-01, etl-01; none finished it. The last error: it broke")


def test_an_own_write_that_landed_late_is_adopted_without_using_a_hold():
    """(6)"""
    for record in (ACCEPTED, RUNNING):
        move = judge("adopt", record, HOLDS, has_job=False, max_attempts=1, job_id="j9")
        assert (move.next.agents, move.next.job_id, move.dest) == (("etl-01",), "j9", record.state)
        assert not opened("adopt", record, HOLDS, has_job=None)
        assert not opened("adopt", record, HOLDS)
    assert not opened("adopt", replace(ACCEPTED, offered=True), HOLDS, has_job=False)


def test_a_takeover_is_a_hold_more_and_names_both_agents():
    move = judge("take_over", RUNNING, OTHER, holder_gone=True, job_id="j2", host="h2")
    after = move.next
    assert (move.dest, after.agent, after.instance, after.host, after.job_id) == (
        "accepted",
        "etl-02",
        "i2",
        "h2",
        "j2",
    )
    assert (after.agents, after.taken_over_from, after.taken_over_at) == (("etl-01", "etl-02"), "etl-01", NOW)
    assert (after.error, after.run_ids, after.extra) == ("it broke", ("run-1",), {"later": [1]})


def test_what_is_handed_back_is_taken_by_any_agent_also_by_the_one_that_offered_it():
    """(8b)"""
    offered = judge("hand_back", ACCEPTED, HOLDS, cannot_run_soon=True, reason="Its worker has a long job.").next
    assert (offered.state, offered.offered) == ("accepted", True)
    assert not opened("start", offered, HOLDS)
    assert not opened("hand_back", offered, HOLDS, cannot_run_soon=True), "it would be written at every poll"
    assert first(offered, OTHER) == "take_over"
    assert first(offered, HOLDS, take_over=False) == "take_over"
    assert first(offered, OTHER, take_over=False) is None
    back = judge("take_over", offered, HOLDS).next
    assert (back.offered, back.taken_over_from, back.agents) == (None, None, ("etl-01", "etl-01"))
    assert opened("start", back, HOLDS)


def test_handing_back_and_forth_ends():
    record, turns = ACCEPTED, 0
    while opened("hand_back", record, HOLDS, cannot_run_soon=True) and turns < 10:
        offered = judge("hand_back", record, HOLDS, cannot_run_soon=True).next
        if not opened("take_over", offered, HOLDS):
            break
        record, turns = judge("take_over", offered, HOLDS).next, turns + 1
    assert turns == 2
    assert opened("expire", replace(offered, deadline=NOW), OTHER)


def test_what_a_worker_is_on_is_never_handed_back():
    assert not opened("hand_back", RUNNING, HOLDS, cannot_run_soon=True)
    assert opened("hand_back", RUNNING, HOLDS, cannot_run_soon=True, worker_on_it=False)


def test_a_mark_of_an_offer_that_an_older_program_left_on_a_running_request_means_nothing():
    running = replace(RUNNING, offered=True)
    assert not opened("take_over", running, OTHER)
    assert not opened("start", running, HOLDS)


def test_the_whole_life_of_a_request_that_is_taken_over():
    cell = MemoryCell()
    a = replace(OTHER, **HOLDER, has_job=None, entities=("silver.orders",), job_id="ja", host="ha")
    b = replace(OTHER, holder_gone=True, job_id="jb", host="hb")
    done = TableResult(entity="silver.orders", state="succeeded", by="etl-01", rows_written=7)
    assert isinstance(go(REQUEST, cell, "claim", a, op="1"), Committed)
    assert isinstance(go(REQUEST, cell, "start", replace(a, attempt=1), op="2"), Committed)
    assert isinstance(go(REQUEST, cell, "report", replace(a, tables=(done,), run_ids=("run-1",)), op="3"), Committed)
    assert isinstance(go(REQUEST, cell, "take_over", b, op="4"), Committed)
    loser = go(REQUEST, cell, "report", a, op="5")
    assert str(loser) == "report: not possible while the request is accepted"
    assert isinstance(go(REQUEST, cell, "start", replace(b, attempt=1), op="6"), Committed)
    loser = go(REQUEST, cell, "succeed", a, op="7")
    assert str(loser) == "succeed while the request is running: this start of the agent does not hold it"
    assert isinstance(go(REQUEST, cell, "succeed", replace(b, rows_written=9), op="8"), Committed)
    end: Status = cell.record
    assert (end.state, end.agents, end.taken_over_from) == ("succeeded", ("etl-01", "etl-02"), "etl-01")
    assert (end.tables, end.run_ids, end.rows_written) == ((done,), ("run-1",), 9)
    assert (end.error, end.finished_at, end.deadline) == (None, NOW, NOW + 600)
    for event in REQUEST.events:
        assert isinstance(go(REQUEST, cell, event, b, op="9"), Refusal), event


def test_of_two_takers_one_wins_and_the_other_is_refused_in_words():
    cell = MemoryCell(RUNNING)
    rival = replace(OTHER, agent="etl-03", instance="i3", holder_gone=True)
    cell.before = [lambda: go(REQUEST, cell, "take_over", rival, op="theirs")]

    def gather(record):
        return replace(OTHER, holder_gone=record.instance == "i1")

    answer = go(REQUEST, cell, "take_over", gather)
    assert isinstance(answer, Refusal)
    assert str(answer) == (
        "take_over while the request is accepted: its agent is not known to be gone, and does not offer it"
    )
    assert (cell.record.agent, len(cell.log)) == ("etl-03", 1)


def test_facts_of_the_first_try_are_not_used_again_after_a_conflict():
    """(16)"""
    cell = MemoryCell(RUNNING)
    alive = replace(RUNNING, op="beat", updated_at=NOW)
    gone = iter([True, False])
    cell.before = [lambda: cell.put(alive)]
    answer = go(REQUEST, cell, "take_over", lambda _: replace(OTHER, holder_gone=next(gone)))
    assert isinstance(answer, Refusal)
    assert cell.record is alive


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_final_status_is_swept_last_and_only_when_nothing_can_bring_it_back(state):
    record = record_in("request", state)
    facts = replace(OTHER, request_file=False, retention_seconds=14 * DAY)
    assert opened("sweep", record, facts)
    assert not opened("sweep", record, facts, request_file=True)
    assert not opened("sweep", record, facts, request_file=None)
    assert not opened("sweep", record, facts, cancel_file=True)
    assert not opened("sweep", record, facts, retention_seconds=500 * DAY)
    assert not opened("sweep", replace(record, deadline=NOW + 1), facts)
    assert not opened("sweep", replace(record, finished_at=None), facts)
    assert not opened("sweep", replace(record, finished_at=NOW - DAY + 1), facts, retention_seconds=0.0)


def test_a_status_without_a_deadline_goes_by_the_request_files():
    record = replace(ACCEPTED, deadline=None)
    assert opened("start", record, HOLDS, deadline=NOW + 1)
    assert not opened("start", record, HOLDS, deadline=None)
    assert not opened("expire", record, HOLDS, deadline=None)
    assert opened("expire", record, HOLDS, deadline=NOW)


def test_a_person_abandons_the_version_they_saw_and_no_other():
    facts = replace(OTHER, by_a_person=True, person="Kim", named_op="old-op")
    ended = judge("abandon", RUNNING, facts).next
    assert (ended.state, ended.reason, ended.error) == ("failed", "Abandoned by Kim.", "it broke")
    assert str(judge("abandon", replace(RUNNING, op="newer"), facts)) == (
        "abandon while the request is running: another version is there than the one that was named"
    )
    assert opened("abandon", replace(RUNNING, op=""), facts, named_op="")
    assert not opened("abandon", replace(RUNNING, op=""), facts, named_op=None)


def test_what_ends_unclaimed_says_who_judged_it_and_counts_no_hold():
    for event, changes in (
        ("cancel", {"cancel_file": True}),
        ("expire", {"deadline": LONG_AGO}),
        ("reject", {"unknown_entities": True}),
    ):
        ended = judge(event, None, OTHER, **changes).next
        assert (ended.id, ended.env, ended.agent, ended.holds) == ("r1", "prod", ME["agent"], ())
        assert (ended.state in FINAL, ended.finished_at, bool(ended.reason)) == (True, NOW, True)


def test_times_are_the_stores_where_its_clock_is_known():
    assert judge("report", RUNNING, HOLDS, store_now=NOW + 5).next.updated_at == NOW + 5
    assert judge("report", RUNNING, HOLDS, store_now=None).next.updated_at == NOW


def test_failing_keeps_the_last_error_when_none_is_told():
    assert judge("fail", ACCEPTED, HOLDS, reason="A person cancelled its job.").next.error == "it broke"
    assert judge("fail", RUNNING, HOLDS, error="no rights", category="Access").next.category == "Access"
    assert judge("wait", RUNNING, HOLDS, to_be_tried_again=True, error="busy").next.state is RequestState.ACCEPTED
