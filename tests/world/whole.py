"""Whole agents: on each machine a daemon with its duties and the workers that it starts, all on one table (P7, P8).

The daemon gives the production Presence, Recovery, Mailbox (with its sweeping) and Staffing their turns; a worker claims a
job, begins its request, waits for the table's lease, keeps claim and lease, lands, and ends the attempt, each with the
production object. Processes are started, reaped and ended through the world, so a worker outlives its daemon until it
notices. A local job of each agent and one request want the same table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdagent.daemon.agent import Beating
from fdagent.daemon.duties import Recovery, Staffing, Turns
from fdagent.errors import FdagentError, HandedOver, StoodDown
from fdagent.fleet.look import Me as Start
from fdagent.fleet.mailbox import Mailbox, Patience
from fdagent.fleet.presence import Presence, Standing
from fdagent.fleet.records import request_key, status_key
from fdagent.fleet.serving import Serving
from fdagent.queue.jobs import Worker
from fdagent.stores.sightings import Sightings
from fdagent.work.leases import Holder, TableLease
from fdagent.work.requesthold import RequestHold
from fdagent.work.runner import Agent as Runs
from fdagent.work.runner import End, Runner
from fdagent.work.worker import Claimed, Retry, Work
from models.agent import AgentRecord, AgentState
from models.agent import Pipeline as Told
from models.job import FINAL, Job
from models.slot import DAY
from models.status import FINAL as FINAL_STATUS
from models.step import Refusal

from . import mailbox
from .freeze import Port
from .jobs import rows_of
from .landing import landing
from .process import Me, Violation
from .scope import BASE
from .state import State

TICK = 10.0
BEAT = 30.0
STALE = 60.0
LEASE = 60.0
"""Of a claim and of the table."""
PAUSE = 150.0
"""Past every span."""
TABLE = "t"
REQUESTED_AT = {"r1": 0.0, "r2": 120.0, "r3": 240.0, "r4": 360.0}
OPEN_FOR = 400.0
"""When each request is posted, and how long it may take."""
CONCURRENCY = 1
PIPELINE = "pipeline"


def quiet(*_: Any, **__: Any) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A worker that ended."""

    label: str
    pid: int
    code: int = 0
    how: str = "ended"


class SimCrew(Port):
    """The workers that this daemon started."""

    def __init__(self, me: Me) -> None:
        self._me = me
        self._pids: dict[str, int] = {}

    def start(self, label: str) -> int:
        pid: int | None = self._me.ask(("start",))
        if pid is None:
            raise OSError("no room for another process")
        self._pids[label] = pid
        return pid

    def pids(self) -> dict[str, int]:
        return dict(self._pids)

    def ended(self) -> Sequence[Gone]:
        gone = [Gone(label, pid) for label, pid in self._pids.items() if self._me.processes.started_at(pid) is None]
        for one in gone:
            del self._pids[one.label]
        return gone

    def fate(self, pid: int) -> str:
        return "" if self._me.processes.started_at(pid) is not None else "ended"

    def ask_to_stop(self) -> None: ...

    def kill(self, label: str, why: str = "") -> None:
        self._me.ask(("kill", self._pids[label]))


class Wishes:
    """A worker ends with its daemon; nobody asks it to stop."""

    def __init__(self, me: Me) -> None:
        self._me = me

    def stopping(self) -> bool:
        return self.orphaned()

    def orphaned(self) -> bool:
        answer: bool = self._me.ask(("orphaned",))
        return answer


def daemon(me: Me) -> str:
    """Give every due duty its turn."""
    if "turns" not in me.memory:
        me.memory["turns"] = _turns(me, mailbox.instance(me.agent, me.boot))
    me.clock.sleep(max(me.memory["turns"].tick(), TICK))
    return "daemon"


