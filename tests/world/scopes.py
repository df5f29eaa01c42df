"""The named scopes of every test run: two agents, one fault, and what each must have seen. `large.py` has the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fdagent.fleet.records import dump
from models.job import Job, JobState
from models.status import RequestState, Status

from . import agents, jobs, leases, ledgers, mailbox, slots, whole
from .landing import OneEffect, lands
from .process import Duty, Program
from .scope import BASE, Machine, Scope

SCOPES: dict[str, Scope] = {}
TWO, THREE = "ab", "abc"
FAULTS = frozenset({"late", "twice", "crash", "sent", "stall"})
LANDS = frozenset({"landed", "already done"})
SKEWED = {
    f"m{name}": Machine(wall=off, place=f"m{name}") for name, off in zip(THREE, (7200.0, -7200.0, 0.0), strict=True)
}
"""Wall clocks that are hours off."""


def alike(letters: str, duties: Sequence[Duty], machines: Sequence[str] = ()) -> tuple[Program, ...]:
    """Agents that all do the same, each on a machine of its own; or several workers of the agents of those machines."""
    places = machines or [f"m{letter}" for letter in letters]
    return tuple(
        Program(letter, tuple(duties), machine=machine, agent=machine if machines else letter)
        for letter, machine in zip(letters, places, strict=True)
    )


def landing(name: str, *, merge: bool, keys: Sequence[Sequence[str]] = (("R",), ("R",)), **options: Any) -> Scope:
    """Agents that land run keys in one table."""
    programs = tuple(
        Program(letter, tuple(lands(key, merge=merge) for key in mine), machine=f"m{letter}", agent=letter)
        for letter, mine in zip(THREE, keys, strict=False)
    )
    return Scope(name, programs, (OneEffect(),), **{"tables": ("t",), "sometimes": LANDS} | options)


_UNSIGNED = LANDS | {"already done, author unknown"}
_LOCAL_TOO = (("R", "local"), ("S", "R"))
for _scope in (
    landing("append", merge=False, foreign=1, cleans=1, sometimes=_UNSIGNED),
    landing("merge", merge=True, foreign=1, cleans=1, sometimes=_UNSIGNED),
    landing("append-keys", merge=False, keys=_LOCAL_TOO),
    landing("merge-keys", merge=True, keys=_LOCAL_TOO),
):
    SCOPES[_scope.name] = _scope


def leasing(
    name: str,
    letters: str = TWO,
    machines: Sequence[str] = (),
    duties: Sequence[Duty] = (leases.take, leases.keep, leases.release),
    clocks: Mapping[str, Machine] = MappingProxyType({}),
    **options: Any,
) -> Scope:
    """Workers that want one table's lease."""
    given = {
        "machines": clocks,
        "tick": leases.TICK,
        "until": 9.0,
        "lockstep": True,
        "sometimes": frozenset({"acquire", "renew", "release", "refused", "lease taken from another"}),
    }
    return Scope(name, alike(letters, duties, machines), (leases.OneBeliever(),), **given | options)


_DEAD = frozenset({"lease by dead process", "lost, then recognised", "lease taken from another", "refused"})
for _scope in (
    leasing("lease", sometimes=_DEAD),
    leasing("lease-slow", faults=frozenset({"slow"})),
    leasing("lease-skew", faults=frozenset({"crash"}), clocks=SKEWED),
    leasing("lease-workers", machines=("m", "m"), sometimes=_DEAD),
    leasing(
        "lease-stall",
        duties=(leases.take, leases.keep, leases.keep, leases.release),
        faults=frozenset({"stall"}),
        until=12.0,
    ),
    leasing(
        "lease-again",
        machines=("m", "m"),
        duties=(leases.take, leases.hold, leases.release, leases.take, leases.hold, leases.release),
        faults=frozenset({"stall"}),
        until=12.0,
        sometimes=frozenset({"refused", "lease taken from another"}),
    ),
    leasing(
        "lease-release",
        duties=(leases.take, leases.release),
        until=3.0,
        lockstep=False,
        sometimes=frozenset({"refused", "delete lost, then recognised"}),
    ),
):
    SCOPES[_scope.name] = _scope


def requests(name: str, letters: str = TWO, duties: Sequence[Duty] = mailbox.AGENT, **options: Any) -> Scope:
    """Agents that serve one request."""
    records = {mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + mailbox.DEADLINE)}
    records |= {f"agents/{one}.json": mailbox.agent_body(one, f"{one}-0", "first", 0.0) for one in letters}
    given = {
        "tick": mailbox.TICK,
        "lockstep": True,
        "faults": FAULTS | {"mute"},
        "until": mailbox.HORIZON,
        "records": records,
        "constant": ("requests/", "cancel/", "agents/"),
        "by_itself": mailbox.beats,
        "machines": SKEWED,
        "tables": ("t",),
        "ended": mailbox.ended,
        "sometimes": frozenset(
            {"claim", "start", "succeed", "expire", "take_over", "adopt", "handed over", "lost, then recognised"}
        ),
    }
    return Scope(name, alike(letters, duties), (mailbox.Finals(), OneEffect()), **given | options)


