"""One problem, one incident, whoever finds it and however late they read."""

from dataclasses import replace

import pytest
from chart_kit import NOW, MemoryCell, go, incident

from fdagent.commit import Committed
from machines.incident import INCIDENT, Ask, judge_entries
from machines.ledger import LEDGER
from models.incident import MOST_SEEN, IncidentFacts, ProblemKey
from models.ledger import Ledger, LedgerFacts, newest, stands, surplus
from models.step import Move, Refusal, Step

KEY = incident().key
FAILED = IncidentFacts(holds=True, stands=False, occurrence="run-2", new=incident(op="", evidence={"rows": 1}))
DAY = 86_400.0


def judge(event, record, facts, now=NOW, **changes):
    return INCIDENT.judge(event, Step(record, now, replace(facts, **changes), "new-op"))


def test_an_occurrence_counts_once_however_often_it_is_read():
    entry = judge("open", None, FAILED, evaluator="etl-01").next
    assert (entry.occurrences, entry.seen, entry.opened_by, entry.announced) == (1, ("run-2",), "etl-01", None)
    assert isinstance(judge("see", entry, FAILED), Refusal)
    again = judge("see", entry, FAILED, occurrence="run-3").next
    assert (again.occurrences, again.seen) == (2, ("run-2", "run-3"))
    assert isinstance(judge("see", again, FAILED, occurrence="run-2"), Refusal), "an evaluator that reads late"


def test_what_a_person_resolved_opens_again_only_for_something_new():
    entry = judge("resolve", incident(), FAILED, by_a_person=True, person="Kim", note="known").next
    assert (entry.state, entry.resolution, entry.resolved_by, entry.notes) == ("resolved", "by hand", "Kim", ("known",))
    assert isinstance(judge("reopen", entry, FAILED, occurrence="run-1"), Refusal)
    again = judge("reopen", replace(entry, acknowledged_by="Kim", escalated_at=NOW), FAILED).next
    assert (again.state, again.opened_at, again.occurrences) == ("open", NOW, 2)
    assert (again.resolution, again.resolved_by, again.resolved_at) == (None, None, None)
    assert (again.acknowledged_by, again.escalated_at, again.announced) == (None, None, None)


@pytest.mark.parametrize(("hours", "reopens"), [(0, True), (23.9, True), (24, False), (1000, False)])
def test_within_a_day_it_opens_again_later_it_is_a_new_one(hours, reopens):
    entry = incident("resolved", resolved_at=NOW - hours * 3600)
    assert isinstance(judge("reopen", entry, FAILED), Move) is reopens
    assert stands((entry,), KEY, "run-2", NOW) is reopens
    assert stands((entry,), KEY, "run-1", NOW) is True, "the same failed run never opens it again"


def test_only_entries_of_the_same_problem_stand_for_it():
    other = ProblemKey(kind="run_failed", workload="silver.orders", env="test")
    assert not stands((incident(key=other),), KEY, "run-2", NOW)
    assert stands((incident(key=replace(KEY, extra={"later": 1})),), KEY, "run-2", NOW)
    assert newest((incident(key=other),), KEY) is None
    assert newest((), KEY) is None


def test_a_problem_belongs_to_its_unresolved_entry_else_to_the_last_resolved():
    old, late = incident("resolved", "inc-1", resolved_at=NOW - 9), incident("resolved", "inc-2", resolved_at=NOW - 5)
    assert newest((late, old), KEY).id == "inc-2"
    assert newest((incident("open", "inc-3"), late), KEY).id == "inc-3"
    assert newest((incident("resolved", "inc-4", resolved_at=None), old), KEY).id == "inc-1"


def test_every_open_entry_and_the_newest_two_hundred_resolved_are_kept():
    resolved = tuple(incident("resolved", f"inc-{n}", resolved_at=NOW - n) for n in range(201))
    entries = (*resolved, *(incident("open", f"open-{n}") for n in range(300)))
    assert [entry.id for entry in entries if surplus(entries, entry.id)] == ["inc-200"]


def test_it_is_escalated_once_and_only_while_nobody_acknowledged_it():
    facts = IncidentFacts(escalate_after_seconds=7200.0, escalate_to="leads")
    done = judge("escalate", incident(), facts).next
    assert (done.escalated_at, done.escalated_to) == (NOW, "leads")
    assert isinstance(judge("escalate", done, facts), Refusal)
    assert isinstance(judge("escalate", incident(), facts, now=NOW - 1), Refusal)
    assert isinstance(judge("escalate", incident("acknowledged"), facts), Refusal)


