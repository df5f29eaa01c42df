"""`why` of the ledger of incidents and of its entries.

Guarantees: what the ledger itself tells (which entries stand, which are beyond those kept) is answered as an evaluator
would; whether a problem holds or is over only an evaluation finds out, so that is answered as not known, and said.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fdagent.cli.reasons.told import Explained, Mailroom, Named

if TYPE_CHECKING:
    from models.incident import Incident
    from models.ledger import Ledger

LEDGER_NAME = "ledger"
LEDGER_KEY = "incidents/incidents.json"
MINUTE = 60.0


def find_incidents(room: Mailroom, name: str) -> Iterator[Named]:
    """The ledger, which is called `ledger`, or the entry of that id."""
    if name == LEDGER_NAME:
        yield Named("ledger", room.env, name, lambda: [_ledger(room)])
        return
    ledger = _read(room)
    if ledger is not None and any(entry.id == name for entry in ledger.incidents):
        yield Named("incident", room.env, name, lambda: [_incident(room, name)])


def _read(room: Mailroom) -> "Ledger | None":
    from fdagent.fleet.damaged import naming
    from fdagent.fleet.records import dump, parser
    from fdagent.stores.cell import StoreCell
    from models.ledger import Ledger

    return StoreCell(room.store, LEDGER_KEY, naming(LEDGER_KEY, parser(Ledger)), dump).read()[0]


def _ledger(room: Mailroom) -> Explained:
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.ledger import LEDGER
    from models.incident import IncidentState
    from models.ledger import LedgerFacts
    from models.step import ABSENT

    record = _read(room)
    entries = () if record is None else record.incidents
    counts = ", ".join(f"{sum(entry.state is state for entry in entries)} {state}" for state in IncidentState)
    notes = (
        f"It has {len(entries)} entries: {counts}." if entries else f"No incident was ever opened in {room.env}.",
        "Whether an entry changes only an evaluation finds out: the answers are those before one.",
    )
    answers = explain(LEDGER, record, LedgerFacts(), SystemClock().wall())
    return Explained("ledger", LEDGER_NAME, room.env, ABSENT if record is None else str(record.state), answers, notes)


def _incident(room: Mailroom, name: str) -> Explained:
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.incident import INCIDENT
    from models.incident import IncidentFacts
    from models.ledger import surplus
    from models.step import ABSENT

    ledger = _read(room)
    entries = () if ledger is None else ledger.incidents
    entry = next((entry for entry in entries if entry.id == name), None)
    settings = room.place.settings
    minutes = None if settings is None else settings.incidents.escalate_after_minutes
    facts = IncidentFacts(
        by_a_person=True,
        surplus=surplus(entries, name),
        escalate_after_seconds=float("inf") if minutes is None else minutes * MINUTE,
    )
    answers = explain(INCIDENT, entry, facts, SystemClock().wall())
    state = ABSENT if entry is None else str(entry.state)
    return Explained("incident", name, room.env, state, answers, () if entry is None else tuple(_notes(entry)))


def _notes(entry: "Incident") -> Iterator[str]:
    from models.times import stamp

    times = "" if entry.occurrences is None else f", {entry.occurrences} times so far"
    since = "" if entry.opened_at is None else f", open since {stamp(entry.opened_at)}"
    yield f"{entry.title or entry.key.kind}: {entry.key.kind} of {entry.key.workload}{since}{times}."
    if entry.acknowledged_by:
        yield f"{entry.acknowledged_by} acknowledged it."
    if entry.resolved_at is not None:
        yield f"It was resolved at {stamp(entry.resolved_at)} by {entry.resolved_by or '?'} ({entry.resolution or '?'})."
    yield "Whether the problem holds or is over only an evaluation finds out: the answers are those before one."