REQUEST = requests("request")
_A, _B = REQUEST.programs
SLOW = replace(_A, duties=(mailbox.slow, *_A.duties))
STAYS = replace(_B, duties=(mailbox.stays, *_B.duties))
STAYS_TOO = replace(_A, duties=(mailbox.stays, *_A.duties))
FLAKY = replace(_A, duties=(mailbox.flaky, *_A.duties))
SWEEPING: dict[str, Any] = {
    "records": {**REQUEST.records, mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + mailbox.HALF_DAY)},
    "constant": ("cancel/", "agents/"),
    "tick": mailbox.HALF_DAY,
    "until": 6 * mailbox.HALF_DAY,
    "lands": 3 * mailbox.HALF_DAY,
    "ended": mailbox.swept,
    "sometimes": frozenset({"sweep", "delete lost, then recognised", "succeed", "expire"}),
}
_HELD_BEFORE = dump(
    Status(
        id=mailbox.ID,
        env="dev",
        state=RequestState.ACCEPTED,
        op="c0x0-1",
        agent="c",
        instance="c-0",
        agents=("c",),
        job_id="c",
        deadline=BASE + 150.0,
    )
)
_GIVING_UP: dict[str, Any] = {
    "records": {
        **REQUEST.records,
        mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + 150.0),
        mailbox.STATUS: _HELD_BEFORE,
        "agents/c.json": mailbox.agent_body("c", "c-0", "first", 0.0),
    },
    "faults": frozenset({"crash"}),
    "until": 270.0,
    "sometimes": frozenset({"take_over", "give_up", "succeed"}),
}
"""One agent held the request and died: whoever takes it over has its last hold."""
for _scope in (
    REQUEST,
    requests("request-landing", duties=mailbox.LANDING_AGENT, sometimes=REQUEST.sometimes | {"landed", "already done"}),
    replace(
        REQUEST,
        name="request-cancel",
        by_itself=mailbox.beats_and_wish,
        sometimes=frozenset({"cancel", "start", "succeed", "adopt", "handed over"}),
    ),
    replace(
        REQUEST,
        name="request-retry",
        programs=(FLAKY, _B),
        faults=frozenset({"crash", "late"}),
        sometimes=frozenset({"wait", "hand_back", "take_over", "give_up", "fail", "expire", "lost, then recognised"}),
    ),
    replace(REQUEST, name="request-give-up", **_GIVING_UP),
    requests(
        "request-freeze",
        duties=mailbox.LANDING_AGENT,
        faults=frozenset({"freeze"}),
        sometimes=frozenset({"take_over", "handed over", "already done"}),
    ),
    requests(
        "request-freeze-late",
        faults=frozenset({"freeze"}),
        records={**REQUEST.records, mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + mailbox.SPAN)},
        until=150.0,
        sometimes=frozenset({"expire", "handed over"}),
    ),
    requests(
        "request-alone",
        "b",
        records={**REQUEST.records, mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + 3000.0)},
        ended=None,
        by_itself=mailbox.beats_and_wish,
        faults=FAULTS | {"freeze"},
        sometimes=frozenset({"cancel", "claim", "succeed", "adopt", "lost, then recognised"}),
    ),
    replace(REQUEST, name="request-sweep", programs=(SLOW, STAYS), faults=frozenset({"late", "sent"}), **SWEEPING),
    replace(REQUEST, name="request-sweep-both", programs=(STAYS_TOO, STAYS), faults=frozenset({"late"}), **SWEEPING),
):
    SCOPES[_scope.name] = _scope


WORKER = (jobs.work, jobs.renew, jobs.run, jobs.rest)
A_PERSON = Program("p", (jobs.ask_to_stop,), machine="m")


def working(
    name: str, workers: int = 2, duties: Sequence[Duty] = WORKER, others: Sequence[Program] = (), **options: Any
) -> Scope:
    """Workers of one queue that holds one job."""
    programs = (*(Program(f"w{n + 1}", tuple(duties), machine="m") for n in range(workers)), *others)
    given = {
        "machines": {"m": jobs.machine_with(jobs.JOB)},
        "tables": ("t",),
        "tick": jobs.TICK,
        "until": 30.0,
        "lockstep": True,
        "faults": FAULTS,
        "ended": jobs.ended,
        "sometimes": LANDS | {"recovered as queued", "stood down", "end refused"},
    }
    return Scope(name, programs, (OneEffect(), leases.OneBeliever(), jobs.JobFinals()), **given | options)


