"""The cases: each plays one trouble of several agents over one project, asserts what comes of it, and says it in a line.

The first line of a case's docstring is its title. Agents are called a, b, c; where one is held in the middle of a run it
is a, and b was watching before the trouble began.
"""

import time
from collections.abc import Callable, Mapping

from daemon_kit import fault
from takeover_agent import LEASE, POLL, Member
from takeover_kit import BOUND, BUSY, CHECK, COMMIT, DONE, FOLDER, LOST, TABLE, Ground, by

from models.status import Status

Tables = Mapping[str, list[str]]
Case = Callable[[Ground, Tables], str]
BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_by_customer"
EVERYBODY = 8
PATIENT = 60
"""A stale span that nobody outlasts here."""


def held_and_watched(ground: Ground, at: str = CHECK, when: str = "before") -> tuple[Member, Member]:
    """a runs r1 and is held in its second table; b watches."""
    a = ground.caught(ground.netted("a"), "r1", at, when)
    b = ground.member("b").start()
    ground.beats(b)
    return a, b


def finished_by_b(ground: Ground, b: Member) -> Status:
    """r1 succeeded on b, which took it over from a, once, and nobody else held it; its status."""
    done = ground.ended("r1")
    assert (str(done.state), done.agent, done.holds) == ("succeeded", "b", ("a", "b"))
    assert done.taken_over_from == "a"
    b.audited("request", "/r1", "take_over", "start", *["report"] * 3, "succeed")
    return done


def left_alone(ground: Ground, loser: Member, op: str | None, *ends: str) -> None:
    """The one that lost r1 ended its job of it, wrote nothing more of it, and beats on."""
    loser.ended_job("r1", *(ends or ("cancelled",)))
    ground.beats(loser)
    loser.audited("request", "/r1", "claim", "start", "report")
    assert ground.status("r1").op == op


def killed_mid_table(ground: Ground, tables: Tables) -> str:
    """Kill -9 mid-table, right behind a commit that nobody was told of."""
    a, b = held_and_watched(ground, COMMIT, "after")
    took = ground.taken_over("r1", a.kill(), "a")
    status = finished_by_b(ground, b)
    assert by(status) == {
        BRONZE: ("already_done", "a"),
        TABLE: ("already_done", None),
        SILVER: ("succeeded", "b"),
        GOLD: ("succeeded", "b"),
    }
    a.start()
    left_alone(ground, a, status.op)
    ground.logged("r1", BRONZE, ("a", "succeeded"), ("b", "already_done"))
    ground.stop()
    ground.right(tables, "r1")
    return f"taken over in {took:.1f} s (bound {BOUND} s): succeeded on b, holds a, b; each effect once; a's rows kept"


def stopped_and_woken(ground: Ground, tables: Tables) -> str:
    """SIGSTOP past stale before the look that precedes a commit, SIGCONT when all is over."""
    a, b = held_and_watched(ground)
    took = ground.taken_over("r1", a.pause(), "a")
    since = time.monotonic()
    status = finished_by_b(ground, b)
    ran = time.monotonic() - since
    assert by(status)[TABLE] == ("succeeded", "b")
    # Its process is there, and b's worker would have to watch the whole span: it was told that the lease is left alone.
    assert ran < LEASE * 0.75
    ground.go.touch()
    a.resume()
    left_alone(ground, a, status.op)
    a.told("job", "this agent begins no further change")
    assert [row for row in ground.rows("r1")[TABLE] if row[0] == "a" and row[1] in DONE] == []
    ground.stop()
    ground.right(tables, "r1")
    return (
        f"taken over in {took:.1f} s (bound {BOUND} s): succeeded on b {ran:.1f} s later, a's lease of {LEASE} s not waited "
        "out; a woke up and stood down; each effect once"
    )


def woken_with_a_commit_in_flight(ground: Ground, tables: Tables) -> str:
    """SIGSTOP past stale between that look and the commit, SIGCONT as soon as it is taken over."""
    a, b = held_and_watched(ground, COMMIT)
    took = ground.taken_over("r1", a.pause(), "a")
    ground.go.touch()
    a.resume()
    status = finished_by_b(ground, b)
    assert by(status)[TABLE] == ("already_done", None)
    left_alone(ground, a, status.op)
    ground.logged("r1", TABLE, ("a", "succeeded"), ("b", "already_done"))
    for name in (SILVER, GOLD):
        ground.logged("r1", name, ("b", "succeeded"))
    ground.stop()
    ground.right(tables, "r1")
    return (
        f"taken over in {took:.1f} s (bound {BOUND} s): a's checked commit landed once, b found it done; a stood down"
    )


