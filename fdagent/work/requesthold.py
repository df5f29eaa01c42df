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
from fdagent.fleet.progress import results
from fdagent.fleet.records import cancel_key, request_key, status_cell, status_key
from fdagent.ports import Clock, Ids, Store
from machines.request import REQUEST
from models.status import RequestFacts, RequestState, Status
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
        # One that is running already, from an attempt before this, is written all the same: whoever is about to make it
        # wait for that attempt's sake then meets another version. Should that have come first, it is to be started.
        for _ in range(2):
            running = self._mine(status_cell(self.store, self.request_id).read()[0])
            answer = self._commit("report" if running else "start", lambda _: {"job_id": job_id, "attempt": attempt})
            if not isinstance(answer, Refusal):
                return
        raise HandedOver(f"Request {self.request_id} is not this agent's to run: {answer}.")

    def cancelled(self) -> bool:
        """Is there a wish that it is cancelled? Then a failed attempt is its last.

        Raises:
            StoreError: Not known.
        """
        return self.store.read(cancel_key(self.request_id)) is not None

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
        answer = self._commit("report", lambda before: results(tables, self.agent, before))
        if isinstance(answer, Refusal):
            raise HandedOver(f"Request {self.request_id} is not this agent's any more: {answer}.")

    def end(self, event: str, tables: Mapping[str, Mapping[str, Any]], *, error: str, category: str) -> None:
        """After the job's row: succeed, fail or wait. A refusal is told: another's write came first."""
        why = {"error": error or None, "category": category or None, "to_be_tried_again": event == "wait"}
        answer = self._commit(event, lambda before: {**results(tables, self.agent, before), **why})
        if isinstance(answer, Refusal):
            self.told(f"The status of request {self.request_id} was left as it is: {answer}.")

    def _mine(self, status: Status | None) -> bool:
        return (
            status is not None
            and status.state is RequestState.RUNNING
            and (status.agent, status.instance) == (self.agent, self.instance)
        )

    def _commit(self, event: str, told: Callable[[Status | None], dict[str, Any]]) -> Committed[Status] | Refusal:
        def facts(record: Status | None) -> RequestFacts:
            offset = self.store.clock_offset()
            return RequestFacts(
                agent=self.agent,
                instance=self.instance,
                store_now=None if offset is None else self.clock.wall() + offset,
                request_file=self.store.read(request_key(self.request_id)) is not None,
                cancel_file=self.store.read(cancel_key(self.request_id)) is not None,
                **told(record),
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
