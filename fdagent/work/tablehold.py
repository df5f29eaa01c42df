"""Holding one table at a time while it is run: wait for its lease, keep it, free it.

Guarantees: a table is run only under a lease that is believed in; the lease is waited for about its own span while no
other is held, then the table is busy; a wish to stop ends the wait at its next look; the lease is freed when the table
has ended, and lapses when that can't be said.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fdagent.commit import Audit
from fdagent.errors import FdagentError, TableBusy
from fdagent.fleet.records import lease_cell
from fdagent.ports import Clock, Ids, Processes, Store
from fdagent.stores.sightings import Sightings
from fdagent.work.holding import Keeper
from fdagent.work.leases import Holder, TableLease
from fdagent.work.news import News
from models.lease import Lease
from models.step import Refusal

POLL_SECONDS = 1.0
"""Between two looks at a lease that somebody else holds."""


class Unwanted(Exception):
    """The wait for a table ended because nobody wants it run now."""


@dataclass(slots=True)
class TableHolds:
    """The table leases of one worker, one at a time.

    Args:
        holder: Who takes them.
        seconds: Their span, and the longest wait for one.
        sightings: What this worker has met; kept over its jobs, so that a dead holder's span is not watched anew.
        news: What the daemon told last, of leases that are left alone among other things.
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
    def held(self, table: str, job_id: str, unwanted: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Run a block under the lease of a table.

        Args:
            table: `<layer>.<table>`.
            job_id: For which job.
            unwanted: Asked while it is waited for: should the wait end?

        Raises:
            TableBusy: Somebody else held it for the whole wait.
            Unwanted: It was not to be waited for any longer.
        """
        lease = self._taken(table, job_id, unwanted)
        self._lease = lease
        try:
            with Keeper(lease.belief, lease.renew, self.clock, self.told):
                yield
        finally:
            self._lease = None
            self._free(lease)

    def _taken(self, table: str, job_id: str, unwanted: Callable[[], bool]) -> TableLease:
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
            self._is_left,
            self.audit,
        )
        # A look longer than the span, so that a lease nobody renews is seen to lapse.
        until = self.clock.elapsed() + self.seconds + 2 * POLL_SECONDS
        while True:
            refusal = self._asked(lease)
            if refusal is None:
                return lease
            if self.clock.elapsed() >= until:
                raise self._busy(store, table, refusal)
            if unwanted():
                raise Unwanted(table)
            self.clock.sleep(min(POLL_SECONDS, self.seconds / 10) * (0.5 + self.ids.fraction()))

    def _busy(self, store: Store, table: str, refusal: Refusal | FdagentError) -> TableBusy:
        """What stands in the way after the whole wait, in words."""
        why = str(refusal).removesuffix(".")
        with contextlib.suppress(FdagentError):
            who, _ = lease_cell(store, table).read()
            if who is not None:
                on = f"{who.agent or 'another agent'} on {who.host or 'another machine'}"
                why = f"{on} holds it for job {who.job_id or '?'}"
        return TableBusy(
            f"{table} is busy: {why}; it was waited for {self.seconds:.0f} s.",
            fix=f"It is tried again by itself; `fdagent lease list {self.env or 'ENV'}` shows who holds what.",
        )

    def _is_left(self, lease: Lease) -> bool:
        """Does the daemon know this very version to be left alone?"""
        return bool(lease.op) and self.news().left.get(self.env, {}).get(lease.table) == lease.op

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
