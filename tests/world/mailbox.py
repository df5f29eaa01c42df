"""Agents that serve requests, and what must hold of a request's status (P3, P4, P9).

Each agent is one process: the production Mailbox polls, the production queue holds its job, RequestHold and the end of an
attempt (`Work._finish`) run it. The agents' own records are written by the world as time goes on (`beats`): an agent
beats while its process lives and nobody has muted it. `agents.py` is about those records.
"""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fdagent.config.schedules import Pipeline
from fdagent.errors import FdagentError, HandedOver, StoodDown
from fdagent.fleet.look import Me as Start
from fdagent.fleet.mailbox import Mailbox, Patience
from fdagent.fleet.records import cancel_key, dump, parser, request_key, status_key
from fdagent.fleet.serving import Serving
from fdagent.project.load import load_project
from fdagent.project.model import Project
from fdagent.project.scaffold import write_scaffold
from fdagent.queue.jobs import Worker
from fdagent.work.requesthold import RequestHold
from fdagent.work.runner import Agent as Runs
from fdagent.work.runner import End
from fdagent.work.worker import Retry, Work
from models.agent import AgentRecord, AgentState
from models.agent import Pipeline as Told
from models.job import Job
from models.slot import DAY, Request
from models.status import FINAL, Status
from models.wish import Wish

from .calls import Kept
from .landing import landing
from .process import Call, Me, Violation
from .scope import BASE, Monitor
from .state import State

ID = "r1"
STATUS, REQUEST_FILE, CANCEL_FILE = status_key(ID), request_key(ID), cancel_key(ID)
TICK = 30.0
SPAN = 60.0
"""An agent is lost when it was seen unchanged for this long: two ticks."""
DEADLINE = 90.0
HORIZON = 210.0
"""By then the deadline has passed by more than the minute that others leave to the holder."""
HALF_DAY = DAY / 2
CANCEL_WAIT = 60.0
"""After so long a wish is anybody's to carry out."""
MAX_HOLDS = 2
SERVES = Pipeline(enabled=True, environments=("dev",), take_over=True, claim="when_free")


@functools.cache
def project() -> Project:
    """The project that every agent has."""
    with tempfile.TemporaryDirectory() as folder:
        write_scaffold(Path(folder))
        return load_project(Path(folder))


def instance(name: str, boot: int) -> str:
    """How the world names a start of an agent's daemon."""
    return f"{name}-{boot}"


def agent_body(agent: str, start: str, op: str, now: float, *, state: AgentState = AgentState.RUNNING) -> bytes:
    """An agent's record."""
    return dump(
        AgentRecord(
            name=agent,
            state=state,
            instance=start,
            op=op,
            env="dev",
            heartbeat_at=BASE + now,
            stale_after=BASE + now + SPAN,
            grace_seconds=0.0,
            status_seconds=TICK,
            metadata_version=project().metadata_version,
            pipeline=Told(enabled=True, take_over=True, entities=("*",), allow_backfill=True, claim="when_free"),
        )
    )


def beats(state: State) -> None:
    """Every agent whose process lives, and that is neither muted nor frozen, writes its record."""
    for name, program in state.world.programs.items():
        proc = state.procs[name]
        if proc.node is not None and proc.stalled != "freeze" and not state.ghost.get(("mute", name)):
            body = agent_body(program.agent, instance(program.agent, proc.boot), f"beat{state.now:g}", state.now)
            put(state, f"agents/{program.agent}.json", body)
            state.ghost["beat", program.agent] = (instance(program.agent, proc.boot), state.now)


def beats_and_wish(state: State) -> None:
    """At the first tick somebody wants the request cancelled."""
    beats(state)
    if state.now == TICK:
        put(state, CANCEL_FILE, dump(Wish(asked_by="a person")))
        state.ghost["wished"] = state.now


def put(state: State, key: str, body: bytes) -> None:
    """A record is there, by somebody whose writes are not searched."""
    state.records = dict(sorted((state.records | {key: Kept(body, f"{key}@{state.now:g}", 0.0)}).items()))


class _Wishes:
    """Nobody stops the process: the world kills it."""

    def stopping(self) -> bool:
        return False

    def orphaned(self) -> bool:
        return False