def _turns(me: Me, instance: str) -> Turns:
    jobs, version = me.queue(), mailbox.project().metadata_version
    record = AgentRecord(
        name=me.agent,
        state=AgentState.RUNNING,
        instance=instance,
        boot=me.processes.place(),
        pid=me.processes.pid(),
        process_started_at=float(me.processes.pid()),
        grace_seconds=0.0,
        status_seconds=BEAT,
        env="dev",
        metadata_version=version,
        pipeline=Told(enabled=True, take_over=True, entities=("*",), allow_backfill=True, claim="when_free"),
    )
    presence = Presence(
        me.store, "dev", me.agent, instance, lambda: record, STALE, me.clock, me.ids, me.processes, quiet, me.committed
    )
    crew = SimCrew(me)
    serves = lambda: ("dev",) if presence.serves else ()  # noqa: E731  # given to two
    staffing = Staffing(jobs, crew, me.agent, CONCURRENCY, DAY, serves, me.clock, quiet)
    post = Mailbox(
        "dev",
        me.store,
        Start(me.agent, instance, me.machine),
        lambda: Serving("dev", mailbox.SERVES, mailbox.project(), version),
        lambda: presence.standing is Standing.PRESENT,
        lambda: CONCURRENCY - len(jobs.running()) - jobs.due(["dev"], CONCURRENCY + 1),
        lambda: False,
        jobs,
        Patience(TICK, mailbox.MAX_HOLDS, DAY),
        me.clock,
        me.ids,
        quiet,
        staffing.look_soon,
        me.committed,
    )

    def told(_level: str, event: str, _sentence: str) -> None:
        me.saw(event)

    recovery = Recovery(jobs, crew, Sightings(me.clock), me.processes, told)
    return Turns([Beating(presence, BEAT), recovery, post, staffing], me.clock, lambda *_: me.saw("duty failed"), quiet)


@dataclass(slots=True)
class Attempt:
    """What a worker has in its hands."""

    job: Job
    work: Work
    runner: Runner
    lease: TableLease
    until: float
    """When it stops waiting for the table."""


def work(me: Me) -> str | None:
    """Claim a job and begin its attempt; without one, end."""
    pid, place = me.processes.pid(), me.processes.place()
    instance = mailbox.instance(me.agent, me.ask(("started by",)))
    who, jobs, wishes = Worker(f"{me.agent}/1", place, pid, float(pid)), me.queue(), Wishes(me)
    runs = Runs(me.agent, instance, me.machine, Path(), table_lease_seconds=LEASE)
    spans = Retry(1.0, 1.0)
    done = Work(
        jobs, runs, who, wishes, me.clock, me.ids, me.processes, lambda: jobs.database, spans, audit=me.committed
    )
    claimed = me.memory.pop("next", None)
    if claimed is None:
        asked = me.clock.elapsed()
        job = None if wishes.stopping() else jobs.claim(who)
        if job is None:
            return "rest"
        claimed = Claimed(job, asked)
    job, asked = claimed.job, claimed.asked
    belief = me.believe(f"the claim of {job.id}", job.lease_seconds)
    belief.confirmed(asked)
    runner = Runner(jobs, runs, belief, done.holds, wishes, me.clock, me.ids)
    holder = Holder(me.agent, instance, me.machine, place, pid, float(pid), job.id)
    lease = TableLease(
        me.store, TABLE, LEASE, holder, done.sightings, me.clock, me.ids, me.processes, audit=me.committed
    )
    me.memory["attempt"] = Attempt(job, done, runner, lease, asked + LEASE + 2 * TICK)
    kind, _, request_id = job.source.partition(":")
    if kind != PIPELINE:
        return None
    hold = RequestHold(me.store, "dev", request_id, me.agent, instance, me.clock, me.ids, quiet, me.committed)
    try:
        hold.start(job.id, job.attempt)
    except FdagentError as err:
        return _broken(me, err)
    runner.request = hold
    return None


def take(me: Me) -> str | None:
    """Ask for the table's lease."""
    now: Attempt = me.memory["attempt"]
    me.beliefs[TABLE] = now.lease.belief
    try:
        held = now.lease.acquire() is None
    except FdagentError as err:
        if not err.retryable:
            return _broken(me, err)
        held = False
    if held:
        now.runner.holds._lease = now.lease
        return None
    me.saw("table busy")
    if me.clock.elapsed() >= now.until:
        return _ended(me, End({}, error="The table is busy.", category="busy", retryable=True, unspent=True))
    return "take" if _kept(me) else _broken(me, StoodDown("The claim was lost."))


