"""Duties of an evaluator of incidents, and P10: one incident a problem, its message sent at least once."""

import contextlib
from typing import Any

from fdagent.commit import Committed, commit
from fdagent.errors import FdagentError
from fdagent.stores.cell import StoreCell
from machines.incident import Ask, judge_entries
from machines.ledger import LEDGER
from models import codec
from models.incident import Incident, IncidentFacts, IncidentState, ProblemKey
from models.ledger import Ledger, LedgerFacts, newest, stands
from models.step import Refusal

from .process import Me, Violation
from .scope import Monitor
from .state import State

KEY = "incidents/incidents.json"
WORKLOAD = "silver.orders"
TICK = 60.0


def _cell(me: Me) -> StoreCell[Ledger]:
    return StoreCell(
        me.store, KEY, lambda body: Ledger.from_json(codec.parse(body)), lambda ledger: codec.dump(ledger.to_json())
    )


def _write(me: Me, asks_of: Any) -> tuple[Committed[Ledger] | Refusal, str]:
    """One evaluation: judge the asks on the ledger as read, write all of it at once."""
    op = me.ids.new()

    def facts(ledger: Ledger | None) -> LedgerFacts:
        entries = () if ledger is None else ledger.incidents
        now = me.clock.wall()
        return LedgerFacts(entries=judge_entries(entries, asks_of(entries, now), now=now, op=op).entries)

    answer = commit(LEDGER, _cell(me), "write", op=op, facts=facts, clock=me.clock, ids=me.ids, audit=me.committed)
    if isinstance(answer, Committed) and answer.record is not None and answer.record.op != op:
        me.saw("recognised under another's write")
    return answer, op


def evaluate(me: Me) -> str | None:
    """Find the failed run, open or count it; whoever's write opened it, or finds it untold for a while, sends."""
    new_id = me.ids.new()
    problem = ProblemKey(kind="run_failed", workload=me.memory.get("workload", WORKLOAD), env="dev")

    def asks_of(entries: tuple[Incident, ...], now: float) -> list[Ask]:
        entry = newest(entries, problem)
        facts = IncidentFacts(
            holds=True,
            occurrence="run1",
            stands=stands(entries, problem, "run1", now),
            new=Incident(id=new_id, key=problem, state=IncidentState.OPEN),
            evaluator=me.agent,
        )
        return [Ask(new_id, "open", facts) if entry is None else Ask(entry.id, "see", facts)]

    try:
        answer, op = _write(me, asks_of)
        ledger = answer.record if isinstance(answer, Committed) else _cell(me).read()[0]
    except FdagentError:
        me.clock.sleep(TICK)
        return "evaluate"
    entry = None if ledger is None else newest(ledger.incidents, problem)
    if entry is not None and entry.announced is None:
        if entry.op == op or me.memory.get("untold") == entry.id:
            me.memory["send"] = entry.id
            return None
        me.memory["untold"] = entry.id
    me.clock.sleep(TICK)
    return "evaluate"


def send(me: Me) -> str:
    """Send the message, then mark it."""
    entry = me.memory.pop("send")
    me.memory.pop("untold", None)
    me.tell("sent", me.memory.get("workload", WORKLOAD))
    me.saw("sent")
    with contextlib.suppress(FdagentError):
        _write(me, lambda *_: [Ask(entry, "announce", IncidentFacts(told="open"))])
    return "evaluate"


def another(me: Me) -> None:
    """This evaluator finds another problem."""
    me.memory["workload"] = "gold.sales"


class OneIncident(Monitor):
    """P10."""

    def check(self, state: State) -> None:
        kept = state.records.get(KEY)
        if kept is None:
            return
        entries = Ledger.from_json(codec.parse(kept.body)).incidents
        if len({entry.key.workload for entry in entries}) != len(entries):
            raise Violation("one problem opened two incidents")
        for entry in entries:
            if entry.occurrences != 1:
                raise Violation(f"one failed run was counted {entry.occurrences} times")
            if entry.announced and not state.ghost.get(("sent", entry.key.workload)):
                raise Violation("an incident is marked as told, and no message was sent")

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if key == KEY and old is not None and new is not None:
            was, now = ({entry.id for entry in Ledger.from_json(codec.parse(body)).incidents} for body in (old, new))
            if not was <= now:
                raise Violation("an incident that somebody opened is no longer in the ledger")

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what == "sent":
            state.ghost["sent", about[0]] = True


def ended(state: State) -> bool:
    """Was the message sent, and marked?"""
    kept = state.records.get(KEY)
    return kept is not None and all(entry.announced for entry in Ledger.from_json(codec.parse(kept.body)).incidents)
