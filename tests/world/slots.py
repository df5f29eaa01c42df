"""Duties of an agent that posts the slots of a shared schedule, and P11: never early, never late, each slot once.

The duty asks for the slot before, this one and the next one; the chart must let it post only what is due.
"""

from typing import Any

from fdagent.commit import Committed, commit
from fdagent.stores.cell import StoreCell
from fdagent.stores.storeclock import store_now
from machines.slot import SLOT
from models import codec
from models.slot import Request, SlotFacts, every, slot_deadline, slot_id, slot_name
from models.step import Refusal

from .process import Me, Violation
from .state import BASE, Monitor, State

MINUTES = 60
INTERVAL = MINUTES * 60.0
TICK = INTERVAL / 2


def request_cell(me: Me, request_id: str) -> StoreCell[Request]:
    """Where a request lies."""
    return StoreCell(
        me.store,
        f"requests/{request_id}.json",
        lambda body: Request.from_json(codec.parse(body)),
        lambda request: codec.dump(request.to_json()),
    )


def post_due(me: Me) -> str:
    """Post what is due, and try what is not."""
    due, following = every(MINUTES, store_now(me.clock, me.store.clock_offset()))
    for slot in (due, following, due - INTERVAL):
        if isinstance(post(me, slot), Committed):
            me.saw("posted")
            me.tell("posted", slot)
        else:
            me.saw("not posted")
    me.clock.sleep(TICK)
    return "post_due"


def post(me: Me, due: float, schedule: str = "hourly") -> Committed[Request] | Refusal:
    """Ask for one slot."""
    deadline = slot_deadline(due, due + INTERVAL)
    new = Request(schedule=schedule, slot=slot_name(due), due_at=due, deadline=deadline)

    def facts(_: Request | None) -> SlotFacts:
        me.tell("judged", due)
        return SlotFacts(new=new, store_now=store_now(me.clock, me.store.clock_offset()))

    cell = request_cell(me, slot_id(schedule, due))
    return commit(SLOT, cell, "post", op=me.ids.new(), facts=facts, clock=me.clock, ids=me.ids)


class OnTime(Monitor):
    """P11. A write that was on its way may land later; it must have been judged in its time."""

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what == "judged":
            state.ghost["judged", name, about[0]] = state.now
        elif what == "posted":
            at = BASE + state.ghost["judged", name, about[0]]
            if not about[0] <= at < about[0] + INTERVAL:
                raise Violation(
                    f"{name} posts the slot of {slot_name(about[0])} {at - about[0]:+g} s from its due time"
                )

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if key.startswith("requests/") and old is not None and new is not None:
            raise Violation(f"{key} changed after it was posted")
