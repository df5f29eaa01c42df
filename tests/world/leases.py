"""Duties of a lease's holder and its rivals, and P7: at most one believer at any instant.

What a fleet's lease code does with the production chart, `Belief` and `Sightings`: watch, take, keep, stop believing and
only then ask to release.
"""

from fdagent.commit import Committed, commit
from fdagent.stores.cell import StoreCell
from fdagent.stores.sightings import Sightings
from machines.lease import LEASE
from models import codec
from models.lease import Lease, LeaseFacts, has_lapsed
from models.place import process_gone
from models.step import Refusal

from .process import Me, Violation
from .state import Monitor, State

SPAN = 6.0
TICK = 3.0
TABLE = "silver.orders"
KEY = f"leases/{TABLE}.json"


def read(body: bytes) -> Lease:
    """A lease's record."""
    return Lease.from_json(codec.parse(body))


def sightings(me: Me) -> Sightings:
    """What this process has met."""
    return me.memory.setdefault("sightings", Sightings(me.clock))


class Watched(StoreCell[Lease]):
    """The lease's cell; each read of it is a sighting."""

    def __init__(self, me: Me, table: str) -> None:
        self.key, self.me = f"leases/{table}.json", me
        super().__init__(me.store, self.key, read, lambda lease: codec.dump(lease.to_json()))

    def read(self) -> tuple[Lease | None, str]:
        asked = self.me.clock.elapsed()
        record, tag = super().read()
        if record is not None:
            sightings(self.me).seen(self.key, record.op, asked=asked)
        return record, tag


def ask(me: Me, event: str, table: str = TABLE, *, span: float = SPAN) -> Committed[Lease] | Refusal:
    """One event of the lease."""
    op = me.ids.new()
    ops = me.memory.setdefault(("ops", table), set())
    ops.add(op)

    def facts(record: Lease | None) -> LeaseFacts:
        place = me.processes.place()
        unchanged = None if record is None else sightings(me).unchanged_for(f"leases/{table}.json", record.op)
        belief = me.beliefs.get(table)
        gone = record is not None and process_gone(record, place=place, started_at=me.processes.started_at)
        pid = me.processes.pid()
        return LeaseFacts(
            ops=frozenset(ops),
            believed=belief is not None and belief.held(),
            lapsed=record is not None and has_lapsed(record, unchanged),
            process_gone=gone,
            new=Lease(
                table=table, agent=me.agent, boot=place, pid=pid, process_started_at=float(pid), seconds=span
            ),
        )

    return commit(LEASE, Watched(me, table), event, op=op, facts=facts, clock=me.clock, ids=me.ids)


def try_take(me: Me, table: str = TABLE, *, span: float = SPAN) -> bool:
    """Ask once; believe from the start of the asking."""
    started = me.clock.elapsed()
    answer = ask(me, "acquire", table, span=span)
    if isinstance(answer, Refusal):
        me.saw("refused")
        return False
    assert answer.record is not None
    if answer.move is None or answer.move.source == "held":
        me.saw("lease taken from another")
    if any(check.guard == "left_behind" and check.held for check in (answer.move.checks if answer.move else ())):
        me.saw("lease by dead process")
    me.believe(table, span).confirmed(started)
    return True


def take(me: Me) -> str | None:
    """Take it, however long that takes."""
    if try_take(me):
        return None
    me.clock.sleep(TICK)
    return "take"


def keep(me: Me) -> str | None:
    """One renewal, a tick later."""
    me.clock.sleep(TICK)
    return None if renew(me) else "take"


def renew(me: Me, table: str = TABLE) -> bool:
    """Renew, and believe from the start of that; lost: stop believing."""
    belief = me.beliefs[table]
    started = me.clock.elapsed()
    if isinstance(ask(me, "renew", table), Committed):
        belief.confirmed(started)
        return True
    belief.end()
    return False


def release(me: Me, table: str = TABLE) -> None:
    """Stop believing, then ask."""
    me.beliefs[table].end()
    ask(me, "release", table)
    del me.beliefs[table]


class OneBeliever(Monitor):
    """P7, for every belief the world watches."""

    def check(self, state: State) -> None:
        for what, holders in state.believers().items():
            if len(holders) > 1:
                raise Violation(f"{' and '.join(holders)} both believe at {state.now:g} s that they hold {what}")

