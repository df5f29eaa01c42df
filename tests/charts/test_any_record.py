"""What holds for every record and every set of facts, not only for those somebody thought of."""

from enum import StrEnum

import pytest
from chart_kit import BASE
from generated import NOW, facts_of, judged
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from machines.chart import Chart, Row
from machines.registry import CHARTS, ENTRIES
from machines.request import POLL, REQUEST
from models import request as r
from models import status as s
from models.agent import AgentFacts, AgentRecord
from models.job import Job
from models.jsonrecord import JsonPart
from models.lease import Lease, LeaseFacts
from models.status import FINAL, RequestFacts, RequestState, Status
from models.step import ABSENT, Move, Refusal, Step, Write

KINDS = {entry.chart.name: entry.record or Job for entry in ENTRIES}
EACH = pytest.mark.parametrize("name", CHARTS)


class Two(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"


MANY = settings(max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def facts(name):
    return facts_of(type(BASE[name]))


def moves(name, record, given_facts):
    chart = CHARTS[name]
    for event in chart.events:
        answers = chart.answers(event, Step(record, NOW, given_facts, "new-op"))
        yield event, [arrow for arrow, answer in answers if isinstance(answer, Move)]


@EACH
@MANY
@given(data=st.data())
def test_at_most_one_arrow_of_an_event_is_open_and_a_judgement_takes_it_or_says_why_not(name, data):
    record, given_facts = data.draw(st.none() | judged(KINDS[name])), data.draw(facts(name))
    for event, opened in moves(name, record, given_facts):
        assert len(opened) <= 1, f"{event}: {[arrow.row for arrow in opened]}"
        answer = CHARTS[name].judge(event, Step(record, NOW, given_facts, "new-op"))
        if opened:
            assert isinstance(answer, Move)
            assert (answer.dest, answer.write) == (opened[0].dest, opened[0].write)
            check_next(answer)
        else:
            assert isinstance(answer, Refusal)
            assert answer.failed or "not possible while" in str(answer)


def check_next(move):
    """A next record bears the op, is in the arrow's state, and can be written and read back."""
    if move.write is Write.DELETE:
        assert move.next is None
        return
    assert (move.next.op, str(move.next.state)) == ("new-op", move.dest)
    if isinstance(move.next, JsonPart):
        assert type(move.next).from_json(move.next.to_json()) == move.next


@MANY
@given(record=judged(Status), given_facts=facts_of(RequestFacts))
def test_a_final_status_is_only_ever_swept(record, given_facts):
    for event, opened in moves("request", record, given_facts):
        if record.state in FINAL and opened:
            assert event == "sweep"


@MANY
@given(record=st.none() | judged(Status), given_facts=facts_of(RequestFacts))
def test_every_next_status_keeps_the_holds_and_what_the_last_attempt_left(record, given_facts):
    for event, _ in moves("request", record, given_facts):
        answer = REQUEST.judge(event, Step(record, NOW, given_facts, "new-op"))
        if isinstance(answer, Refusal) or answer.next is None:
            continue
        after, before = answer.next, () if record is None else record.holds
        assert (after.finished_at is not None) or after.state not in FINAL
        assert after.offered is not True or event == "hand_back"
        if event in ("claim", "take_over") or (event == "adopt" and after.agents != (record.agents or ())):
            assert after.holds == (*before, given_facts.agent)
            assert (after.agent, after.instance) == (given_facts.agent, given_facts.instance)
        else:
            assert after.holds == before or record is None or not before
        if record is not None and event in ("cancel", "expire", "abandon", "take_over", "adopt", "report", "start"):
            assert (after.error, after.category) == (record.error, record.category)
        if record is not None and event != "succeed" and given_facts.run_ids is None:
            assert after.run_ids == record.run_ids
            assert given_facts.tables is not None or after.tables == record.tables


@MANY
@given(record=judged(Status), given_facts=facts_of(RequestFacts))
def test_only_the_start_that_is_named_starts_reports_waits_hands_back_and_finishes(record, given_facts):
    named = (record.agent, record.instance) == (given_facts.agent, given_facts.instance)
    for event in ("start", "report", "wait", "hand_back", "succeed", "fail"):
        answer = REQUEST.judge(event, Step(record, NOW, given_facts, "new-op"))
        assert named or isinstance(answer, Refusal)


@MANY
@given(record=judged(Status), given_facts=facts_of(RequestFacts))
def test_what_a_live_agent_runs_is_never_moved_by_another(record, given_facts):
    mine = (record.agent, record.instance) == (given_facts.agent, given_facts.instance)
    if record.state != "running" or mine or given_facts.holder_gone or record.agent == given_facts.agent:
        return
    for event in POLL:
        assert isinstance(REQUEST.judge(event, Step(record, NOW, given_facts, "new-op")), Refusal), event


@MANY
@given(record=judged(AgentRecord), given_facts=facts_of(AgentFacts))
def test_an_agent_record_another_process_wrote_is_never_overwritten_by_a_beat(record, given_facts):
    for event in ("beat", "drain", "stop"):
        answer = CHARTS["agent"].judge(event, Step(record, NOW, given_facts, "new-op"))
        if record.op not in given_facts.ops or record.instance != given_facts.instance:
            assert isinstance(answer, Refusal)


@MANY
@given(record=judged(Lease), given_facts=facts_of(LeaseFacts))
def test_only_the_claim_that_wrote_a_lease_renews_or_releases_it(record, given_facts):
    for event in ("renew", "release"):
        answer = CHARTS["lease"].judge(event, Step(record, NOW, given_facts, "new-op"))
        assert isinstance(answer, Refusal) or record.op in given_facts.ops


def test_two_rows_that_overlap_are_found():
    rows = [
        Row("reject", ABSENT, RequestState.REJECTED, s.reject, (r.readable, r.entities_unknown)),
        Row("reject", ABSENT, RequestState.REJECTED, s.reject, (r.readable, r.nobody_may_serve)),
        Row("claim", ABSENT, RequestState.ACCEPTED, s.claim),
    ]
    chart = Chart("overlap", states=Two, rows=rows)

    @settings(MANY, max_examples=300, phases=[Phase.generate])
    @given(given_facts=facts_of(RequestFacts))
    def ask(given_facts):
        answers = chart.answers("reject", Step(None, NOW, given_facts, "new-op"))
        assert sum(isinstance(answer, Move) for _, answer in answers) <= 1

    with pytest.raises(AssertionError):
        ask()
