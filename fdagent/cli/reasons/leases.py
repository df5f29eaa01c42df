"""`why` of a table's lease: who holds it, and who may take it.

Guarantees: the facts are those of a worker of this machine that has just begun to watch, and of a person; what an age
suggests is called an estimate.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fdagent.cli.lease import ESTIMATE, seems_lapsed
from fdagent.cli.reasons.told import Explained, Mailroom, Named

if TYPE_CHECKING:
    from fdagent.ports import Store
    from models.lease import Lease, LeaseFacts

MAINTENANCE = "_maintenance"
"""The lease that stands for no table."""


def find_leases(room: Mailroom, name: str) -> Iterator[Named]:
    """The lease of a table of the project, or of one that somebody holds a lease of."""
    from fdagent.fleet.records import lease_key
    from fdagent.project.load import load_project

    known = name == MAINTENANCE or name in load_project(room.place.project).entities
    if known or room.store.read(lease_key(name)) is not None:
        yield Named("lease", room.env, name, lambda: [_lease(room, name)])


def _lease(room: Mailroom, table: str) -> Explained:
    from fdagent.fleet.records import lease_cell, lease_key
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.lease import LEASE
    from models.step import ABSENT

    lease, _ = lease_cell(room.store, table).read()
    answers = explain(LEASE, lease, _lease_facts(lease), SystemClock().wall())
    blob = room.store.read(lease_key(table))
    notes = () if lease is None else tuple(_lease_notes(room.store, lease, None if blob is None else blob.age))
    return Explained("lease", table, room.env, ABSENT if lease is None else str(lease.state), answers, notes)


def _lease_facts(lease: "Lease | None") -> "LeaseFacts":
    from fdagent.system import SystemProcesses
    from models.lease import LeaseFacts
    from models.place import process_gone

    if lease is None:
        return LeaseFacts()
    processes = SystemProcesses()
    gone = process_gone(lease, place=processes.place(), started_at=processes.started_at)
    return LeaseFacts(by_a_person=True, named_op=lease.op, process_gone=gone)


def _lease_notes(store: "Store", lease: "Lease", age: float | None) -> Iterator[str]:
    """What the store's clock makes of the lease and of its agent."""
    from fdagent.fleet.presence import agent_cell, agent_key
    from models.ids import id_problem
    from models.lease import span_seconds
    from models.liveness import liveness
    from models.times import lasted

    yield f"{lease.agent or '?'} on {lease.host or '?'} holds it for job {lease.job_id or '?'}, op {lease.op}."
    span = span_seconds(lease)
    if age is not None and span is not None:
        seems = "has lapsed" if seems_lapsed(lease, age) else "has not lapsed"
        yield f"It was renewed {lasted(age)} ago and spans {lasted(span)}, so it seems that it {seems} ({ESTIMATE})."
    if lease.agent and not id_problem(lease.agent):
        record, _ = agent_cell(store, lease.agent).read()
        blob = store.read(agent_key(lease.agent))
        seems = liveness(record, None if blob is None else blob.age)
        yield f"Its agent seems {seems} ({ESTIMATE})."
    yield f"An {ESTIMATE} decides nothing: a worker goes by what it has itself seen unchanged."