def cut_off(ground: Ground, tables: Tables) -> str:
    """Network cut for two spans, mid-table."""
    a, b = held_and_watched(ground)
    with ground.cut(a):
        since = time.monotonic()
        ground.go.touch()
        took = ground.taken_over("r1", since, "a")
        ground.span(since, 2 * LOST)
    status = finished_by_b(ground, b)
    assert by(status)[TABLE] == ("succeeded", "b")
    left_alone(ground, a, status.op, "cancelled", "dead")
    b.ask_to_stop()
    assert b.exit() == 0
    ground.post("r2")
    again = ground.ended("r2")
    assert (str(again.state), again.holds) == ("succeeded", ("a",))
    ground.stop()
    ground.right(tables, "r1")
    return f"taken over in {took:.1f} s (bound {BOUND} s): succeeded on b; a stood down, and served the next request"


def poison(ground: Ground, tables: Tables) -> str:
    """A poison request over three agents, each killed by it before the same commit."""
    deadly = fault(COMMIT, "kill both", ground.held, times=3, text=FOLDER)
    members = [ground.member(name).start(deadly) for name in "abc"]
    ground.post("r1")
    died: list[Member] = []
    took = []
    for _ in members:
        dead = ground.until(lambda: next((m for m in members if m.ended and m not in died), None), "another agent dies")
        since = time.monotonic()
        died.append(dead)
        assert dead.exit() == -9
        if len(died) < len(members):
            took.append(ground.taken_over("r1", since, dead.name))
    names = [member.name for member in died]
    died[0].start()
    since = time.monotonic()
    ended = ground.ended("r1")
    took.append(time.monotonic() - since)
    assert took[-1] < BOUND + BUSY
    assert (str(ended.state), list(ended.holds)) == ("failed", names)
    assert sorted(names) == ["a", "b", "c"]
    assert ended.error == f"Given up: held by {', '.join(names)}; none finished it."
    ground.post("r2")
    assert str(ground.ended("r2").state) == "succeeded"
    ground.stop()
    ground.right(tables)
    each = ", ".join(f"{seconds:.1f}" for seconds in took)
    return f"moved on, and given up, after {each} s (bound {BOUND} s): failed, holds {', '.join(names)}, each named"


def eight_and_one_slot(ground: Ground, tables: Tables) -> str:
    """Eight agents and one slot, let go before it at once."""
    every = next(minutes for minutes in (60, 61) if time.time() % (minutes * 60) < (minutes - 2) * 60)
    schedule = {"id": "hourly", "every_minutes": every}
    gate = fault("fdagent.fleet.slots:Posting._post", f"wait {ground.go}", ground.held, role="daemon", times=EVERYBODY)
    # They don't beat while they stand there, and none of them is to be lost for that.
    names = [f"e{n}" for n in range(EVERYBODY)]
    members = [ground.member(name, schedule=schedule, stale=PATIENT).start(gate) for name in names]
    last = ground.held.with_name(f"{ground.held.name}.{EVERYBODY - 1}")
    ground.until(last.exists, "all stand before it")
    since = time.monotonic()
    ground.go.touch()
    (slot,) = ground.until(lambda: [entry.key for entry in ground.store.list("requests/")], "somebody posts it")
    name = slot.removeprefix("requests/").removesuffix(".json")
    done = ground.ended(name)
    took = time.monotonic() - since
    for member in members:
        ground.beats(member)
    assert [entry.key for entry in ground.store.list("requests/")] == [slot]
    assert sorted(event for member in members for event in member.audit("slot")) == ["post"]
    assert (str(done.state), len(done.holds)) == ("succeeded", 1)
    for member in members:
        ran = ("claim", "start", *["report"] * 3, "succeed") if member.name in done.holds else ()
        member.audited("request", "", *ran)
        assert bool(member.audit("job")) is bool(ran)
    ground.stop()
    ground.right(tables, name)
    return f"one request, one claim, one run, over {took:.1f} s after they were let go; each effect once"


