"""Holding one table at a time while it is run: wait for its lease, keep it, free it.

Guarantees: a table is run only under a lease that is believed in; the lease is waited for about its own span while no
other is held, then the table is busy; it is freed when the table has ended, and lapses when that can't be said.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fdagent.commit import Audit
from fdagent.errors import FdagentError, TableBusy
from fdagent.fleet.records import AGENTS
from fdagent.ports import Clock, Ids, Processes, Store
from fdagent.stores.sightings import Sightings
from fdagent.work.holding import Keeper
from fdagent.work.leases import Holder, Others, TableLease
from fdagent.work.news import News
from models.lease import Lease
from models.step import Refusal

POLL_SECONDS = 1.0
"""Between two looks at a lease that somebody else holds."""


@dataclass(slots=True)
class TableHolds:
    """The table leases of one worker, one at a time.

    Args:
        holder: Who takes them.
        seconds: Their span, and the longest wait for one.
        sightings: What this worker has met; kept over its jobs, so that a dead holder's span is not watched anew.
        news: What the daemon told last: who is lost, and where this start holds its agent's name.
        told: Told when a lease could not be freed, or not be renewed for an unforeseen reason.
        env: The job's environment; set for each job.
        store: Its control root; set for each job.
    """

    holder: Holder
    seconds: float
    sightings: Sightings
    clock: Clock
    ids: Ids
    processes: Processes
    news: Callable[[], News] = News
    told: Callable[[str], None] = lambda _sentence: None
    audit: Audit | None = None
    env: str = ""
    store: Store | None = None
    _lease: TableLease | None = None

    def check(self) -> None:
        """Raise StoodDown unless the table's lease is believed in."""
        if self._lease is not None:
            self._lease.belief.check(f"The lease of {self._lease.table}")

    @contextlib.contextmanager
    def held(self, table: str, job_id: str) -> Iterator[None]:
        """Run a block under the lease of a table.

        Raises:
            TableBusy: Somebody else held it for the whole wait.
        """
        lease = self._taken(table, job_id)
        self._lease = lease
        try:
            with Keeper(lease.belief, lease.renew, self.clock, self.told):
                yield
        finally:
            self._lease = None
            self._free(lease)

    def _taken(self, table: str, job_id: str) -> TableLease:
        store = self.store
        if store is None:
            raise AssertionError("a table's lease was asked for before the job's control root was known")
        lease = TableLease(
            store,
            table,
            self.seconds,
            replace(self.holder, job_id=job_id),
            self.sightings,
            self.clock,
            self.ids,
            self.processes,
            Others(lost=lambda lease: self._is_lost(store, lease), replaced=self._is_replaced),
            self.audit,
        )
        # A look longer than the span, so that a lease nobody renews is seen to lapse.
        until = self.clock.elapsed() + self.seconds + 2 * POLL_SECONDS
        while True:
            refusal = self._asked(lease)
            if refusal is None:
                return lease
            if self.clock.elapsed() >= until:
                raise TableBusy(
                    f"{table} is busy: {refusal}, for {self.seconds:.0f} s.", fix="It is tried again by itself."
                )
            self.clock.sleep(min(POLL_SECONDS, self.seconds / 10) * (0.5 + self.ids.fraction()))

    def _is_lost(self, store: Store, lease: Lease) -> bool:
        """Is the agent behind a lease lost? Its record must still be the version that the daemon watched."""
        watched = self.news().lost.get(self.env, {}).get(lease.agent or "")
        blob = store.read(f"{AGENTS}{lease.agent}.json") if watched else None
        return blob is not None and blob.etag == watched

    def _is_replaced(self, lease: Lease) -> bool:
        """Did an earlier start of this agent take it? An environment is served by the start that holds the name there."""
        mine = lease.agent == self.holder.agent and lease.instance != self.holder.instance
        return mine and self.env in self.news().envs

    @staticmethod
    def _asked(lease: TableLease) -> Refusal | FdagentError | None:
        """Ask once; what stands in the way, if anything."""
        try:
            return lease.acquire()
        except FdagentError as err:
            if not err.retryable:
                raise
            return err

    def _free(self, lease: TableLease) -> None:
        try:
            lease.release()
        except FdagentError as err:
            self.told(f"The lease of {lease.table} could not be freed, so it lapses by itself. {err}")