def keep(me: Me) -> str | None:
    """Keep what is held over a tick of work."""
    now: Attempt = me.memory["attempt"]
    if not _kept(me):
        return _broken(me, StoodDown("The claim was lost."))
    try:
        if not now.lease.renew():
            me.saw("lease lost")
    except FdagentError:
        me.saw("lease not renewed")
    return None


def _kept(me: Me) -> bool:
    """A tick goes by, and the claim is renewed, as its keeper does."""
    now: Attempt = me.memory["attempt"]
    me.clock.sleep(TICK)
    started, belief = me.clock.elapsed(), now.runner.belief
    if isinstance(me.queue().renew(now.job, lapsed=not belief.held()), Refusal):
        belief.end()
        return False
    belief.confirmed(started)
    return True


def land(me: Me) -> str:
    """The table's change, checked right before it is committed."""
    now: Attempt = me.memory["attempt"]

    def still_mine(_: Me) -> None:
        now.runner._check()
        me.tell("effect", now.job.run_key, f"the claim of {now.job.id}", now.runner.request is not None)

    try:
        landing(me, now.job.run_key, TABLE, still_mine=still_mine)
    except FdagentError as err:
        return _broken(me, err)
    return _ended(me, End({TABLE: {"state": "succeeded", "run_id": "run", "rows": 1}}))


def _broken(me: Me, err: FdagentError) -> str:
    """What a worker does with an error of its attempt."""
    now: Attempt = me.memory["attempt"]
    if isinstance(err, HandedOver):
        me.saw("handed over")
        _free(me)
        return _clear(me, now.work._handed_over(now.job))
    if isinstance(err, StoodDown):
        me.saw("stood down")
        _free(me)
        if now.runner.belief.held():
            return _ended(me, End({}, error=str(err), category="busy", retryable=True))
        return _clear(me, None)
    return _ended(me, End({}, error=str(err), category=str(err.category), retryable=err.retryable))


def _ended(me: Me, end: End) -> str:
    now: Attempt = me.memory["attempt"]
    _free(me)
    now.runner.belief.end()
    return _clear(me, now.work._finish(now.job, end, now.runner.request))


def _free(me: Me) -> None:
    """Free the lease, if it is held."""
    now: Attempt = me.memory["attempt"]
    if now.runner.holds._lease is not None:
        now.runner.holds._lease = None
        now.runner.holds._free(now.lease)


def _clear(me: Me, following: Claimed | None) -> str:
    """The next job is another claim."""
    if following is not None:
        me.memory["next"] = following
    now: Attempt = me.memory.pop("attempt")
    me.beliefs.pop(f"the claim of {now.job.id}", None)
    me.beliefs.pop(TABLE, None)
    return "work"


def rest(me: Me) -> None:
    """Nothing was due; its daemon starts another when something is."""


class Whole(mailbox.Finals):
    """P3, P4, P9 where the agents write their own records and workers have other numbers than their daemons."""

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what != "effect":
            return
        state.ghost["checked", name] = True
        run_key, claim, is_request = about
        if state._do_orphaned(name):
            raise Violation(f"{name} begins an effect of {run_key}, though its daemon is gone")
        believers = state.believers()
        for what in (TABLE, claim):
            if name not in believers.get(what, ()):
                raise Violation(f"{name} begins an effect of {run_key} without believing that it holds {what}")
        if not is_request:
            return
        status = mailbox.status_of(state, status_key(run_key))
        start = mailbox.instance(state.world.programs[name].agent, state.ghost["started", name])
        if status is None or status.state != "running" or status.instance != start:
            raise Violation(f"{name} begins an effect of {run_key}, which {start} does not run any more")


def posts(state: State) -> None:
    """At its time somebody posts a request."""
    for name, at in REQUESTED_AT.items():
        if at == state.now:
            mailbox.put(state, request_key(name), mailbox.request_body(deadline=BASE + at + OPEN_FOR))


def ended(state: State) -> bool:
    """Are all requests and every job final?"""
    statuses = [mailbox.status_of(state, status_key(name)) for name in REQUESTED_AT]
    jobs = [job for name in state.machines for job in rows_of(state, name)]
    return all(s is not None and s.state in FINAL_STATUS for s in statuses) and all(job.state in FINAL for job in jobs)