def test_what_was_told_is_marked_once():
    told = judge("announce", incident(), IncidentFacts(told="open")).next
    assert told.announced == "open"
    assert isinstance(judge("announce", told, IncidentFacts(told="open")), Refusal)
    assert isinstance(judge("announce", told, IncidentFacts(told="resolved")), Move)


def test_the_occurrences_that_are_kept_are_bounded():
    entry = incident()
    for number in range(50):
        entry = judge("see", entry, FAILED, occurrence=f"r{number}").next
    assert len(entry.seen) == MOST_SEEN
    assert entry.seen[-1] == "r49"
    assert entry.occurrences == 51


def test_evidence_somebody_else_wrote_in_another_shape_is_no_occurrence():
    assert incident(evidence={"seen": "run-1"}).seen == ()
    assert incident(evidence={"seen": ["run-1", 7]}).seen == ("run-1",)
    assert incident(evidence=None).seen == ()


def opening(entry_id, **key):
    return Ask(entry_id, "open", replace(FAILED, new=incident(entry_id=entry_id, op="", key=replace(KEY, **key))))


def evaluate(op, *asks):
    """What an evaluator's facts are: its asks, judged on the ledger as just read."""

    def gather(ledger):
        entries = () if ledger is None else ledger.incidents
        return LedgerFacts(entries=judge_entries(entries, asks, now=NOW, op=op).entries)

    return gather


def test_two_evaluators_at_once_open_one_incident():
    cell = MemoryCell()
    cell.before = [lambda: go(LEDGER, cell, "write", evaluate("a", opening("inc-a")), op="a")]
    answer = go(LEDGER, cell, "write", evaluate("b", opening("inc-b")), op="b")
    assert isinstance(answer, Refusal)
    assert [(entry.id, entry.op) for entry in cell.record.incidents] == [("inc-a", "a")]


def test_a_write_whose_answer_was_lost_is_recognised_also_when_another_wrote_over_it():
    """(13)"""
    cell = MemoryCell()
    ask = opening("inc-a")

    def landed_then_overwritten():
        mine = evaluate("a", ask)(None).entries
        theirs = judge_entries(mine, [opening("inc-b", env="test")], now=NOW, op="b").entries
        cell.put(Ledger(incidents=theirs, op="b"))

    cell.before, cell.lose_requests = [landed_then_overwritten], 1
    done = go(LEDGER, cell, "write", evaluate("a", ask), op="a")
    assert isinstance(done, Committed)
    assert cell.record.op == "b"
    assert cell.log == [], "nothing was written a second time"


def test_one_evaluation_changes_many_entries_in_one_write():
    old = tuple(incident("resolved", f"old-{n}", resolved_at=NOW - n) for n in range(200))
    asks = [
        Ask("inc-1", "recover", IncidentFacts(over=True, evaluator="etl-01")),
        Ask("inc-1", "announce", IncidentFacts(told="resolved")),
        Ask("old-199", "forget", IncidentFacts()),
        Ask("old-198", "forget", IncidentFacts()),
        opening("inc-3", env="test"),
        opening("inc-4", env="test"),
        Ask("inc-3", "acknowledge", IncidentFacts()),
    ]
    judged = judge_entries((*old, incident("open", "inc-1")), asks, now=NOW, op="e1")
    assert [isinstance(answer, Move) for _, answer in judged.answers] == [True, True, True, False, True, False, False]
    changed = [(entry.id, entry.state, entry.announced) for entry in judged.entries if entry.op == "e1"]
    assert changed == [("inc-1", "resolved", "resolved"), ("inc-3", "open", None)]
    assert "old-199" not in {entry.id for entry in judged.entries}


def test_an_entry_under_another_id_than_it_was_asked_under_is_a_bug():
    with pytest.raises(AssertionError, match="open of inc-9 makes the entry inc-1"):
        judge_entries((), [Ask("inc-9", "open", FAILED)], now=NOW, op="e1")


def test_opening_without_an_incident_is_a_bug():
    with pytest.raises(AssertionError, match="open without an incident"):
        judge("open", None, FAILED, new=None)
