"""Daemons that hold one name, through the production Presence, and P7's second half: at most one start of an agent keeps
beating.
"""

import functools
from typing import Any

from fdagent.fleet.presence import Presence, Standing
from fdagent.fleet.records import parser
from models.agent import AgentRecord, AgentState

from .process import Call, Me, Violation
from .scope import Monitor
from .state import State

KEY = "agents/etl.json"
TICK = 30.0
SPAN = 90.0


def _presence(me: Me) -> Presence:
    """This start's record, made at its first tick."""
    if "presence" not in me.memory:
        place, pid = me.processes.place(), me.processes.pid()
        record = AgentRecord(
            name="etl",
            state=AgentState.RUNNING,
            instance=f"{me.name}-{me.boot}",
            boot=place,
            pid=pid,
            process_started_at=float(pid),
            status_seconds=TICK,
        )
        me.memory["presence"] = Presence(
            me.store,
            "dev",
            "etl",
            f"{me.name}-{me.boot}",
            lambda: record,
            SPAN,
            me.clock,
            me.ids,
            me.processes,
            lambda _: None,
            me.committed,
        )
    return me.memory["presence"]


def attend(me: Me) -> str | None:
    """Announce, watch, beat; one that was refused or replaced ends."""
    presence = _presence(me)
    me.tell("ops", *presence._ops)
    presence.tick()
    me.saw(str(presence.standing))
    if presence.standing in (Standing.REFUSED, Standing.REPLACED):
        return None
    me.clock.sleep(TICK)
    return "attend"


def arrive(me: Me) -> str | None:
    """Wait until it is announced."""
    presence = _presence(me)
    presence.tick()
    if presence.standing is Standing.PRESENT:
        return None
    me.clock.sleep(TICK)
    return "arrive"


def drain(me: Me) -> None:
    """It takes no new work from now on."""
    _presence(me).drain()


def nothing(me: Me) -> None:
    """A machine that is not there yet: a clone takes its place."""


@functools.lru_cache(50_000)
def read_agent(body: bytes) -> AgentRecord:
    return parser(AgentRecord)(body)


class OneBeats(Monitor):
    """A start beats only over a version that it wrote, or whose writer it is a copy of. Over another's it only announces,
    and not while that one lives and beats."""

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what == "ops":
            state.ghost["ops", name] = frozenset(about)

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if new is None or not key.startswith("agents/"):
            return
        state.ghost["beat at"] = state.now
        if old is None:
            return
        was, now = read_agent(old), read_agent(new)
        by, before = _writer(now), _writer(was)
        announced = now.started_at == now.heartbeat_at and now.instance != was.instance
        if by != before and not announced and was.op not in state.ghost.get(("ops", by[:-1]), ()):
            raise Violation(f"{by} beats over what {before} wrote, so two starts of one agent keep beating")

    def asked(self, state: State, name: str, call: Call) -> None:
        kept = state.records.get(KEY)
        if call[0] != "write" or kept is None or getattr(call[3], "etag", None) != kept.etag:
            return
        by, before = _writer(read_agent(call[2])), _writer(read_agent(kept.body))
        old = state.procs[before[:-1]]
        lives = old.node is not None and old.boot == int(before[-1]) and state.now - state.ghost["beat at"] < 2 * TICK
        if (
            by[:-1] != before[:-1]
            and lives
            and read_agent(kept.body).state == AgentState.RUNNING
            and state.world.scope.clones == {}
        ):
            raise Violation(
                f"{by} takes the name of {before}, which lives and beat {state.now - state.ghost['beat at']:g} s ago"
            )


def _writer(record: AgentRecord) -> str:
    """Which start wrote it: the ids of the world tell."""
    return record.op.rpartition("x")[0]
