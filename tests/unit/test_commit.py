"""A chart decides, one conditional write carries it out, and what happened is known or said to be unknown."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

import pytest
from fakes import FakeClock, FakeIds

from fdagent.commit import Committed, Transition, commit
from fdagent.errors import Conflict, Denied, GaveUp, Unknown
from machines.chart import Chart, Row
from models.step import ABSENT, Refusal, Write, guard


class Door(StrEnum):
    SHUT = "shut"
    OPEN = "open"


@dataclass(frozen=True)
class Leaf:
    state: str
    op: str
    by: str = ""
    entries: tuple = ()


@guard("the key fits", "the key does not fit")
def fits(step):
    return step.facts == "key"


@guard("it is daytime", "it is night")
def day(step):
    return step.now < 2_000_000_000


def leaf(state):
    return lambda step: Leaf(state, step.op, step.facts)


ROWS = [
    Row("hang", ABSENT, "shut", leaf("shut")),
    Row("unlock", "shut", "open", leaf("open"), (fits, day)),
    Row("lock", "open", "shut", leaf("shut")),
    Row("remove", ("shut", "open"), ABSENT, lambda _: None, (fits,)),
]
CHART = Chart("door", states=Door, rows=ROWS)


@dataclass
class Cell:
    """A record whose writes follow a script: ok, conflict, lost answer, lost request, or a change by somebody else."""

    record: Leaf | None = None
    script: list = field(default_factory=list)
    version: int = 0
    log: list = field(default_factory=list)

    def read(self):
        return self.record, str(self.version)

    def write(self, how, record, tag):
        act = self.script.pop(0) if self.script else "ok"
        if callable(act):
            act = act(self)
        if isinstance(act, Exception):
            raise act
        if act == "lost request":
            raise Unknown("no answer")
        if act == "conflict" or tag != str(self.version) or (how is Write.CREATE) is not (self.record is None):
            raise Conflict("another version is there")
        self.put(record)
        self.log.append((how, record))
        if act == "lost answer":
            raise Unknown("no answer")
        return str(self.version)

    def put(self, record):
        self.record, self.version = record, self.version + 1


def go(cell, event, facts="key", *, op="my-op", chart=CHART, **more):
    gather = facts if callable(facts) else lambda _: facts
    return commit(chart, cell, event, op=op, facts=gather, clock=FakeClock(), ids=FakeIds(), **more)


SHUT = Leaf("shut", "old-op")


def changed_to(record):
    """Somebody else's change between our read and our write."""

    def act(cell):
        cell.put(record)
        return "ok"

    return act


def test_a_commit_is_the_arrow_the_record_now_and_its_tag():
    cell = Cell(SHUT)
    done = go(cell, "unlock")
    assert isinstance(done, Committed)
    assert (done.record, done.tag) == (Leaf("open", "my-op", "key"), "1")
    assert (done.move.source, done.move.dest, done.move.write) == ("shut", "open", Write.REPLACE)
    assert cell.log == [(Write.REPLACE, done.record)]


def test_a_refusal_is_a_value_and_nothing_is_written():
    cell = Cell(SHUT)
    answer = go(cell, "unlock", "hairpin")
    assert isinstance(answer, Refusal)
    assert str(answer) == "unlock while the door is shut: the key does not fit"
    assert cell.log == []


def test_a_conflict_is_judged_again_on_what_is_there_then_and_may_be_refused():
    cell = Cell(SHUT, [changed_to(Leaf("open", "their-op"))])
    answer = go(cell, "unlock")
    assert str(answer) == "unlock: not possible while the door is open"
    assert cell.record.op == "their-op"


def test_a_conflict_that_changes_nothing_that_matters_is_written_on_the_newer_version():
    cell = Cell(SHUT, [changed_to(replace(SHUT, op="their-op")), "conflict"])
    done = go(cell, "unlock")
    assert isinstance(done, Committed)
    assert [how for how, _ in cell.log] == [Write.REPLACE]


