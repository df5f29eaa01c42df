"""The one bounded loop: it ends, and it never takes an answer for what happened."""

from dataclasses import dataclass, field

import pytest
from fakes import FakeClock, FakeIds

from fdagent.attempt import LONGEST_PAUSE_SECONDS, TRIES, Done, attempt, pause_seconds
from fdagent.errors import Conflict, Denied, GaveUp, Unavailable, Unknown

WRITTEN = "written"


@dataclass
class Note:
    """A task that writes one word; `script` says what each write does."""

    script: list = field(default_factory=list)
    there: str = ""
    log: list = field(default_factory=list)
    what: str = "the note"

    def read(self):
        self.log.append("read")
        return self.there

    def own(self, version, *, unclear):
        self.log.append(f"own {unclear}")
        return Done("own") if version == WRITTEN else None

    def decide(self, version):
        self.log.append(f"decide on {version!r}")
        return Done("refused") if version == "taken" else WRITTEN

    def write(self, version, plan):
        act = self.script.pop(0) if self.script else "ok"
        self.log.append(act)
        if act == "ok":
            self.there = plan
            return Done(plan)
        if act == "ask again":
            return None
        if act == "conflict":
            raise Conflict("another version is there")
        if act == "lost answer":
            self.there = plan
            raise Unknown("no answer")
        if act == "lost request":
            raise Unknown("no answer")
        if act == "somebody else":
            self.there = "taken"
            raise Conflict("another version is there")
        raise act


def run(task, **more):
    clock = FakeClock()
    return attempt(task, clock=clock, ids=FakeIds(), **more), clock


def test_a_write_that_answers_well_is_done_in_one_go():
    task = Note()
    assert run(task) == (WRITTEN, FakeClock())
    assert task.log == ["read", "own False", "decide on ''", "ok"]


def test_after_a_conflict_everything_is_read_and_decided_again():
    task = Note(["conflict"])
    assert run(task)[0] == WRITTEN
    assert task.log == ["read", "own False", "decide on ''", "conflict", "read", "own False", "decide on ''", "ok"]


def test_a_conflict_can_end_in_a_refusal():
    task = Note(["somebody else"])
    assert run(task)[0] == "refused"
    assert task.log.count("read") == 2


def test_a_lost_answer_is_found_by_reading_back():
    task = Note(["lost answer"])
    assert run(task)[0] == "own"
    assert task.log[-2:] == ["read", "own True"]


def test_a_lost_request_is_written_again():
    assert run(Note(["lost request", "lost request"]))[0] == WRITTEN


def test_once_an_outcome_is_unknown_it_stays_so_through_later_conflicts():
    task = Note(["lost request", "conflict"])
    run(task)
    assert [line for line in task.log if line.startswith("own")] == ["own False", "own True", "own True"]


def test_a_write_that_asks_for_another_read_is_no_end():
    task = Note(["ask again", "ask again"])
    assert run(task)[0] == WRITTEN


def test_the_tries_end_after_one_last_read_that_may_still_find_the_write():
    task = Note(["conflict"] * (TRIES - 1) + ["lost answer"])
    assert run(task)[0] == "own"
    assert task.log.count("read") == TRIES + 1


@pytest.mark.parametrize(
    ("act", "unclear", "why"),
    [("conflict", False, "others kept changing it"), ("lost request", True, "the last write brought no answer")],
)
def test_giving_up_says_whether_the_outcome_is_known(act, unclear, why):
    task = Note([act] * 99)
    with pytest.raises(GaveUp, match=f"Gave up on the note after 3 tries: {why}") as caught:
        run(task, tries=3)
    assert caught.value.unclear is unclear
    assert caught.value.retryable
    assert task.log.count(act) == 3


@pytest.mark.parametrize("error", [Denied("no rights"), Unavailable("away"), ValueError("a bug")])
def test_every_other_error_passes_through_at_once(error):
    task = Note([error])
    with pytest.raises(type(error)):
        run(task)
    assert task.log.count("read") == 1


def test_the_pauses_grow_are_jittered_and_end():
    assert [pause_seconds(n, FakeIds()) for n in range(3)] == [0.01, 0.02, 0.04]
    assert pause_seconds(500, FakeIds()) == LONGEST_PAUSE_SECONDS / 2
    _, clock = run(Note(["conflict"] * 4))
    assert clock.slept == [0.01, 0.02, 0.04, 0.08]
