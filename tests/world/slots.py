"""Agents that post the slots of a shared schedule through the production Posting, and P11: never early, never late, each
slot once, however far an agent's own clock is off.
"""

from fdagent.config.schedules import Schedule
from fdagent.errors import FdagentError
from fdagent.fleet.records import REQUESTS, parser, request_key
from fdagent.fleet.slots import Posting
from models.slot import Request, slot_deadline, slot_id

from .process import Call, Me, Violation
from .scope import BASE, Monitor
from .state import State

MINUTES = 60
INTERVAL = MINUTES * 60.0
TICK = INTERVAL / 2
HOURLY = Schedule(id="hourly", env="dev", every_minutes=float(MINUTES), shared=True)


def post(me: Me) -> str:
    """Post what is due, then wait for half an interval."""
    if "posting" not in me.memory:
        tell = lambda *_, **__: None  # noqa: E731  # nobody listens
        me.memory["posting"] = Posting(
            "dev",
            me.store,
            lambda: (HOURLY,),
            lambda slot: None,
            me.clock,
            me.ids,
            tell,
            me.committed,
        )
    try:
        me.memory["posting"].tick()
    except FdagentError:
        me.saw("post failed")
    me.clock.sleep(TICK)
    return "post"


class OnTime(Monitor):
    """P11. A write that was on its way may land later; it must have been judged in its time."""

    def asked(self, state: State, name: str, call: Call) -> None:
        if call[0] != "write" or not call[1].startswith(REQUESTS):
            return
        due = parser(Request)(call[2]).due_at or 0.0
        at = BASE + state.now
        if not due <= at < slot_deadline(due, due + INTERVAL):
            raise Violation(f"{name} posts {call[1]} {at - due:+g} s from its due time")

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if not key.startswith(REQUESTS) or new is None:
            return
        if old is not None:
            raise Violation(f"{key} changed after it was posted")
        due = parser(Request)(new).due_at
        if state.ghost.setdefault(("posted", due), key) != key:
            raise Violation(f"{key} and {state.ghost['posted', due]} are the same slot")


def posted(state: State) -> bool:
    """Is the slot of this interval there?"""
    due = BASE + state.now // INTERVAL * INTERVAL
    return request_key(slot_id(HOURLY.id, due)) in state.records