def clean_stop(ground: Ground, tables: Tables) -> str:
    """Clean stop with one request running and one waiting behind it."""
    a = ground.caught(ground.member("a", claim="always"), "r1")
    ground.post("r2", BRONZE)
    ground.becomes("r2", lambda status: status.agent == "a", "waits on a")
    ground.member("b").start()
    a.ask_to_stop()
    since = time.monotonic()
    ground.becomes("r2", lambda status: status.agent == "b", "is b's")
    waiting = time.monotonic() - since
    ground.go.touch()
    assert a.exit() == 0
    since = time.monotonic()
    ground.becomes("r1", lambda status: status.agent == "b", "is b's")
    begun = time.monotonic() - since
    for request in ("r1", "r2"):
        done = ground.ended(request)
        assert (str(done.state), done.holds, done.taken_over_from) == ("succeeded", ("a", "b"), "a"), request
    assert by(ground.status("r1"))[TABLE] == ("already_done", "a")
    assert max(waiting, begun) < 2 * POLL + BUSY
    ground.stop()
    ground.right(tables, "r1")
    return f"offered, and b's after {waiting:.1f} and {begun:.1f} s (bound {2 * POLL} s); a finished its table, exit 0; each effect once"


def stopped_between_polls(ground: Ground, tables: Tables) -> str:
    """Clean stop mid-table of an agent whose next poll is an hour away."""
    ground.post("r1")
    a = ground.caught(ground.member("a", poll=3600), "r1")
    a.ask_to_stop()
    a.told("stopping", "No new work")
    ground.go.touch()
    assert a.exit() == 0
    status = ground.status("r1")
    assert (str(status.state), status.agent, status.offered) == ("accepted", "a", True)
    ground.member("b").start()
    done = ground.ended("r1")
    assert (str(done.state), done.holds) == ("succeeded", ("a", "b"))
    ground.stop()
    ground.right(tables, "r1")
    return "offered before its goodbye, exit 0: succeeded on b, holds a, b; each effect once"


def restarted_at_once(ground: Ground, tables: Tables) -> str:
    """Restart at once after kill -9."""
    a, b = held_and_watched(ground, COMMIT, "after")
    a.kill()
    since = time.monotonic()
    a.start()
    ground.becomes("r1", lambda status: status.holds == ("a", "a"), "is adopted")
    took = time.monotonic() - since
    done = ground.ended("r1")
    assert (str(done.state), done.agent, done.holds, done.taken_over_from) == ("succeeded", "a", ("a", "a"), None)
    assert b.audit("request") == []
    assert took < LOST
    ground.stop()
    ground.right(tables, "r1")
    return (
        f"adopted {took:.1f} s after its new start began (bound {LOST} s): succeeded on a, holds a, a; b took nothing"
    )


def cancelled(ground: Ground, tables: Tables) -> str:
    """Cancel while running and while waiting."""
    a = ground.caught(ground.member("a", claim="always"), "r1")
    ground.post("r2")
    ground.becomes("r2", lambda status: status.agent == "a", "waits on a")
    ground.cancel("r1")
    ground.cancel("r2")
    since = time.monotonic()
    waiting = ground.ended("r2")
    took = time.monotonic() - since
    assert (str(waiting.state), waiting.holds) == ("cancelled", ("a",))
    assert took < POLL + BUSY
    assert str(ground.status("r1").state) == "running"
    ground.go.touch()
    assert str(ground.ended("r1").state) == "succeeded"
    a.ended_job("r2", "cancelled")
    ground.stop()
    assert ground.rows("r2") == {name: [] for name in ground.tables}
    ground.right(tables, "r1")
    return f"the waiting one cancelled in {took:.1f} s (at the next poll, {POLL} s) and never run, the running one succeeded"


def narrower_allowlist(ground: Ground, tables: Tables) -> str:
    """An agent with a narrower allowlist beside one that dies."""
    narrow = ground.member("n", entities=["bronze.*"]).start()
    a = ground.caught(ground.member("a"), "r1")
    ground.post("r2", BRONZE)
    own = ground.ended("r2")
    assert (str(own.state), own.holds) == ("succeeded", ("n",))
    since = a.kill()
    ground.span(since, BOUND + 2 * POLL)
    status = ground.status("r1")
    assert (str(status.state), status.agent) == ("running", "a")
    assert narrow.audit("request", "/r1") == []
    a.start()
    done = ground.ended("r1")
    assert (str(done.state), done.holds) == ("succeeded", ("a", "a"))
    ground.stop()
    ground.right(tables, "r1")
    return (
        f"served its own, left the wider one alone for {BOUND + 2 * POLL} s (bound {BOUND} s); a came back and ended it"
    )


ALL: list[Case] = [
    poison,
    cut_off,
    stopped_and_woken,
    woken_with_a_commit_in_flight,
    killed_mid_table,
    narrower_allowlist,
    eight_and_one_slot,
    clean_stop,
    stopped_between_polls,
    restarted_at_once,
    cancelled,
]
"""The longest first."""
