"""The chart of an incident: an entry of the ledger, written with it.

One problem has one entry, whoever finds it. An occurrence that the entry has counted never counts again and never
opens it again, so an evaluator that reads late changes nothing, and what a person resolved stays resolved until
something new happens. Its message is sent by whoever's write of the ledger landed, and then marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from machines.chart import Chart, Row
from machines.ledger import LEDGER
from models import incident as i
from models.incident import Incident, IncidentFacts, IncidentState
from models.ledger import stands, surplus
from models.person import by_a_person
from models.step import ABSENT, Move, Refusal, Step

OPEN, ACKNOWLEDGED, RESOLVED = IncidentState.OPEN, IncidentState.ACKNOWLEDGED, IncidentState.RESOLVED
UNRESOLVED = (OPEN, ACKNOWLEDGED)

INCIDENT: Chart[Incident, IncidentFacts] = Chart(
    "incident",
    states=IncidentState,
    final=frozenset({RESOLVED}),
    within=LEDGER,
    rows=[
        Row("open", ABSENT, OPEN, i.open_new, (i.holds, i.none_stands)),
        Row("see", UNRESOLVED, None, i.see, (i.holds, i.new_occurrence)),
        Row("acknowledge", OPEN, ACKNOWLEDGED, i.acknowledge, (by_a_person,)),
        Row("recover", UNRESOLVED, RESOLVED, i.recover, (i.over,)),
        Row("clear", UNRESOLVED, RESOLVED, i.clear, (i.workload_gone,)),
        Row("resolve", UNRESOLVED, RESOLVED, i.resolve, (by_a_person,)),
        Row("reopen", RESOLVED, OPEN, i.reopen, (i.holds, i.new_occurrence, i.lately_resolved)),
        Row("escalate", OPEN, OPEN, i.escalate, (i.unattended, ~i.escalated)),
        Row("announce", (OPEN, ACKNOWLEDGED, RESOLVED), None, i.announce, (i.told,)),
        Row("forget", RESOLVED, ABSENT, i.forget, (i.surplus,)),
    ],
)


@dataclass(frozen=True, slots=True)
class Ask:
    """One event of one entry; the id of an entry to open is new."""

    id: str
    event: str
    facts: IncidentFacts


@dataclass(frozen=True, slots=True)
class Judged:
    """The entries as they are to be, and each ask with its answer, in order."""

    entries: tuple[Incident, ...]
    answers: tuple[tuple[Ask, Move[Incident] | Refusal], ...]


def judge_entries(entries: tuple[Incident, ...], asks: Sequence[Ask], *, now: float, op: str) -> Judged:
    """Judge asks one after the other, each on what the ones before it made of the entries. Nothing is written.

    Whether an entry stands for the same problem, and whether one is beyond those that are kept, is found here, from
    the entries themselves, and overrides what the facts say.

    Args:
        entries: The ledger's entries as just read.
        asks: What is asked for.
        now: Epoch seconds.
        op: The op of the ledger's write; each entry that changes keeps it.
    """
    left = {entry.id: entry for entry in entries}
    answers = []
    for ask in asks:
        facts = _with_entries(ask, tuple(left.values()), now)
        answer = INCIDENT.judge(ask.event, Step(left.get(ask.id), now, facts, op))
        if isinstance(answer, Move) and answer.next is None:
            del left[ask.id]
        elif isinstance(answer, Move) and answer.next is not None:
            if answer.next.id != ask.id:
                raise AssertionError(f"{ask.event} of {ask.id} makes the entry {answer.next.id}")
            left[ask.id] = answer.next
        answers.append((ask, answer))
    return Judged(tuple(left.values()), tuple(answers))


def _with_entries(ask: Ask, entries: tuple[Incident, ...], now: float) -> IncidentFacts:
    facts = ask.facts
    if facts.new is not None:
        facts = replace(facts, stands=stands(entries, facts.new.key, facts.occurrence, now))
    return replace(facts, surplus=surplus(entries, ask.id))