def _built(me: Me) -> tuple[Mailbox, Work]:
    """The production objects of this process, made at its first duty."""
    if "mailbox" not in me.memory:
        start, jobs, place, pid = instance(me.agent, me.boot), me.queue(), me.processes.place(), me.processes.pid()
        me.memory["mailbox"] = Mailbox(
            "dev",
            me.store,
            Start(me.agent, start, me.machine),
            lambda: Serving(
                "dev", SERVES, project(), "another" if me.memory.get("unfit") else project().metadata_version
            ),
            lambda: True,
            lambda: 1 - len(jobs.running()) - jobs.due(["dev"], 2),
            lambda: False,
            jobs,
            Patience(TICK, MAX_HOLDS, DAY),
            me.clock,
            me.ids,
            lambda *_, **__: None,
            lambda: None,
            me.committed,
        )
        me.memory["work"] = Work(
            jobs,
            Runs(me.agent, start, me.machine, Path()),
            Worker(f"{me.agent}/1", place, pid, float(pid)),
            _Wishes(),
            me.clock,
            me.ids,
            me.processes,
            lambda: jobs.database,
            Retry(1.0, 1.0),
            audit=me.committed,
        )
    return me.memory["mailbox"], me.memory["work"]


def arrive(me: Me) -> None:
    """A daemon starts: its record names it from the next beat on; jobs that nobody runs any more come back."""
    _, work = _built(me)
    if me.boot:
        me.clock.sleep(me.memory.get("every", TICK))
        work.recover()


def poll(me: Me) -> str | None:
    """One poll of the mailbox, then the job that is due, if one is."""
    mailbox, work = _built(me)
    try:
        mailbox.tick()
    except FdagentError:
        me.saw("poll failed")
    if "job" not in me.memory:
        job = work.jobs.claim(work.who)
        if job is not None:
            me.memory["job"] = job
            return "run"
    status = mailbox.look.status(ID)
    if status is not None and status.record is not None and status.record.state in FINAL and "stays" not in me.memory:
        return "rest"
    me.clock.sleep(me.memory.get("every", TICK))
    return "poll"


def run(me: Me) -> str:
    """One attempt of a claimed job whose table needs no commit: start, check, end it."""
    return _run(me, lambda me, job, check: check(me))


def run_and_land(me: Me) -> str:
    """One attempt of a claimed job: start, land its table while it is ours, end it."""
    return _run(me, lambda me, job, check: landing(me, job.run_key, still_mine=check))


run_and_land.__name__ = "run"


def _run(me: Me, change: Callable[[Me, Job, Callable[[Me], None]], None]) -> str:
    job: Job = me.memory.pop("job")
    _, work = _built(me)
    hold = _hold(me, job)

    def check(_: Me) -> None:
        hold.check()
        me.tell("effect", job.run_key)

    tables: dict[str, Any] = {}
    try:
        hold.start(job.id, job.attempt)
        change(me, job, check)
        tables["t"] = {"state": "succeeded", "run_id": "run", "rows": 1}
        end = End(tables)
        if me.memory.pop("fails", None):
            me.memory["unfit"] = True
            end = End(tables, error="It failed in a way that passes.", category="Network", retryable=True)
    except HandedOver:
        me.saw("handed over")
        work._handed_over(job)
        return "poll"
    except StoodDown:
        return "poll"
    except FdagentError as err:
        end = End(tables, error=str(err), category=str(err.category), retryable=err.retryable)
    work._finish(job, end, hold)
    return "poll"


def _hold(me: Me, job: Job) -> RequestHold:
    start = instance(me.agent, me.boot)
    return RequestHold(me.store, "dev", job.run_key, me.agent, start, me.clock, me.ids, lambda _: None, me.committed)


def flaky(me: Me) -> None:
    """This agent's first attempt fails in a way that passes, and then it can't run the request any more."""
    me.memory["fails"] = True


def unfit(me: Me) -> None:
    """This agent has another version of the project than the promoted one."""
    me.memory["unfit"] = True


def slow(me: Me) -> None:
    """This agent polls twice a day."""
    me.memory["every"] = HALF_DAY


def stays(me: Me) -> None:
    """This agent goes on when the request has ended: it sweeps."""
    me.memory.update(every=HALF_DAY, stays=True)


def rest(me: Me) -> None:
    """The request has ended; so does this agent."""


AGENT = (arrive, poll, run, rest)
LANDING_AGENT = (arrive, poll, run_and_land, rest)


