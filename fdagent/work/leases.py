"""Table leases: one writer of one table at a time, as one job claim takes, keeps and frees them.

Guarantees (rules C4 and C5)
- A claim believes in a lease only from a version that it newly wrote and saw confirmed, counted from before that write
  began, and stops believing before it asks to free it. Two claims never believe at once while clocks run at one rate,
  but where a lost agent's worker was only paused: it may wake up and believe until its next look.
- A lease of somebody else is taken when this reader itself has seen it unchanged for its whole span, or at once when
  nobody is behind it: its process of this place is gone, or its daemon has watched it being left alone (`news.py`).
- Every op that was tried is kept, so a write whose answer was lost is still known as ours, and another claim's never is.

Does not fence: the table's own conditional commit does. Does not wait for a lease; its caller does, within a bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fdagent.commit import Audit, Committed, commit
from fdagent.fleet.records import lease_cell, lease_key
from fdagent.ports import Clock, Ids, Processes, Store
from fdagent.stores.sightings import Sightings
from fdagent.stores.watched import WatchedCell
from fdagent.work.holding import Belief
from machines.lease import LEASE
from models.lease import Lease, LeaseFacts, has_lapsed
from models.place import process_gone
from models.step import Refusal


@dataclass(frozen=True, slots=True)
class Holder:
    """Who takes leases: what the record says of it, as a lease without table, op and times."""

    agent: str
    instance: str
    host: str
    place: str
    pid: int
    process_started_at: float
    job_id: str = ""
    request_id: str = ""


@dataclass(slots=True)
class TableLease:
    """One table's lease in the hands of one job claim.

    Args:
        store: The control root.
        table: `<layer>.<table>`.
        seconds: The span.
        holder: Who takes it.
        sightings: What this process has met; shared by all its leases.
        left: Is this very version known to be left alone (`LeaseFacts.left_alone`)? False when that can't be told.
    """

    store: Store
    table: str
    seconds: float
    holder: Holder
    sightings: Sightings
    clock: Clock
    ids: Ids
    processes: Processes
    left: Callable[[Lease], bool] = lambda _: False
    audit: Audit | None = None
    belief: Belief = field(init=False)
    _ops: set[str] = field(default_factory=set)
    _cell: WatchedCell[Lease] = field(init=False)

    def __post_init__(self) -> None:
        self.belief = Belief(self.seconds, self.clock)
        inner = lease_cell(self.store, self.table)
        self._cell = WatchedCell(inner, lease_key(self.table), self.sightings, self.clock)

    def acquire(self) -> Refusal | None:
        """Ask once. None: it is held and believed in.

        Raises:
            GaveUp, StoreError: It is not known to be held.
        """
        return self._ask("acquire")

    def renew(self) -> bool:
        """Renew it: False when it is another's now, and then the belief has ended.

        Raises:
            GaveUp, StoreError: Not confirmed; the belief goes on ending by itself.
        """
        if self._ask("renew") is None:
            return True
        self.belief.end()
        return False

    def release(self) -> None:
        """Stop believing, then free it. What can't be freed now lapses."""
        self.belief.end()
        self._commit("release", self.ids.new())

    def _ask(self, event: str) -> Refusal | None:
        op = self.ids.new()
        self._ops.add(op)
        started = self.clock.elapsed()
        answer = self._commit(event, op)
        if isinstance(answer, Refusal):
            return answer
        self.belief.confirmed(started)
        return None

    def _commit(self, event: str, op: str) -> Committed[Lease] | Refusal:
        return commit(
            LEASE,
            self._cell,
            event,
            op=op,
            facts=self._facts,
            clock=self.clock,
            ids=self.ids,
            key=lease_key(self.table),
            audit=self.audit,
        )

    def _facts(self, record: Lease | None) -> LeaseFacts:
        mine = LeaseFacts(ops=frozenset(self._ops), believed=self.belief.held(), new=self._new())
        if record is None:
            return mine
        return replace(
            mine,
            lapsed=has_lapsed(record, self._cell.unchanged_seconds),
            left_alone=self.left(record),
            process_gone=process_gone(record, place=self.processes.place(), started_at=self.processes.started_at),
        )

    def _new(self) -> Lease:
        who = self.holder
        return Lease(
            table=self.table,
            agent=who.agent,
            instance=who.instance,
            host=who.host,
            boot=who.place,
            pid=who.pid,
            process_started_at=who.process_started_at,
            job_id=who.job_id or None,
            request_id=who.request_id or None,
            seconds=self.seconds,
        )
