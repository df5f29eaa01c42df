"""Duties of a daemon that holds a name, and P7's second half: at most one start of an agent keeps beating."""

from dataclasses import replace
from typing import Any

from fdagent.commit import Committed, commit
from fdagent.stores.cell import StoreCell
from fdagent.stores.sightings import Sightings
from machines.agent import AGENT
from models import codec
from models.agent import AgentFacts, AgentRecord, AgentState
from models.liveness import is_lost, is_silent
from models.place import process_gone
from models.step import Refusal

from .process import Me, Violation
from .state import Monitor, State

KEY = "agents/etl.json"
TICK = 30.0
SPAN = 90.0


class _Watched(StoreCell[AgentRecord]):
    """The agent's record; each read is a sighting."""

    def __init__(self, me: Me) -> None:
        super().__init__(
            me.store,
            KEY,
            lambda body: AgentRecord.from_json(codec.parse(body)),
            lambda record: codec.dump(record.to_json()),
        )
        self.me = me

    def read(self) -> tuple[AgentRecord | None, str]:
        asked = self.me.clock.elapsed()
        record, tag = super().read()
        if record is not None:
            self.me.memory.setdefault("sightings", Sightings(self.me.clock)).seen(KEY, record.op, asked=asked)
        return record, tag


def ask(me: Me, event: str) -> Committed[AgentRecord] | Refusal:
    """One event of the agent's record."""
    op = me.ids.new()
    me.memory.setdefault("ops", set()).add(op)
    start = me.memory.setdefault("instance", f"{me.name}-{me.boot}")

    def facts(record: AgentRecord | None) -> AgentFacts:
        unchanged = None if record is None else me.memory["sightings"].unchanged_for(KEY, record.op)
        place, pid = me.processes.place(), me.processes.pid()
        new = AgentRecord(
            name="etl", state=AgentState.RUNNING, instance=start, boot=place, pid=pid, process_started_at=float(pid)
        )
        return AgentFacts(
            instance=start,
            ops=frozenset(me.memory["ops"]),
            holder_lost=is_lost(record, unchanged),
            process_gone=record is not None and process_gone(record, place=place, started_at=me.processes.started_at),
            silent=is_silent(record, unchanged),
            new=replace(new, status_seconds=TICK, started_at=None if record is None else record.started_at),
            stale_seconds=SPAN,
        )

    return commit(AGENT, _Watched(me), event, op=op, facts=facts, clock=me.clock, ids=me.ids)


def announce(me: Me) -> str | None:
    """Take the name, or watch whether somebody beats under it."""
    if isinstance(ask(me, "announce"), Committed):
        me.saw("announced")
        return None
    me.saw("watched")
    me.clock.sleep(TICK)
    return "announce"


def beat(me: Me) -> str | None:
    """Beat until replaced."""
    me.clock.sleep(TICK)
    if isinstance(ask(me, "beat"), Committed):
        return "beat"
    me.saw("replaced")
    return None


def nothing(me: Me) -> None:
    """A machine that is not there yet: a clone takes its place."""


class OneBeats(Monitor):
    """A start beats only over a version that it wrote itself; a version by another is only announced over."""

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if old is None or new is None or not key.startswith("agents/"):
            return
        was, now = (AgentRecord.from_json(codec.parse(body)) for body in (old, new))
        by, before = now.op.rpartition("x")[0], was.op.rpartition("x")[0]
        if by != before and now.instance == was.instance:
            raise Violation(f"{by} beats over what {before} wrote, so two starts of one agent keep beating")

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None: ...