class Finals(Monitor):
    """P3, P4, P9: a final status never changes, also not by way of being swept too early; nothing is held too often, and
    whoever held it is named; what a live agent runs nobody else ends or takes; nobody begins an effect of what is not its
    own, has ended or was swept."""

    def wrote(self, state: State, key: str, old: bytes | None, new: bytes | None) -> None:
        if not key.startswith("status/") or new is None:
            return
        now = read_status(new)
        if now.state in FINAL:
            before = state.ghost.setdefault(("ended", key), str(now.state))
            if before != now.state and key.replace("status/", "requests/") in state.records:
                raise Violation(f"{key} ended {before}, and then {now.state}")
        if len(now.holds) > MAX_HOLDS:
            raise Violation(f"{key} was held {len(now.holds)} times, {MAX_HOLDS} are allowed")
        if now.error and "Given up" in now.error and not all(agent in now.error for agent in now.holds):
            raise Violation(f"{key} was given up without naming everybody that held it")
        if now.state == "expired" and key.replace("status/", "requests/") in state.records:
            self._expired(state, key, now)
        if old is not None:
            self._changed(state, key, read_status(old), now)

    @staticmethod
    def _expired(state: State, key: str, now: Status) -> None:
        if BASE + state.now < (now.deadline or 0.0):
            raise Violation(f"{key} expired {now.deadline - BASE - state.now:g} s before its deadline")

    def _changed(self, state: State, key: str, was: Status, now: Status) -> None:
        if was.state in FINAL:
            raise Violation(f"{key} was {was.state} and became {now.state}")

    def asked(self, state: State, name: str, call: Call) -> None:
        if call[:2] == ("list", "status/") and "wished" in state.ghost:
            boot, since, _ = state.ghost.get(("sees the wish", name), (-1, 0.0, 0.0))
            again = boot == state.procs[name].boot
            state.ghost["sees the wish", name] = (state.procs[name].boot, since if again else state.now, state.now)
        elif call[0] == "open":
            state.ghost.pop(("checked", name), None)
        elif call[0] == "commit" and not state.ghost.get(("checked", name)):
            raise Violation(
                f"{name} commits without having looked, since it read the table, whether the run is its own"
            )
        elif call[0] == "write" and call[1].startswith("status/"):
            there = state.records.get(call[1])
            if getattr(call[3], "etag", None) == (there.etag if there else None):
                self._judged(state, name, call[1], read_status(call[2]))

    @staticmethod
    def _judged(state: State, name: str, key: str, new: Status) -> None:
        """What is about to be written was judged at this very moment."""
        was, agent = status_of(state, key), state.world.programs[name].agent
        if was is not None and was.state == "running" and was.agent != agent:
            start, beat = state.ghost.get(("beat", was.agent), (None, 0.0))
            if start == was.instance and state.now - beat < SPAN:
                raise Violation(f"{name} makes {key} {new.state}, which {start} runs, and that beat just now")
        boot, since, looked = state.ghost.get(("sees the wish", name), (-1, 0.0, 0.0))
        anybodys = was is not None and (was.is_offered or BASE + state.now >= (was.deadline or 0.0) + CANCEL_WAIT)
        its_turn = looked - since >= CANCEL_WAIT or not anybodys
        if new.state == "expired" and boot == state.procs[name].boot and its_turn:
            raise Violation(f"{name} makes {key} expired, though it had seen that it should be cancelled")
        held = new.state == "accepted" and (was is None or len(new.holds) > len(was.holds))
        if held and agent == new.agent and state.now > state.ghost.get("wished", state.now) and not _adopts(was, new):
            raise Violation(f"{name} takes {key}, though somebody had wished it cancelled")

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what != "effect":
            return
        state.ghost["checked", name] = True
        status = status_of(state, status_key(about[0]))
        mine = instance(state.world.programs[name].agent, state.procs[name].boot)
        if status is None or status.state != "running" or status.instance != mine:
            raise Violation(f"{name} begins an effect of {about[0]}, which it does not run any more")
        if request_key(about[0]) not in state.records:
            raise Violation(f"{name} begins an effect of {about[0]}, which was swept")


def _adopts(was: Status | None, new: Status) -> bool:
    """A new start goes on with what its agent held; a wish is for the next poll."""
    return was is not None and was.agent == new.agent


@functools.lru_cache(100_000)
def read_status(body: bytes) -> Status:
    """A status from its bytes."""
    return parser(Status)(body)


def status_of(state: State, key: str = STATUS) -> Status | None:
    """The status as it is in the store."""
    kept = state.records.get(key)
    return None if kept is None else read_status(kept.body)


def ended(state: State) -> bool:
    """Is the request final?"""
    status = status_of(state)
    return status is not None and status.state in FINAL


def swept(state: State) -> bool:
    """Is nothing of the request left, or has it at least ended?"""
    return ended(state) or not {STATUS, REQUEST_FILE} & state.records.keys()


def request_body(**changed: Any) -> bytes:
    """The request."""
    return dump(Request(**changed))
