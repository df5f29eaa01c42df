"""Steps, guards and answers, apart from any chart."""

import pytest

from models.step import ABSENT, Check, Refusal, Step, Write, guard, write_of


@guard("it rains", "it is dry")
def rains(step):
    return step.facts


def test_the_write_follows_from_the_ends():
    assert write_of(ABSENT, "there") is Write.CREATE
    assert write_of("there", ABSENT) is Write.DELETE
    assert write_of("there", "there") is Write.REPLACE
    assert write_of("here", "there") is Write.REPLACE


@pytest.mark.parametrize(("answer", "sentence"), [(True, "it rains"), (False, "it is dry")])
def test_a_guard_says_its_answer_and_its_opposite_says_the_same(answer, sentence):
    step = Step(None, 0.0, answer, "op")
    assert rains.check(step) == Check("rains", answer, sentence)
    assert (~rains).check(step) == Check("not rains", not answer, sentence)
    assert ~~rains == rains


@pytest.mark.parametrize("answer", [1, 0, "yes", None, [], 2])
def test_a_guard_that_answers_anything_but_a_bool_is_a_bug(answer):
    with pytest.raises(TypeError, match=r"guard rains answered .*, not a bool"):
        rains.check(Step(None, 0.0, answer, "op"))


def test_a_refusal_says_each_failed_guard_once():
    failed, held = Check("rains", False, "it is dry"), Check("cold", True, "it is cold")
    refusal = Refusal("picnic", "begin", "planned", (failed, held, failed))
    assert refusal.failed == (failed,)
    assert str(refusal) == "begin while the picnic is planned: it is dry"


def test_a_refusal_without_an_arrow_says_that_it_is_not_possible():
    assert str(Refusal("picnic", "begin", "absent")) == "begin: not possible while the picnic is absent"
