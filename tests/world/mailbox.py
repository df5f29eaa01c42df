"""Duties of an agent that serves requests, and what must hold of a request's status.

What a mailbox does with the production charts: meet the records, judge in the order of `POLL`, carry the first open event
out, run what it holds. The agents' records are written by the world itself as time goes on (`beats`): an agent beats
while its process lives and nobody has muted it.
"""

from functools import lru_cache
from typing import Any

from fdagent.commit import Committed, commit
from fdagent.stores.cell import StoreCell
from fdagent.stores.sightings import Sightings
from fdagent.stores.storeclock import store_now
from machines.request import POLL, REQUEST
from machines.slot import SLOT
from models import codec
from models.agent import AgentRecord, AgentState, Pipeline
from models.liveness import is_gone
from models.slot import DAY, Request, SlotFacts, deadline_of
from models.status import FINAL, RequestFacts, Status
from models.step import Move, Refusal, Step
from models.wish import Wish

from .process import Me, Violation
from .slots import request_cell
from .state import BASE, Kept, Monitor, State

ID = "r1"
STATUS, REQUEST_FILE, CANCEL_FILE = f"status/{ID}.json", f"requests/{ID}.json", f"cancel/{ID}.json"
TICK = 30.0
SPAN = 60.0
"""An agent is lost when it was seen unchanged for this long: two ticks."""
DEADLINE = 90.0
HORIZON = 210.0
"""By then the deadline has passed by more than the minute that others leave to the holder."""
MAX_HOLDS = 2


def instance(name: str, boot: int) -> str:
    """How the world names a start of an agent's daemon."""
    return f"{name}-{boot}"


def agent_body(agent: str, start: str, op: str, now: float, *, state: AgentState = AgentState.RUNNING) -> bytes:
    """An agent's record."""
    record = AgentRecord(
        name=agent,
        state=state,
        instance=start,
        op=op,
        env="dev",
        heartbeat_at=BASE + now,
        stale_after=BASE + now + SPAN,
        grace_seconds=0.0,
        status_seconds=TICK,
        pipeline=Pipeline(enabled=True, take_over=True, entities=("*",), allow_backfill=True),
    )
    return codec.dump(record.to_json())


def beats(state: State) -> None:
    """Every agent whose process lives, and that is not muted, writes its record."""
    for name, program in state.world.programs.items():
        proc = state.procs[name]
        if proc.node is not None and not state.ghost.get(("mute", name)):
            body = agent_body(program.agent, instance(name, proc.boot), f"beat{state.now:g}", state.now)
            key = f"agents/{program.agent}.json"
            state.records = dict(sorted((state.records | {key: Kept(body, f"{key}@{state.now:g}", 0.0)}).items()))


def beats_and_wish(state: State) -> None:
    """At the first tick somebody wants the request cancelled."""
    beats(state)
    if state.now == TICK:
        body = codec.dump(Wish(asked_by="a person").to_json())
        state.records = dict(sorted((state.records | {CANCEL_FILE: Kept(body, "wish", 0.0)}).items()))


def request_body(**changed: Any) -> bytes:
    """The request."""
    return codec.dump(Request(**changed).to_json())


@lru_cache(100_000)
def read_status(body: bytes) -> Status:
    """A status from its bytes."""
    return Status.from_json(codec.parse(body))


def status_cell(me: Me, key: str = STATUS) -> StoreCell[Status]:
    """Where a status lies."""
    return StoreCell(me.store, key, read_status, lambda status: codec.dump(status.to_json()))


def met(me: Me, agent: str) -> tuple[AgentRecord | None, float | None, float | None]:
    """An agent's record, and for how long it, and the instance it names, were seen unchanged."""
    seen = me.memory.setdefault("sightings", Sightings(me.clock))
    key, asked = f"agents/{agent}.json", me.clock.elapsed()
    blob = me.store.read(key)
    if blob is None:
        return None, None, None
    record = AgentRecord.from_json(codec.parse(blob.body))
    seen.seen(key, record.op, asked=asked)
    seen.seen(key + "#instance", record.instance or "", asked=asked)
    return record, seen.unchanged_for(key, record.op), seen.unchanged_for(key + "#instance", record.instance or "")


def facts(me: Me, status: Status | None) -> RequestFacts:
    """What one judgement needs, gathered now."""
    blob = me.store.read(REQUEST_FILE)
    request = None if blob is None else Request.from_json(codec.parse(blob.body))
    gone = False
    if status is not None and status.agent is not None and status.agent != me.agent:
        record, unchanged, started = met(me, status.agent)
        gone = is_gone(
            record,
            holder=status.instance,
            unchanged_seconds=unchanged,
            instance_seconds=started,
            serves_mailbox=None if record is None or record.pipeline is None else record.pipeline.enabled,
        )
    wished = me.store.read(CANCEL_FILE) is not None
    return RequestFacts(
        agent=me.agent,
        instance=instance(me.name, me.boot),
        holds_name=True,
        store_now=store_now(me.clock, me.store.clock_offset()),
        deadline=None if request is None else deadline_of(request, BASE),
        request_file=request is not None,
        cancel_file=wished,
        cancel_seen_seconds=_seen_for(me, CANCEL_FILE, wished),
        readable=request is not None,
        may_serve=not me.memory.get("unfit"),
        take_over=True,
        worker_free="job" not in me.memory,
        max_attempts=MAX_HOLDS,
        holder_gone=gone,
        has_job="job" in me.memory,
        worker_on_it="job" in me.memory,
        to_be_tried_again=bool(me.memory.get("again")),
        cannot_run_soon=bool(me.memory.get("unfit")),
        retention_seconds=DAY,
        id=ID,
        env="dev",
    )


