"""Housekeeping of a mailbox: what ended long ago is removed.

Guarantees: request file first, then cancel file, then status, each by its chart, so that a request which was swept can't
be claimed again; one that can't be swept keeps no other from it. At most `SWEEPS_A_TURN` requests a turn, so that an
agent with much to remove still beats.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from fdagent.commit import Audit, commit
from fdagent.errors import BadRecord, GaveUp, NewerContract, StoreError, Unavailable
from fdagent.fleet.look import Look
from fdagent.fleet.records import cancel_key, dump, parser, request_key, status_cell, status_key, wish_cell
from fdagent.ports import Cell, Clock, Ids, Store
from fdagent.stores.cell import StoreCell
from machines.chart import Chart
from machines.request import REQUEST
from machines.slot import SLOT
from machines.wish import WISH
from models.slot import DAY, OPEN_SECONDS, Request, SlotFacts
from models.status import RequestFacts, Status
from models.wish import WishFacts

SWEEPS_A_TURN = 50
SWEEP_SECONDS = 600.0
"""Between two turns."""


@dataclass(slots=True)
class Sweeper:
    """Sweeps one environment's mailbox.

    Args:
        look: What was seen at the last poll.
        retention_seconds: How long what ended is kept; less than a day counts as a day.
        trouble: Told of a request that can't be swept.
    """

    env: str
    store: Store
    look: Look
    retention_seconds: float
    clock: Clock
    ids: Ids
    trouble: Callable[[str, Exception], None]
    audit: Audit | None = None
    _swept_at: float = float("-inf")

    def turn(self) -> None:
        """Sweep, if it is time.

        Raises:
            Unavailable: The control root can't be reached.
        """
        now, at = self.clock.elapsed(), self.look.store_now()
        if at is None or now - self._swept_at < SWEEP_SECONDS:
            return
        self._swept_at = now
        kept = max(self.retention_seconds, DAY)
        old = [
            (name, status)
            for name, status in self.look.finals()
            if status.finished_at is not None and at - status.finished_at > kept
        ]
        # From anywhere in the list: one that can't be swept is not always in the way.
        start = int(self.ids.fraction() * len(old))
        self._each((old[start:] + old[:start])[:SWEEPS_A_TURN])
        self._each((name, None) for name in list(self.look.orphan_cancels())[:SWEEPS_A_TURN])

    def _each(self, found: Iterable[tuple[str, Status | None]]) -> None:
        for name, status in found:
            try:
                if status is None:
                    self._wish(name, None, None)
                else:
                    self._request(name, status)
            except Unavailable:
                raise
            except (BadRecord, NewerContract, GaveUp, StoreError) as err:
                self.trouble(name, err)

    def _request(self, request_id: str, status: Status) -> None:
        deadline = self._deadline(request_id, status)
        facts = SlotFacts(
            store_now=self.look.store_now(),
            status_final=True,
            finished_at=status.finished_at,
            deadline=deadline,
            retention_seconds=self.retention_seconds,
        )
        key = request_key(request_id)
        self._delete(SLOT, StoreCell(self.store, key, _any_request, dump), key, lambda _: facts)
        self._wish(request_id, status, deadline)

        def final(_: Status | None) -> RequestFacts:
            return RequestFacts(
                store_now=self.look.store_now(),
                deadline=deadline,
                request_file=self.store.read(request_key(request_id)) is not None,
                cancel_file=self.store.read(cancel_key(request_id)) is not None,
                retention_seconds=self.retention_seconds,
            )

        self._delete(REQUEST, status_cell(self.store, request_id), status_key(request_id), final)

    def _deadline(self, request_id: str, status: Status) -> float | None:
        """The status names it; one of the first version may not, and then the request does, or the longest it may be."""
        if status.deadline is not None:
            return status.deadline
        file = self.look.request(request_id, fresh=False)
        ended = None if status.finished_at is None else status.finished_at + OPEN_SECONDS
        named = None if file is None or file.record is None else file.record.deadline
        return ended if named is None else named

    def _wish(self, request_id: str, status: Status | None, deadline: float | None) -> None:
        blob, at = self.store.read(cancel_key(request_id)), self.look.store_now()
        if blob is None or at is None:
            return
        facts = WishFacts(
            store_now=at,
            status_final=status is not None,
            finished_at=None if status is None else status.finished_at,
            deadline=deadline,
            retention_seconds=self.retention_seconds,
            file_written_at=None if blob.age is None else at - blob.age,
        )

        def now(_: object) -> WishFacts:
            return replace(facts, orphan=status is None and self._belongs_to_nothing(request_id))

        self._delete(WISH, wish_cell(self.store, request_id), cancel_key(request_id), now)

    def _belongs_to_nothing(self, request_id: str) -> bool:
        return self.store.read(request_key(request_id)) is None and self.store.read(status_key(request_id)) is None

    def _delete(self, chart: Chart[Any, Any], cell: Cell[Any], key: str, facts: Callable[[Any], Any]) -> None:
        commit(
            chart,
            cell,
            "sweep",
            op=self.ids.new(),
            facts=facts,
            clock=self.clock,
            ids=self.ids,
            key=f"{self.env}/{key}",
            audit=self.audit,
        )


def _any_request(body: bytes) -> Request:
    """A request to be swept may be one that was rejected because nobody could read it; one of a newer version is left."""
    try:
        return parser(Request)(body)
    except BadRecord:
        return Request()
