"""What holds for every row of every chart."""

import pytest
from chart_kit import ARROW_IDS, ARROWS, BASE, FACTS, MemoryCell, answers, cell_for, go, perform, record_in, scene

from fdagent.commit import Committed
from fdagent.errors import GaveUp
from machines.registry import CHARTS
from models.ledger import Ledger
from models.step import ABSENT, Move, Refusal, Step, Write, write_of

EACH = pytest.mark.parametrize(("name", "event", "number", "arrow"), ARROWS, ids=ARROW_IDS)
REPLACING = [one for one in ARROWS if one[0] != "job" and one[3].write is Write.REPLACE]
GUARDS = [
    (name, guard)
    for name, chart in CHARTS.items()
    for guard in dict.fromkeys(guard for _, arrow in chart.arrows() for guard in arrow.guards)
]


@EACH
def test_an_arrow_is_performed_by_exactly_the_one_conditional_write_its_ends_demand(name, event, number, arrow):
    cell = cell_for(name, arrow)
    done = perform(name, event, arrow, cell)
    assert isinstance(done, Committed)
    assert cell.log == [write_of(arrow.source, arrow.dest) if CHARTS[name].within is None else Write.REPLACE]
    assert done.record == cell.record
    if CHARTS[name].within is None:
        assert done.move.write is arrow.write
        assert (ABSENT if cell.record is None else cell.record.state) == arrow.dest


@EACH
def test_what_an_arrow_writes_bears_the_op_of_the_write(name, event, number, arrow):
    cell = cell_for(name, arrow)
    perform(name, event, arrow, cell, op="op-7")
    if CHARTS[name].within is not None:
        entry = next((entry for entry in cell.record.incidents if entry.id == "inc-1"), None)
        assert cell.record.op == "op-7"
        assert entry is None if arrow.dest == ABSENT else (entry.op, entry.state) == ("op-7", arrow.dest)
    elif arrow.dest != ABSENT:
        assert cell.record.op == "op-7"


@pytest.mark.parametrize(("name", "event", "number", "arrow"), REPLACING)
def test_fields_from_the_future_survive_every_replacement(name, event, number, arrow):
    record = record_in(name, arrow.source)
    assert record.extra
    cell = cell_for(name, arrow)
    perform(name, event, arrow, cell)
    after = cell.record if CHARTS[name].within is None else cell.record.incidents[-1]
    assert after.extra == record.extra


@EACH
def test_a_lost_answer_is_recognised_as_an_own_write(name, event, number, arrow):
    cell = cell_for(name, arrow)
    cell.lose_answers = 1
    done = perform(name, event, arrow, cell)
    assert isinstance(done, Committed)
    assert len(cell.log) == 1, "it was written a second time"


@EACH
def test_a_lost_request_is_tried_again_until_it_lands_once(name, event, number, arrow):
    cell = cell_for(name, arrow)
    cell.lose_requests = 2
    assert isinstance(perform(name, event, arrow, cell), Committed)
    assert len(cell.log) == 1


@EACH
def test_a_store_that_never_answers_ends_in_an_unclear_giving_up(name, event, number, arrow):
    cell = cell_for(name, arrow)
    cell.lose_requests = 100
    with pytest.raises(GaveUp) as caught:
        perform(name, event, arrow, cell, tries=3)
    assert caught.value.unclear
    assert cell.log == []


@EACH
def test_an_arrow_is_the_only_open_one_of_its_event_in_its_scene(name, event, number, arrow):
    record, facts = scene(name, arrow)
    assert [found for found, answer in answers(name, event, record, facts) if isinstance(answer, Move)] == [arrow]


@EACH
def test_each_guard_of_an_arrow_shuts_it_alone(name, event, number, arrow):
    for guard in arrow.guards:
        if (event, arrow.source, guard.label) == ("adopt", "running", "not offered"):
            continue  # what runs is never offered: the guard is for the row's other start
        record, facts = scene(name, arrow, shut=guard)
        answer = dict(answers(name, event, record, facts))[arrow]
        assert isinstance(answer, Refusal), f"{guard.label} is not asked"
        assert [check.guard for check in answer.failed] == [guard.label]
        assert answer.failed[0].sentence == (guard.no if guard.wanted else guard.yes)


@pytest.mark.parametrize(("name", "guard"), GUARDS, ids=[f"{name}-{guard.label}" for name, guard in GUARDS])
def test_every_guard_has_facts_that_make_it_hold_and_says_so_in_a_sentence(name, guard):
    arrow = next(arrow for _, arrow in CHARTS[name].arrows() if guard in arrow.guards)
    record, facts = scene(name, arrow)
    check = guard.check(Step(record, 1_800_000_000.0, facts, "op"))
    assert check.held
    assert check.sentence == (guard.yes if guard.wanted else guard.no)
    assert guard.yes != guard.no
    assert guard.yes[0].islower()
    assert not guard.yes.endswith(".")


@pytest.mark.parametrize("name", CHARTS)
def test_default_facts_open_no_arrow_but_the_unguarded_ones(name):
    for event, arrow in CHARTS[name].arrows():
        if arrow.guards:
            answer = CHARTS[name].judge(event, Step(record_in(name, arrow.source), 0.0, type(BASE[name])(), "op"))
            opened = isinstance(answer, Move) and answer.checks
            assert not opened, f"{event} from {arrow.source} is open without any fact"


@pytest.mark.parametrize("name", CHARTS)
def test_no_entry_of_the_facts_is_left_over(name):
    labels = {guard.label for _, arrow in CHARTS[name].arrows() for guard in arrow.guards}
    assert set(FACTS[name]) == labels


@pytest.mark.parametrize("name", CHARTS)
def test_an_event_from_a_state_it_does_not_start_in_is_a_refusal_in_words(name):
    chart = CHARTS[name]
    for event in chart.events:
        sources = {arrow.source for e, arrow in chart.arrows() if e == event}
        for state in {ABSENT, *chart.states} - sources:
            answer = chart.judge(event, Step(record_in(name, state), 0.0, BASE[name], "op"))
            assert isinstance(answer, Refusal)
            assert str(answer) == f"{event}: not possible while the {name} is {state}"


@pytest.mark.parametrize("name", CHARTS)
def test_every_state_can_be_reached_and_can_end(name):
    chart = CHARTS[name]
    leads = {}
    for _, arrow in chart.arrows():
        leads.setdefault(arrow.source, set()).add(arrow.dest)
    for start in (ABSENT, *chart.states):
        found, todo = set(), [start]
        while todo:
            for dest in leads.get(todo.pop(), set()) - found:
                found.add(dest)
                todo.append(dest)
        if start == ABSENT:
            assert set(chart.states) <= found
        assert not chart.final or start in chart.final or found & chart.final


def test_the_first_incident_creates_its_ledger():
    chart = CHARTS["incident"]
    arrow = next(arrow for event, arrow in chart.arrows() if event == "open")
    cell = MemoryCell()
    assert isinstance(perform("incident", "open", arrow, cell), Committed)
    assert cell.log == [Write.CREATE]
    assert [entry.state for entry in cell.record.incidents] == ["open"]


def test_an_evaluation_that_changes_nothing_writes_nothing():
    cell = MemoryCell(Ledger(incidents=(), op="old"))
    answer = go(CHARTS["ledger"], cell, "write", BASE["ledger"])
    assert isinstance(answer, Refusal)
    assert str(answer) == "write while the ledger is kept: no entry changes"
    assert cell.log == []
