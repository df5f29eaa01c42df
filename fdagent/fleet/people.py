"""What a person does to the records that machines share: break a lease, forget an agent.

Guarantees
- Each is one transition of the record's chart; where a guard says no it is refused in the guard's words.
- A lease is broken only in the very version that was named: one that was taken since stays.
- An agent that did not say goodbye is forgotten only after this process itself has watched it silent for its whole span
  and grace (rule C4); its first beat ends the watch. Ages and times in records decide nothing.

Does not check who the person is: the store's rights do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from fdagent.commit import Audit, Committed, commit
from fdagent.errors import NotFound, Refused
from fdagent.fleet.presence import agent_cell, agent_key
from fdagent.fleet.records import STATUSES, lease_cell, lease_key, read_all
from fdagent.ports import Clock, Ids, Store
from fdagent.stores.sightings import Sightings
from fdagent.stores.watched import WatchedCell
from machines.agent import AGENT
from machines.lease import LEASE
from models.agent import AgentFacts, AgentRecord, lost
from models.ids import MAX_LENGTH, check_id
from models.lease import Lease, LeaseFacts
from models.liveness import LONGEST_GRACE_SECONDS, is_lost, lost_after_seconds
from models.status import OPEN, Status
from models.step import Refusal

LONGEST_TABLE = 2 * MAX_LENGTH + 1
"""Characters of `<layer>.<table>`."""
POLL_SECONDS = 1.0
LONGEST_WATCH_SECONDS = 86_400.0 + LONGEST_GRACE_SECONDS
"""The longest that agent.toml allows; a record that says more is not watched."""

Watching = Callable[[AgentRecord, float], None]
"""Told that a watch begins, of which record, and for how many seconds at most."""


def break_lease(store: Store, table: str, *, op: str, clock: Clock, ids: Ids, audit: Audit | None = None) -> Lease:
    """Free a table whose holder is known not to come back; the lease that was broken.

    Args:
        store: The environment's control root.
        table: `<layer>.<table>`, or `_maintenance`.
        op: The op of the version to break.
        clock: Waits between tries.
        ids: Names the write, jitters the waits.
        audit: Told when it is broken.

    Raises:
        BadId: No table is called so.
        NotFound: Nobody holds it.
        Refused: Another version is there.
        GaveUp, StoreError: It is not known to be broken.
    """
    cell = lease_cell(store, check_id(table, "table", longest=LONGEST_TABLE))
    seen: list[Lease | None] = []

    def facts(lease: Lease | None) -> LeaseFacts:
        seen.append(lease)
        return LeaseFacts(by_a_person=True, named_op=op)

    key = lease_key(table)
    answer = commit(LEASE, cell, "break", op=ids.new(), facts=facts, clock=clock, ids=ids, key=key, audit=audit)
    lease = seen[-1]
    if lease is None:
        raise NotFound(f"Nobody holds a lease of {table}.", fix="`fdagent lease list ENV` shows those that are held.")
    if isinstance(answer, Refusal):
        raise Refused(
            f"The lease of {table} was not broken: {answer.words}.",
            fix="Look again with `fdagent lease list ENV`, and name the op it shows now.",
        )
    return lease


def forget_agent(
    store: Store, name: str, *, clock: Clock, ids: Ids, watching: Watching, audit: Audit | None = None
) -> AgentRecord:
    """Delete the record of an agent that is gone for good; the record that was deleted.

    Takes as long as an agent that didn't say goodbye has to be watched.

    Args:
        store: The environment's control root.
        name: The agent.
        clock: By which it is watched.
        ids: Names the write, jitters the waits.
        watching: Told that a watch begins.
        audit: Told when it is forgotten.

    Raises:
        BadId: No agent is called so.
        NotFound: No such record.
        Refused: It lives, or an open request names it.
        GaveUp, StoreError: It is not known to be forgotten.
    """
    forgetting = _Forgetting(store, check_id(name, "agent"), clock, ids, audit)
    answer = forgetting.ask()
    if isinstance(answer, Refusal) and {check.guard for check in answer.failed} == {lost.name}:
        _watch(forgetting.cell, clock, watching)
        answer = forgetting.ask()
    if forgetting.record is None:
        raise NotFound(f"There is no record of an agent {name}.", fix="`fdagent agents ENV` lists them.")
    if isinstance(answer, Refusal):
        raise Refused(
            f"Agent {name} was not forgotten: {answer.words}.",
            fix="Stop it first with `fdagent drain` on its machine; `fdagent agents ENV` shows what it says.",
        )
    return forgetting.record


@dataclass(slots=True)
class _Forgetting:
    """The wish to forget one agent, over one watched record."""

    store: Store
    name: str
    clock: Clock
    ids: Ids
    audit: Audit | None
    record: AgentRecord | None = None
    """As it was judged last."""
    cell: WatchedCell[AgentRecord] = field(init=False)

    def __post_init__(self) -> None:
        inner = agent_cell(self.store, self.name)
        self.cell = WatchedCell(inner, agent_key(self.name), Sightings(self.clock), self.clock)

    def ask(self) -> Committed[AgentRecord] | Refusal:
        """Judge it, and delete the record if nothing speaks against it."""
        op, key = self.ids.new(), agent_key(self.name)
        return commit(
            AGENT,
            self.cell,
            "forget",
            op=op,
            facts=self._facts,
            clock=self.clock,
            ids=self.ids,
            key=key,
            audit=self.audit,
        )

    def _facts(self, record: AgentRecord | None) -> AgentFacts:
        self.record = record
        return AgentFacts(
            by_a_person=True,
            holder_lost=is_lost(record, self.cell.unchanged_seconds),
            open_requests=names_open_request(self.store, self.name),
        )


def _watch(cell: WatchedCell[AgentRecord], clock: Clock, watching: Watching) -> None:
    """Look until it is lost, beats, or is gone."""
    record, _ = cell.read()
    span = None if record is None else lost_after_seconds(record)
    if record is None or span is None or span > LONGEST_WATCH_SECONDS:
        return
    watching(record, span)
    pause = min(POLL_SECONDS, span / 10)
    until = clock.elapsed() + span + 2 * pause
    while clock.elapsed() < until:
        clock.sleep(pause)
        record, _ = cell.read()
        # Another version was met just now, so it is unchanged for no time at all: a beat.
        if not cell.unchanged_seconds or is_lost(record, cell.unchanged_seconds):
            return


def names_open_request(store: Store, agent: str) -> bool | None:
    """Does a request that has not ended name this agent? None: one of them can't be read."""
    found = read_all(store, STATUSES, Status)
    if any(one.record is not None and one.record.state in OPEN and one.record.agent == agent for one in found):
        return True
    return None if any(one.record is None for one in found) else False
