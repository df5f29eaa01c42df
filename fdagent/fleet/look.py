"""What one agent knows of one environment's mailbox and fleet: what it saw at its last poll, and what it watches.

Guarantees: how long something has stayed the same is counted by this reader's own clock (rule C4); what could not be
looked up is unknown. With `fresh`, a fact is read anew from the store, for the judgement right before a write. Writes
nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from fdagent.errors import BadRecord, NewerContract
from fdagent.fleet.folder import File, Folder
from fdagent.fleet.records import AGENTS, CANCELS, LEASES, REQUESTS, STATUSES, cancel_key, parser, request_key
from fdagent.fleet.serving import Resolved
from fdagent.ports import Clock, Store
from fdagent.stores.sightings import Sightings
from models.agent import AgentRecord
from models.ids import id_problem, shown
from models.lease import Lease, is_left_alone
from models.liveness import Liveness, gone_after_seconds, is_away, is_gone, is_lost, liveness, serves
from models.slot import OPEN_SECONDS, Request, deadline_of
from models.status import FINAL, Status
from models.times import reached
from models.wish import Wish


@dataclass(frozen=True, slots=True)
class Me:
    """This start of this agent."""

    agent: str
    instance: str
    host: str


def _bad_id(name: str) -> str:
    problem = id_problem(name)
    return f"The request id {shown(name)} {problem}." if problem else ""


@dataclass(slots=True)
class Look:
    """One environment as one agent sees it."""

    env: str
    store: Store
    me: Me
    clock: Clock
    open: set[str] = field(default_factory=set)
    """Ids of requests that have not ended."""
    ended: set[str] = field(default_factory=set)
    """Ids of requests whose status was new or changed at the last poll and is final."""
    _sightings: Sightings = field(init=False)
    _starts: Sightings = field(init=False)
    _requests: Folder[Request] = field(init=False)
    _statuses: Folder[Status] = field(init=False)
    _cancels: Folder[Wish] = field(init=False)
    _agents: Folder[AgentRecord] = field(init=False)
    _leases: Folder[Lease] = field(init=False)
    _first_seen: dict[str, float] = field(default_factory=dict)
    """By the store's clock: until that is known, nothing has a deadline of this reader's making."""
    _twins: frozenset[str] = frozenset()
    _looked_at: float = 0.0
    """When the agents were last asked for."""

    def __post_init__(self) -> None:
        self._sightings, self._starts = Sightings(self.clock), Sightings(self.clock)
        self._requests = Folder(self.store, REQUESTS, parser(Request), self.clock, problem=_bad_id)
        self._statuses = Folder(self.store, STATUSES, parser(Status), self.clock)
        self._cancels = Folder(self.store, CANCELS, Wish.from_body, self.clock, self._sightings)
        self._agents = Folder(self.store, AGENTS, parser(AgentRecord), self.clock, self._sightings)
        self._leases = Folder(self.store, LEASES, parser(Lease), self.clock, self._sightings)

    def poll(self) -> None:
        """Look at everything once.

        Raises:
            StoreError: It could not all be looked at.
        """
        # Agents last: whoever was announced before a request was posted is known when that is judged.
        folders = (self._leases, self._cancels, self._requests, self._statuses, self._agents)
        for folder in folders:
            self._looked_at = self.clock.elapsed()
            folder.poll()
        for name, agent in self._agents.files.items():
            if agent.record is not None and agent.record.instance is not None:
                self._starts.seen(name, agent.record.instance)
        changed = self._requests.changed | self._statuses.changed
        for name in changed:
            self._place(name)
        self.ended = {name for name in self._statuses.changed if self._is_final(name)}
        now = self.store_now()
        for name in self.open:
            if now is not None:
                self._first_seen.setdefault(name, now)
            file = self._requests.files.get(name)
            if file is not None and file.record is None:
                self._sightings.seen(file.key, file.etag)
        if changed:
            self._twins = frozenset(self._later_twins())
        for folder in folders:
            folder.noted()

    def _place(self, name: str) -> None:
        known = name in self._requests.files or name in self._statuses.files
        status = self._statuses.files.get(name)
        if known and not self._is_final(name) and not (status is not None and status.record is None):
            self.open.add(name)
            return
        self.open.discard(name)
        if not known:
            self._first_seen.pop(name, None)

    def _is_final(self, name: str) -> bool:
        status = self._statuses.files.get(name)
        return status is not None and status.record is not None and status.record.state in FINAL

    def _later_twins(self) -> Iterator[str]:
        """Of ids equal but for case, those nobody has taken: all but the first by byte order, or all if one has a status."""
        unclaimed = [name for name in sorted(self.open) if name not in self._statuses.files]
        first = {name.casefold(): name for name in self._statuses.files} if unclaimed else {}
        for name in unclaimed:
            if first.setdefault(name.casefold(), name) != name:
                yield name

    def strange(self) -> frozenset[str]:
        """Keys of files whose names no request may have."""
        return self._requests.strange | self._cancels.strange

    def store_now(self) -> float | None:
        """The store's clock, in epoch seconds; None when its offset is not known."""
        offset = self.store.clock_offset()
        return None if offset is None else self.clock.wall() + offset

    def request(self, name: str, *, fresh: bool) -> File[Request] | None:
        """The request's file; None when there is none."""
        known = self._requests.files.get(name)
        if not fresh or id_problem(name):
            return known
        blob = self.store.read(request_key(name))
        if blob is None or (known is not None and blob.etag == known.etag):
            return None if blob is None else known
        return self._requests.met(name, request_key(name), blob)

    def status(self, name: str) -> File[Status] | None:
        """The status as last seen."""
        return self._statuses.files.get(name)

    def finals(self) -> Iterator[tuple[str, Status]]:
        """Every request that has ended, with its status."""
        for name, file in list(self._statuses.files.items()):
            if file.record is not None and file.record.state in FINAL:
                yield name, file.record

    def orphan_cancels(self) -> Iterator[str]:
        """Cancel files that belong to nothing."""
        there = self._requests.files.keys() | self._statuses.files.keys()
        return iter([name for name in self._cancels.files if name not in there])

    def cancelled(self, name: str, *, fresh: bool) -> bool:
        """Is there a cancel file?"""
        return self.store.read(cancel_key(name)) is not None if fresh else name in self._cancels.files

    def cancel_seen_seconds(self, name: str) -> float:
        """For how long the cancel file was seen."""
        file = self._cancels.files.get(name)
        return 0.0 if file is None else self._sightings.unchanged_for(file.key, file.etag) or 0.0

    def unreadable_seconds(self, name: str) -> float:
        """For how long the same unreadable request file was seen; one for newer versions is left to them."""
        file = self._requests.files.get(name)
        if file is None or file.record is not None or file.newer:
            return 0.0
        return self._sightings.unchanged_for(file.key, file.etag) or 0.0

    def is_twin(self, name: str) -> bool:
        """Does another open request have this id but for case, and goes first?"""
        return name in self._twins

    def due_at(self, name: str) -> float:
        """When it was due, or asked for, or first seen."""
        file = self._requests.files.get(name)
        record = None if file is None else file.record
        told = None if record is None else record.due_at if record.due_at is not None else record.submitted_at
        seen = self._first_seen.get(name, 0.0)
        return seen if told is None else min(told, seen)

    def deadline(self, name: str, request: Request | None) -> float | None:
        """When it expires; None when that is not known."""
        seen = self._first_seen.get(name)
        if seen is None or name not in self._requests.files:
            return None
        return seen + OPEN_SECONDS if request is None else deadline_of(request, seen)

    def is_over(self, name: str) -> bool:
        """Did nobody take it before its deadline?"""
        file, now = self._requests.files.get(name), self.store_now()
        if file is None or now is None or name in self._statuses.files:
            return False
        return reached(self.deadline(name, file.record), now)

    def others_alive(self) -> bool:
        """Does another agent live here?"""
        return any(liveness(record, unchanged) is Liveness.ALIVE for record, unchanged in self._others())

    def _others(self) -> Iterator[tuple[AgentRecord, float | None]]:
        """The other agents' records, with how long each was seen unchanged."""
        for name, file in self._agents.files.items():
            if name != self.me.agent and file.record is not None:
                yield file.record, self._sightings.unchanged_for(file.key, file.etag)

    def left_alone(self, *, holds_name: bool) -> dict[str, str]:
        """Tables whose leases nobody is behind, each with the op of the version that was watched.

        Args:
            holds_name: Does this start hold its agent's name: are leases of that name and of another start earlier ones?
        """
        left = {}
        for file in self._leases.files.values():
            lease = file.record
            if lease is None or not lease.op:
                continue
            gone = self._is_lost(lease) or (holds_name and self._is_older_self(lease))
            if gone and is_left_alone(lease, self._sightings.unchanged_for(file.key, file.etag)):
                left[lease.table] = lease.op
        return left

    def _is_older_self(self, lease: Lease) -> bool:
        return lease.agent == self.me.agent and lease.instance not in (None, self.me.instance)

    def _is_lost(self, lease: Lease) -> bool:
        """Is the very start of the agent that took it lost?"""
        file = self._agents.files.get(lease.agent or "")
        if file is None or file.record is None or lease.agent == self.me.agent:
            return False
        same = lease.instance is not None and file.record.instance == lease.instance
        return same and is_lost(file.record, self._sightings.unchanged_for(file.key, file.etag))

    def nobody_else(self, request: Request, resolved: Resolved | None) -> bool:
        """Is it certain that no other agent that may live would ever serve it? The version passes by itself."""
        unreadable = any(file.record is None for file in self._agents.files.values())
        return not unreadable and all(
            is_away(record, unchanged) or self._serves(record, request, resolved) is False
            for record, unchanged in self._others()
        )

    def _serves(self, record: AgentRecord, request: Request | None, resolved: Resolved | None) -> bool | None:
        return serves(
            record,
            env=self.env,
            entities=None if resolved is None else resolved.entities,
            backfill=request is not None and request.backfill is not None,
            version=None,
        )

    def holder_gone(self, status: Status, *, fresh: bool) -> bool:
        """May what this status's agent holds be taken from it?"""
        if status.agent is None:
            return False
        file = self._agents.files.get(status.agent)
        if fresh:
            file = self._agent_now(status.agent)
        record = None if file is None else file.record
        if file is None or record is None:
            return False
        return is_gone(
            record,
            holder=status.instance,
            unchanged_seconds=self._sightings.unchanged_for(file.key, file.etag),
            instance_seconds=self._starts.unchanged_for(status.agent, record.instance or ""),
            # Not whether it would take this very request now: what a live agent runs is its own, whatever was promoted.
            serves_mailbox=self._serves(record, None, None),
        )

    def next_lapse(self) -> float:
        """When, by `elapsed`, the next holder of an open request has been silent long enough; infinite when none will."""
        statuses = [self._statuses.files.get(name) for name in self.open]
        holders = {file.record.agent for file in statuses if file is not None and file.record is not None}
        lapses = map(self._lapse_of, holders - {None, self.me.agent})
        # What was over before the agents were listed has been judged; what was over since has not.
        return min((at for at in lapses if at > self._looked_at), default=math.inf)

    def _lapse_of(self, agent: str | None) -> float:
        file = self._agents.files.get(agent or "")
        if file is None or file.record is None:
            return math.inf
        met, after = self._sightings.met_at(file.key, file.etag), gone_after_seconds(file.record)
        return math.inf if met is None or after is None else met + after

    def _agent_now(self, name: str) -> File[AgentRecord] | None:
        """An agent's record, read right before a judgement; that it was met now counts."""
        asked = self.clock.elapsed()
        key = f"{AGENTS}{name}.json"
        blob = self.store.read(key)
        if blob is None:
            return None
        self._sightings.seen(key, blob.etag, asked=asked)
        try:
            record = parser(AgentRecord)(blob.body)
        except (BadRecord, NewerContract):
            return None
        self._starts.seen(name, record.instance or "", asked=asked)
        return File(key, blob.etag, record)
