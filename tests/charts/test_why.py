"""Why something happens or not, from the very guards that decide."""

from dataclasses import replace

import pytest
from chart_kit import ARROW_IDS, ARROWS, BASE, NOW, record_in, scene

from fdagent.why import explain
from machines.registry import CHARTS
from models.step import Refusal, Step


@pytest.mark.parametrize(("name", "event", "number", "arrow"), ARROWS, ids=ARROW_IDS)
def test_an_arrow_that_would_be_taken_is_shown_open_and_every_other_one_of_its_event_shut(name, event, number, arrow):
    record, facts = scene(name, arrow)
    found = [answer for answer in explain(CHARTS[name], record, facts, NOW) if answer.event == event]
    assert [(answer.source, answer.dest, answer.write) for answer in found if answer.open] == [
        (arrow.source, arrow.dest, arrow.write.value)
    ]
    assert all(answer.failed for answer in found if not answer.open)


@pytest.mark.parametrize("name", CHARTS)
def test_what_is_shut_is_shut_for_the_reasons_of_the_refusal(name):
    chart = CHARTS[name]
    for state in ("absent", *chart.states):
        record = record_in(name, state)
        answers = explain(chart, record, type(BASE[name])(), NOW)
        assert [a.event for a in answers] == [
            e for e in chart.events for f, a in chart.arrows() if f == e and a.source == state
        ]
        for event in {answer.event for answer in answers}:
            mine = [answer for answer in answers if answer.event == event]
            if not any(answer.open for answer in mine):
                refusal = chart.judge(event, Step(record, NOW, type(BASE[name])(), ""))
                assert isinstance(refusal, Refusal)
                assert set(refusal.failed) == {check for answer in mine for check in answer.failed}


def test_a_request_that_is_not_taken_over_says_which_of_its_conditions_are_met():
    facts = replace(
        BASE["request"], take_over=True, may_serve=True, request_file=True, cancel_file=False, max_attempts=3
    )
    found = next(
        a for a in explain(CHARTS["request"], record_in("request", "running"), facts, NOW) if a.event == "take_over"
    )
    assert not found.open
    assert [check.sentence for check in found.failed] == [
        "its agent is not known to be gone, and does not offer it",
        "no worker is free here",
    ]
    assert "this agent may serve it" in [check.sentence for check in found.checks]
