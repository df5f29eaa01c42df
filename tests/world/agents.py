"""Daemons that hold one name, through the production Presence, and P7's second half: at most one start of an agent keeps
beating.
"""

import functools
from typing import Any

from fdagent.fleet.presence import Presence, Standing
from fdagent.fleet.records import parser
from models.agent import AgentRecord, AgentState

from .process import Me, Violation
from .state import Monitor, State

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


def nothing(me: Me) -> None:
    """A machine that is not there yet: a clone takes its place."""


@functools.lru_cache(50_000)
def _read(body: bytes) -> AgentRecord:
    return parser(AgentRecord)(body)


class OneBeats(Monitor):
    """A start beats only over a version that it wrote, or whose writer it is a copy of; over another's it only announces."""

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what == "ops":
            state.ghost["ops", name] = frozenset(about)

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if old is None or new is None or not key.startswith("agents/"):
            return
        was, now = _read(old), _read(new)
        by, before = (record.op.rpartition("x")[0] for record in (now, was))
        announced = now.started_at == now.heartbeat_at and now.instance != was.instance
        if by != before and not announced and was.op not in state.ghost.get(("ops", by[:-1]), ()):
            raise Violation(f"{by} beats over what {before} wrote, so two starts of one agent keep beating")