_JOB = working("job")
for _scope in (
    working("job-short", duties=(jobs.work, jobs.run, jobs.rest), until=24.0),
    replace(_JOB, sometimes=_JOB.sometimes | {"claim lost"}),
    working("job-stop", others=(A_PERSON,), sometimes=_JOB.sometimes | {"stop asked", "recovered as cancelled"}),
):
    SCOPES[_scope.name] = _scope


def beating(name: str, letters: str = TWO, machines: Sequence[str] = (), **options: Any) -> Scope:
    """Daemons that want one agent's name."""
    given = {
        "faults": FAULTS,
        "tick": agents.TICK,
        "until": 150.0,
        "lockstep": True,
        "sometimes": frozenset({"announce", "beat", "present", "waiting", "replaced", "lost, then recognised"}),
    }
    return Scope(name, alike(letters, (agents.attend,), machines), (agents.OneBeats(),), **given | options)


def posting(name: str, clocks: Sequence[float], **options: Any) -> Scope:
    """Agents that post one hourly schedule; how far each one's clock is ahead."""
    places = [f"m{letter}" for letter in THREE[: len(clocks)]]
    given = {
        "faults": FAULTS | {"jump"},
        "jump": slots.INTERVAL,
        "tick": slots.TICK,
        "until": 4 * slots.TICK,
        "lockstep": True,
        "ended": slots.posted,
        "machines": {place: Machine(wall=off, place=place) for place, off in zip(places, clocks, strict=True)},
        "sometimes": frozenset({"post", "lost, then recognised"}),
    }
    return Scope(name, alike(THREE[: len(clocks)], (slots.post,)), (slots.OnTime(),), **given | options)


def evaluating(name: str, letters: str = TWO, **options: Any) -> Scope:
    """Evaluators that find one problem."""
    given = {
        "faults": FAULTS,
        "tick": ledgers.TICK,
        "until": 240.0,
        "lockstep": True,
        "ended": ledgers.ended,
        "sometimes": frozenset({"write", "sent", "lost, then recognised"}),
    }
    given["programs"] = alike(letters, (ledgers.evaluate, ledgers.send))
    return Scope(name, monitors=(ledgers.OneIncident(),), **given | options)


_CLONED = replace(beating("agent-clone", machines=("m", "m")), faults=FAULTS | {"clone"}, clones={"a": "b"}, budget=2)
for _scope in (
    beating("agent"),
    beating("agent-restart", machines=("m", "m"), until=120.0),
    replace(
        _CLONED,
        programs=(Program("a", (agents.attend,), machine="m"), Program("b", (agents.nothing,), machine="m")),
        until=120.0,
        sometimes=_CLONED.sometimes | {"refused"},
    ),
    posting("slot", (slots.INTERVAL, -slots.INTERVAL)),
    evaluating("ledger"),
    evaluating(
        "ledger-two",
        programs=(
            Program("a", (ledgers.evaluate, ledgers.send), machine="ma"),
            Program("b", (ledgers.another, ledgers.evaluate, ledgers.send), machine="mb"),
        ),
        until=60.0,
        ended=None,
        sometimes=frozenset({"write", "sent", "lost, then recognised", "recognised under another's write"}),
    ),
):
    SCOPES[_scope.name] = _scope


def whole_agents(letters: str = TWO, *, claim_seconds: float = whole.LEASE, work_ticks: int = 3) -> Scope:
    """Agents with their daemons and workers; each has a local job of its own, and a table takes some ticks."""
    worker = (whole.work, whole.take, *[whole.keep] * work_ticks, whole.land, whole.rest)
    programs, machines = [], {}
    for one in letters:
        place = f"m{one}"
        programs.append(Program(one, (whole.daemon,), machine=place, agent=one))
        # A worker may outlive its daemon for a while, so the next daemon needs room for another.
        programs += [Program(f"{one}{n}", worker, machine=place, agent=one, parent=one) for n in (1, 2)]
        local = Job(
            f"j{one}",
            JobState.QUEUED,
            "asked",
            "dev",
            run_key=f"j{one}",
            dedupe_key=f"j{one}",
            lease_seconds=claim_seconds,
            max_attempts=5,
        )
        machines[place] = jobs.machine_with(local, place=place)
    return Scope(
        "whole",
        tuple(programs),
        (whole.Whole(), OneEffect(), leases.OneBeliever(), jobs.JobFinals()),
        faults=FAULTS | {"off", "wipe", "pause"},
        pause=whole.PAUSE,
        tick=whole.TICK,
        until=150.0,
        lockstep=True,
        records={mailbox.REQUEST_FILE: mailbox.request_body(deadline=BASE + whole.OPEN_FOR)},
        constant=("requests/", "cancel/"),
        tables=(whole.TABLE,),
        machines=machines,
        by_itself=whole.posts,
        ended=whole.ended,
    )


WALKS = {"whole": whole_agents()}
"""Too large for any search: walked by seeds only."""