def _seen_for(me: Me, key: str, there: bool) -> float:
    seen = me.memory.setdefault("sightings", Sightings(me.clock))
    if not there:
        return 0.0
    seen.seen(key, "there")
    return seen.unchanged_for(key, "there") or 0.0


def ask(me: Me, event: str) -> Committed[Status] | Refusal:
    """One event of the status; facts are gathered anew on every try."""
    return commit(
        REQUEST,
        status_cell(me),
        event,
        op=me.ids.new(),
        facts=lambda status: facts(me, status),
        clock=me.clock,
        ids=me.ids,
    )


def poll(me: Me) -> str | None:
    """Judge the request once, carry the first open event out."""
    status, _ = status_cell(me).read()
    if status is not None and status.state in FINAL:
        return "idle"
    known = facts(me, status)
    now = me.clock.wall()
    event = next(
        (event for event in POLL if isinstance(REQUEST.judge(event, Step(status, now, known, "judged")), Move)), None
    )
    if event is not None:
        answer = ask(me, event)
        if isinstance(answer, Committed):
            me.saw(event)
            if event in {"claim", "take_over", "adopt"}:
                me.memory["job"] = ID
                return "run"
        else:
            me.saw("conflict, then refused")
    me.clock.sleep(TICK)
    return "poll"


def run(me: Me) -> str | None:
    """Start what is held, begin its effect while it is ours, and say how it ended."""
    status, _ = status_cell(me).read()
    if status is not None and status.state == "running" and is_ours(me, status):
        me.memory["again"] = True
        ask(me, "wait")
        del me.memory["again"]
    ask(me, "start")
    # Refused where a cancel file keeps an adopted one from waiting: then it is still running, and this attempt ends it.
    status, _ = status_cell(me).read()
    if status is not None and status.state == "running" and is_ours(me, status):
        me.tell("effect", ID)
        _finish(me)
    else:
        me.saw("stood down")
    del me.memory["job"]
    return "poll"


def _finish(me: Me) -> None:
    if not me.memory.get("fails"):
        ask(me, "succeed")
        return
    del me.memory["fails"]
    me.memory.update(unfit=True, again=True)
    ask(me, "wait")
    del me.memory["again"]


def is_ours(me: Me, status: Status) -> bool:
    """Does it name this start of this agent? (The duty's own test, apart from the chart's guard.)"""
    return (status.agent, status.instance) == (me.agent, instance(me.name, me.boot))


def flaky(me: Me) -> None:
    """This agent's first attempt fails in a way that passes, and then it can't run the request any more."""
    me.memory["fails"] = True


def idle(me: Me) -> None:
    """The request has ended; so does this agent."""


def sweeping(me: Me) -> str | None:
    """Sweep what has ended, in its order: the request file first, the status last."""
    status, _ = status_cell(me).read()
    if status is not None and status.state not in FINAL:
        return "poll"
    request, _ = request_cell(me, ID).read()
    if status is None:
        return "poll" if request is not None else _wait(me)
    now = store_now(me.clock, me.store.clock_offset())
    known = SlotFacts(
        store_now=now, status_final=True, finished_at=status.finished_at, deadline=status.deadline, retention_seconds=DAY
    )
    if request is not None and isinstance(_sweep_request(me, known), Refusal):
        return _wait(me)
    if isinstance(ask(me, "sweep"), Committed):
        me.saw("swept")
    return _wait(me)


sweeping.__name__ = "idle"


def _sweep_request(me: Me, known: SlotFacts) -> Committed[Request] | Refusal:
    cell = request_cell(me, ID)
    return commit(SLOT, cell, "sweep", op=me.ids.new(), facts=lambda _: known, clock=me.clock, ids=me.ids)


def _wait(me: Me) -> str:
    me.clock.sleep(TICK)
    return "idle"


class Finals(Monitor):
    """P9: a final status never changes, a request is never held too often, and nobody begins an effect once it ended."""

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if not key.startswith("status/") or old is None or new is None:
            return
        was, now = read_status(old), read_status(new)
        if was.state in FINAL:
            raise Violation(f"{key} was {was.state} and became {now.state}")
        if len(now.holds) > MAX_HOLDS:
            raise Violation(f"{key} was held {len(now.holds)} times, {MAX_HOLDS} are allowed")
        if now.error and "Given up" in now.error and not all(agent in now.error for agent in now.holds):
            raise Violation(f"{key} was given up without naming everybody that held it")

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what != "effect":
            return
        status = status_of(state, f"status/{about[0]}.json")
        mine = instance(name, state.procs[name].boot)
        if status is None or status.state != "running" or status.instance != mine:
            raise Violation(f"{name} begins an effect of {about[0]}, which it does not run any more")
        if f"requests/{about[0]}.json" not in state.records:
            raise Violation(f"{name} begins an effect of {about[0]}, which was swept")


def status_of(state: State, key: str = STATUS) -> Status | None:
    """The status as it is in the store."""
    kept = state.records.get(key)
    return None if kept is None else read_status(kept.body)


def ended(state: State) -> bool:
    """Is the request final?"""
    status = status_of(state)
    return status is not None and status.state in FINAL

