"""The named scopes: what is searched, and what is run with seeds."""

from dataclasses import replace

from . import agents, jobs, leases, ledgers, mailbox, slots
from .landing import OneEffect, lands
from .process import Program
from .state import BASE, Machine, Scope


def _landing(name: str, *, merge: bool, keys=(("R",), ("R",)), **options) -> Scope:
    programs = tuple(
        Program(letter, tuple(lands(key, merge=merge) for key in mine), machine=f"m{letter}", agent=letter)
        for letter, mine in zip("abc", keys, strict=False)
    )
    return Scope(name, programs, (OneEffect(),), tables=("t",), **options)


SCOPES = {
    scope.name: scope
    for scope in (
        _landing("append", merge=False, foreign=1, cleans=1),
        _landing("merge", merge=True, foreign=1, cleans=1),
        _landing("append-keys", merge=False, keys=(("R", "local"), ("S", "R"))),
        _landing("merge-keys", merge=True, keys=(("R", "local"), ("S", "R"))),
    )
}


def _leases(name: str, machines: tuple[str, str], duties=("take", "keep", "release"), **options) -> Scope:
    programs = tuple(
        Program(letter, tuple(getattr(leases, duty) for duty in duties), machine=machine, agent=machine)
        for letter, machine in zip("ab", machines, strict=True)
    )
    return Scope(name, programs, (leases.OneBeliever(),), **{"tick": leases.TICK, "until": 9.0} | options)


for _scope in (
    _leases("lease", ("ma", "mb"), lockstep=True),
    _leases("lease-slow", ("ma", "mb"), lockstep=True, faults=frozenset({"slow"})),
    _leases("lease-workers", ("m", "m"), lockstep=True),
    _leases("lease-release", ("ma", "mb"), duties=("take", "release"), until=3.0),
):
    SCOPES[_scope.name] = _scope


def _requests(name: str, duties=mailbox.AGENT, **options) -> Scope:
    programs = tuple(Program(letter, duties, machine=f"m{letter}", agent=letter) for letter in "ab")
    records = {
        mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + mailbox.DEADLINE),
        "agents/a.json": mailbox.agent_body("a", "a-0", "first", 0.0),
        "agents/b.json": mailbox.agent_body("b", "b-0", "first", 0.0),
    }
    given = {
        "tick": mailbox.TICK,
        "lockstep": True,
        "faults": frozenset({"late", "twice", "crash", "sent", "stall", "mute"}),
        "until": mailbox.HORIZON,
        "records": records,
        "constant": ("requests/", "cancel/", "agents/"),
        "by_itself": mailbox.beats,
        "tables": ("t",),
        "ended": mailbox.ended,
    }
    return Scope(name, programs, (mailbox.Finals(), OneEffect()), **given | options)


for _scope in (_requests("request"), _requests("request-landing", mailbox.LANDING_AGENT)):
    SCOPES[_scope.name] = _scope


def _with(scope: Scope, name: str, programs: tuple[Program, ...], **options) -> Scope:
    return replace(scope, name=name, programs=programs, **options)


_REQUEST = SCOPES["request"]
_A, _B = _REQUEST.programs
_SLOW = replace(_A, duties=(mailbox.slow, *_A.duties))
_STAYS = replace(_B, duties=(mailbox.stays, *_B.duties))
_SWEEPING = {
    "records": {**_REQUEST.records, mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + mailbox.HALF_DAY)},
    "constant": ("cancel/", "agents/"),
    "tick": mailbox.HALF_DAY,
    "until": 6 * mailbox.HALF_DAY,
    "lands": 3 * mailbox.HALF_DAY,
    "ended": mailbox.swept,
}
for _scope in (
    _with(_REQUEST, "request-cancel", (_A, _B), by_itself=mailbox.beats_and_wish),
    _with(_REQUEST, "request-retry", (replace(_A, duties=(mailbox.flaky, *_A.duties)), _B)),
    _with(_REQUEST, "request-sweep", (_SLOW, _STAYS), faults=frozenset({"late", "sent"}), **_SWEEPING),
    _with(_REQUEST, "request-sweep-both", (replace(_STAYS, name="a", machine="ma", agent="a"), _STAYS), **_SWEEPING),
    _with(_REQUEST, "request-kills", (_A, _B), faults=frozenset({"crash"}), budget=2, boots=3, until=300.0),
):
    SCOPES[_scope.name] = _scope


def _jobs(name: str, worker, others: tuple[Program, ...] = (), **options) -> Scope:
    programs = (
        Program("w1", worker, machine="m"),
        Program("w2", worker, machine="m"),
        *others,
    )
    given = {
        "machines": {"m": jobs.machine_with(jobs.JOB)},
        "tables": ("t",),
        "tick": jobs.TICK,
        "until": 30.0,
        "lockstep": True,
        "faults": frozenset({"late", "twice", "crash", "sent", "stall"}),
        "ended": jobs.ended,
    }
    return Scope(name, programs, (OneEffect(), leases.OneBeliever(), jobs.JobFinals()), **given | options)


_WORKER = (jobs.work, jobs.renew, jobs.run)
for _scope in (
    _jobs("job-short", (jobs.work, jobs.run), until=24.0),
    _jobs("job", _WORKER),
    _jobs("job-stop", _WORKER, (Program("p", (jobs.ask_to_stop,), machine="m"),)),
):
    SCOPES[_scope.name] = _scope


_FAULTS = frozenset({"late", "twice", "crash", "sent", "stall"})


def _pair(name: str, duties, monitors, *, machines=("ma", "mb"), machine_clocks=None, **options) -> Scope:
    programs = tuple(
        Program(letter, duties, machine=machine, agent=letter) for letter, machine in zip("ab", machines, strict=True)
    )
    return Scope(
        name, programs, monitors, machines=machine_clocks or {}, **{"lockstep": True, "faults": _FAULTS} | options
    )


_DAEMON = (agents.attend,)
for _scope in (
    _pair("agent", _DAEMON, (agents.OneBeats(),), tick=agents.TICK, until=150.0),
    _pair("agent-restart", _DAEMON, (agents.OneBeats(),), machines=("m", "m"), tick=agents.TICK, until=120.0),
    Scope(
        "agent-clone",
        (Program("a", _DAEMON, machine="m"), Program("b", (agents.nothing,), machine="m")),
        (agents.OneBeats(),),
        faults=_FAULTS | {"clone"},
        clones={"a": "b"},
        budget=2,
        tick=agents.TICK,
        until=120.0,
        lockstep=True,
    ),
    _pair(
        "slot",
        (slots.post,),
        (slots.OnTime(),),
        machines=("ahead", "behind"),
        faults=_FAULTS | {"jump"},
        jump=slots.INTERVAL,
        tick=slots.TICK,
        until=4 * slots.TICK,
        ended=slots.posted,
        machine_clocks={
            "ahead": Machine(wall=slots.INTERVAL, place="ahead"),
            "behind": Machine(wall=-slots.INTERVAL, place="behind"),
        },
    ),
    _pair(
        "ledger",
        (ledgers.evaluate, ledgers.send),
        (ledgers.OneIncident(),),
        tick=ledgers.TICK,
        until=240.0,
        ended=ledgers.ended,
    ),
):
    SCOPES[_scope.name] = _scope