def test_facts_are_gathered_anew_on_every_try_from_the_version_of_that_try():
    seen = []

    def gather(record):
        seen.append(record.op)
        return "key" if len(seen) < 3 else "hairpin"

    cell = Cell(SHUT, [changed_to(replace(SHUT, op="second")), changed_to(replace(SHUT, op="third"))])
    assert isinstance(go(cell, "unlock", gather), Refusal)
    assert seen == ["old-op", "second", "third"]


def test_the_clock_is_read_anew_on_every_try():
    clock = FakeClock(now=1_999_999_999.999)
    cell = Cell(SHUT, ["conflict"])
    answer = commit(CHART, cell, "unlock", op="o", facts=lambda _: "key", clock=clock, ids=FakeIds())
    assert str(answer) == "unlock while the door is shut: it is night"


@pytest.mark.parametrize(("record", "event"), [(None, "hang"), (SHUT, "unlock")])
def test_a_lost_answer_is_recognised_by_the_op_and_not_written_twice(record, event):
    cell = Cell(record, ["lost answer"])
    done = go(cell, event)
    assert isinstance(done, Committed)
    assert (len(cell.log), done.record.op, done.move.event) == (1, "my-op", event)


def test_an_own_write_that_lands_late_is_recognised_at_the_next_read():
    def late(cell):
        cell.put(Leaf("open", "my-op", "key"))
        return "conflict"

    cell = Cell(SHUT, ["lost request", late])
    done = go(cell, "unlock")
    assert isinstance(done, Committed)
    assert cell.log == []


def test_an_unknown_delete_followed_by_absence_is_done():
    cell = Cell(SHUT, ["lost answer"])
    done = go(cell, "remove")
    assert isinstance(done, Committed)
    assert (done.record, done.move.event) == (None, "remove")


def test_a_delete_that_met_a_conflict_and_then_absence_is_not_ones_own():
    def gone(cell):
        cell.put(None)
        return "conflict"

    answer = go(Cell(SHUT, [gone]), "remove")
    assert str(answer) == "remove: not possible while the door is absent"


def test_an_unknown_write_followed_by_absence_is_no_delete():
    def gone(cell):
        cell.put(None)
        return "lost request"

    answer = go(Cell(SHUT, [gone]), "unlock")
    assert str(answer) == "unlock: not possible while the door is absent"


def test_a_write_that_was_lost_and_overwritten_by_another_is_judged_afresh():
    def landed_then_overwritten(cell):
        cell.put(Leaf("open", "my-op", "key"))
        cell.put(Leaf("shut", "their-op"))
        return "lost request"

    cell = Cell(SHUT, [landed_then_overwritten])
    done = go(cell, "unlock")
    assert isinstance(done, Committed)
    assert [record.op for _, record in cell.log] == ["my-op"]


def test_a_record_with_several_writers_is_asked_for_the_op_among_its_entries():
    chart = Chart("door", states=Door, rows=ROWS, wrote=lambda record, op: op in (record.op, *record.entries))

    def landed_then_overwritten(cell):
        cell.put(Leaf("open", "their-op", entries=("my-op",)))
        return "lost request"

    done = go(Cell(SHUT, [landed_then_overwritten]), "unlock", chart=chart)
    assert isinstance(done, Committed)
    assert done.record.op == "their-op"


@pytest.mark.parametrize(("act", "unclear"), [("conflict", False), ("lost request", True)])
def test_giving_up_says_whether_the_write_may_have_happened(act, unclear):
    with pytest.raises(GaveUp, match="Gave up on unlock of the door after 8 tries") as caught:
        go(Cell(SHUT, [act] * 8), "unlock")
    assert caught.value.unclear is unclear


def test_a_store_that_refuses_this_identity_ends_it_at_once():
    cell = Cell(SHUT, [Denied("no rights")])
    with pytest.raises(Denied):
        go(cell, "unlock")


def test_a_committed_event_is_told_once_and_a_refused_one_never():
    told = []
    done = go(Cell(SHUT, ["conflict", "lost answer"]), "unlock", audit=told.append, key="front")
    assert told == [Transition("door", "unlock", "shut", done.record.state, "front", "my-op")]
    go(Cell(SHUT), "unlock", "hairpin", audit=told.append)
    assert len(told) == 1
