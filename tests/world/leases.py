"""Duties of a lease's holder and its rivals, and P7: at most one believer at any instant.

The duties take, keep and release through the production `TableLease`; the world watches its belief.
"""

from fdagent.fleet.records import lease_cell, lease_key
from fdagent.stores.sightings import Sightings
from fdagent.work.leases import Holder, TableLease
from models.place import process_gone

from .process import Me, Violation
from .scope import Monitor
from .state import State

SPAN = 6.0
TICK = 3.0
TABLE = "silver.orders"
KEY = lease_key(TABLE)


def sightings(me: Me) -> Sightings:
    """What this process has met."""
    return me.memory.setdefault("sightings", Sightings(me.clock))


def lease_of(me: Me, table: str = TABLE, *, span: float = SPAN) -> TableLease:
    """The production lease of a table in this process's hands; each taking is a claim of its own."""
    known = me.memory.get(("lease", table))
    if known is None:
        pid, place = me.processes.pid(), me.processes.place()
        holder = Holder(me.agent, f"{me.agent}-{me.boot}", "host", place, pid, float(pid))
        known = TableLease(
            me.store, table, span, holder, sightings(me), me.clock, me.ids, me.processes, audit=me.committed
        )
        me.memory["lease", table] = known
    return known


def try_take(me: Me, table: str = TABLE, *, span: float = SPAN) -> bool:
    """Ask once; the world watches the belief."""
    lease = lease_of(me, table, span=span)
    me.beliefs[table] = lease.belief
    before = lease_cell(me.store, table).read()[0]
    if lease.acquire() is not None:
        me.saw("refused")
        return False
    if before is not None:
        me.saw("lease taken from another")
        if process_gone(before, place=me.processes.place(), started_at=me.processes.started_at):
            me.saw("lease by dead process")
    return True


def take(me: Me) -> str | None:
    """Take it, however long that takes."""
    if try_take(me):
        return None
    me.clock.sleep(TICK)
    return "take"


def hold(me: Me) -> None:
    """Work for a tick without a renewal."""
    me.clock.sleep(TICK)


def keep(me: Me) -> str | None:
    """One renewal, a tick later."""
    me.clock.sleep(TICK)
    return None if renew(me) else "take"


def renew(me: Me, table: str = TABLE) -> bool:
    """Renew; lost: it has stopped believing."""
    return lease_of(me, table).renew()


def release(me: Me, table: str = TABLE) -> None:
    """Free it; the next taking is another claim."""
    try:
        me.memory.pop(("lease", table)).release()
    finally:
        me.beliefs.pop(table, None)


class OneBeliever(Monitor):
    """P7, for every belief the world watches."""

    def check(self, state: State) -> None:
        for what, holders in state.believers().items():
            if len(holders) > 1:
                raise Violation(f"{' and '.join(holders)} both believe at {state.now:g} s that they hold {what}")
