"""What the engine refuses while a table is imported, and how it judges."""

from dataclasses import dataclass
from enum import StrEnum

import pytest

from machines.chart import Chart, ChartError, Row
from models.step import ABSENT, Move, Refusal, Step, Write, guard


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    OFF = "off"


@dataclass(frozen=True)
class Lamp:
    state: str
    op: str = "old"


@guard("it may", "it may not")
def may(step):
    return step.facts


@guard("it is late", "it is early")
def late(step):
    return step.now > 10


@guard("it is sure", "it is unsure")
def unsure(_):
    return 2


def to(state):
    return lambda step: Lamp(state, step.op)


def nothing(step):
    return None


START = Row("start", ABSENT, "red", to("red"))
GO = Row("go", "red", "green", to("green"), (may,))
END = Row("end", ("red", "green"), "off", to("off"))
ROWS = [START, GO, END]


def chart(rows, final=frozenset({"off"})):
    return Chart("lamp", states=Light, rows=rows, final=final)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([*ROWS, Row("go", "blue", "red", to("red"))], "event go names the unknown state 'blue'"),
        ([*ROWS, Row("go", "green", "blue", to("blue"))], "event go names the unknown state 'blue'"),
        ([*ROWS, Row("go", "green", "red", to("red"), (lambda _: True,))], "which is not a guard"),
        ([*ROWS, Row("go", "green", "red", to("red"), ("may",))], "event go has 'may', which is not a guard"),
        ([*ROWS, GO], "event go from red to green stands there twice"),
        ([*ROWS, Row("go", "red", "green", to("green"), (may, may))], "event go from red to green stands there twice"),
        ([START, Row("end", "red", "off", to("off"))], "nothing leads to green"),
        ([START, GO, Row("end", "red", "off", to("off"))], "no way leads from green to a final state"),
    ],
)
def test_a_table_that_is_no_chart_is_an_import_error(rows, sentence):
    with pytest.raises(ImportError, match=sentence):
        chart(rows)


def test_a_final_state_that_is_none_of_the_states_is_an_import_error():
    with pytest.raises(ChartError, match="a final state is not one of its states"):
        chart(ROWS, final=frozenset({"gone"}))


def test_the_same_guards_in_another_order_are_the_same_arrow():
    rows = [
        *ROWS,
        Row("go", "green", "red", to("red"), (may, late)),
        Row("go", "green", "red", to("red"), (late, may)),
    ]
    with pytest.raises(ChartError, match="stands there twice"):
        chart(rows)


def test_a_chart_without_final_states_may_go_on_for_ever():
    Chart(
        "lamp",
        states=Light,
        rows=[START, GO, Row("end", "green", "off", to("off")), Row("on", "off", "red", to("red"))],
    )


def test_a_judgement_is_a_value_with_the_write_that_follows_from_its_ends():
    lamp = chart([*ROWS, Row("sweep", "off", ABSENT, nothing)])
    made = lamp.judge("start", Step(None, 0.0, True, "op"))
    assert isinstance(made, Move)
    assert (made.event, made.source, made.dest, made.write, made.next) == (
        "start",
        ABSENT,
        "red",
        Write.CREATE,
        Lamp("red", "op"),
    )
    went = lamp.judge("go", Step(Lamp("red"), 0.0, True, "op"))
    assert (went.write, went.next, went.checks[0].sentence) == (Write.REPLACE, Lamp("green", "op"), "it may")
    swept = lamp.judge("sweep", Step(Lamp("off"), 0.0, True, "op"))
    assert (swept.write, swept.next) == (Write.DELETE, None)


def test_a_refusal_names_every_guard_that_said_no_not_only_the_first():
    lamp = chart([*ROWS, Row("back", "green", "red", to("red"), (may, late))])
    answer = lamp.judge("back", Step(Lamp("green"), 0.0, False, "op"))
    assert isinstance(answer, Refusal)
    assert str(answer) == "back while the lamp is green: it may not; it is early"


def test_a_negated_guard_says_its_own_sentence():
    lamp = chart([*ROWS, Row("back", "green", "red", to("red"), (~may, ~~late))])
    answer = lamp.judge("back", Step(Lamp("green"), 0.0, True, "op"))
    assert [(check.guard, check.sentence) for check in answer.failed] == [
        ("not may", "it may"),
        ("late", "it is early"),
    ]
    assert isinstance(lamp.judge("back", Step(Lamp("green"), 11.0, False, "op")), Move)


def test_a_guard_that_answers_no_bool_is_a_bug_not_a_refusal():
    lamp = chart([*ROWS, Row("back", "green", "red", to("red"), (unsure,))])
    with pytest.raises(TypeError, match="guard unsure answered 2, not a bool"):
        lamp.judge("back", Step(Lamp("green"), 0.0, True, "op"))


def test_an_unknown_event_is_a_bug():
    with pytest.raises(KeyError):
        chart(ROWS).judge("fly", Step(None, 0.0, True, "op"))


def test_asking_for_a_state_that_has_no_such_arrow_changes_nothing_in_the_chart():
    lamp = chart(ROWS)
    before = list(lamp.arrows())
    for state in ("off", "unheard-of"):
        assert isinstance(lamp.judge("go", Step(Lamp(state), 0.0, True, "op")), Refusal)
    assert list(lamp.arrows()) == before


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (Row("go", "red", "green", to("red")), "the next record is red, the arrow leads to green"),
        (Row("go", "red", "green", nothing), "a next record where it deletes, or none where it writes"),
    ],
)
def test_a_next_record_that_belies_its_arrow_is_a_bug(row, sentence):
    lamp = chart([START, row, END])
    with pytest.raises(AssertionError, match=sentence):
        lamp.judge("go", Step(Lamp("red"), 0.0, True, "op"))


def test_a_next_record_where_the_arrow_deletes_is_a_bug():
    lamp = chart([*ROWS, Row("sweep", "off", ABSENT, to("off"))])
    with pytest.raises(AssertionError, match="a next record where it deletes"):
        lamp.judge("sweep", Step(Lamp("off"), 0.0, True, "op"))


def test_a_record_asked_for_where_there_is_none_is_a_bug():
    with pytest.raises(AssertionError, match="the record of an absent key"):
        _ = Step(None, 0.0, True, "op").was


def test_a_step_is_judged_without_a_trace_in_the_next_one():
    lamp = chart(ROWS)
    refused = lamp.judge("go", Step(Lamp("red"), 0.0, False, "op"))
    opened = lamp.judge("go", Step(Lamp("red"), 0.0, True, "op"))
    assert (len(refused.checks), len(opened.checks)) == (1, 1)
