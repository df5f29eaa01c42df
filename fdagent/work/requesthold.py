"""The request a job runs, in its worker's hands: started, reported, checked before each commit, ended.

Guarantees
- A worker goes on only while the status is running and names this very start of this agent: `check` reads it anew, and
  a read that fails lets nothing be committed.
- The worker writes the status only while its job row is running; what it can't write at the end the daemon's next poll
  brings to what the job says (rule C9).
- Whoever lost the request leaves its status alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fdagent.commit import Audit, Committed, commit
from fdagent.errors import HandedOver
from fdagent.fleet.records import cancel_key, request_key, status_cell, status_key
from fdagent.ports import Clock, Ids, Store
from fdagent.stores.storeclock import store_now
from machines.request import REQUEST
from models.status import RequestFacts, RequestState, Status, TableResult
from models.step import Refusal


@dataclass(slots=True)
class RequestHold:
    """One request, as the worker that runs its job holds it.

    Args:
        store: The environment's control root.
        agent: This agent.
        instance: This start of it.
        told: Told when a report could not be written.
    """

    store: Store
    env: str
    request_id: str
    agent: str
    instance: str
    clock: Clock
    ids: Ids
    told: Callable[[str], None]
    audit: Audit | None = None

    def start(self, job_id: str, attempt: int) -> None:
        """Begin an attempt, before any lease is taken.

        Raises:
            HandedOver: It is another's, offered, cancelled, expired or gone.
            GaveUp, StoreError: Not known; the attempt is tried again.
        """
        if self._mine(status_cell(self.store, self.request_id).read()[0]):
            return
        answer = self._commit("start", lambda: {"job_id": job_id, "attempt": attempt})
        if isinstance(answer, Refusal):
            raise HandedOver(f"Request {self.request_id} is not this agent's to run: {answer}.")

    def check(self) -> None:
        """Read the status anew.

        Raises:
            HandedOver: It is not running, or names another.
            StoreError: It can't be read, so nothing may be committed.
        """
        status, _ = status_cell(self.store, self.request_id).read()
        if not self._mine(status):
            now = "gone" if status is None else f"{status.state} by {status.agent}"
            raise HandedOver(f"Request {self.request_id} is {now}: this agent begins no further change.")

    def report(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """Show how far it is; what can't be shown now is shown later.

        Raises:
            HandedOver: It is another's now.
        """
        answer = self._commit("report", lambda: results(tables, self.agent))
        if isinstance(answer, Refusal):
            raise HandedOver(f"Request {self.request_id} is not this agent's any more: {answer}.")

    def end(self, event: str, tables: Mapping[str, Mapping[str, Any]], *, error: str, category: str) -> None:
        """After the job's row: succeed, fail or wait. A refusal is told: another's write came first."""
        why = {"error": error or None, "category": category or None, "to_be_tried_again": event == "wait"}
        answer = self._commit(event, lambda: {**results(tables, self.agent), **why})
        if isinstance(answer, Refusal):
            self.told(f"The status of request {self.request_id} was left as it is: {answer}.")

    def _mine(self, status: Status | None) -> bool:
        return (
            status is not None
            and status.state is RequestState.RUNNING
            and (status.agent, status.instance) == (self.agent, self.instance)
        )

    def _commit(self, event: str, told: Callable[[], dict[str, Any]]) -> Committed[Status] | Refusal:
        def facts(_: Status | None) -> RequestFacts:
            return RequestFacts(
                agent=self.agent,
                instance=self.instance,
                store_now=store_now(self.clock, self.store.clock_offset()),
                request_file=self.store.read(request_key(self.request_id)) is not None,
                cancel_file=self.store.read(cancel_key(self.request_id)) is not None,
                **told(),
            )

        return commit(
            REQUEST,
            status_cell(self.store, self.request_id),
            event,
            op=self.ids.new(),
            facts=facts,
            clock=self.clock,
            ids=self.ids,
            key=f"{self.env}/{status_key(self.request_id)}",
            audit=self.audit,
        )


def results(tables: Mapping[str, Mapping[str, Any]], agent: str) -> dict[str, Any]:
    """A job's progress as a status shows it."""
    shown = tuple(
        TableResult(
            entity=name,
            state=str(at.get("state", "")),
            run_id=at.get("run_id"),
            rows_written=at.get("rows"),
            rows_read=at.get("read"),
            quarantined=at.get("quarantined"),
            error=at.get("error"),
            by=at.get("by", agent) if at.get("run_id") else None,
        )
        for name, at in tables.items()
    )
    return {
        "tables": shown,
        "run_ids": tuple(table.run_id for table in shown if table.run_id),
        "rows_written": sum(table.rows_written or 0 for table in shown),
    }
