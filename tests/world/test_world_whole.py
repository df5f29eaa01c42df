"""Whole agents, told by hand: a worker that lost what it held begins no change, whatever it lost and however."""

from collections.abc import Callable
from dataclasses import replace

from tests.world import mailbox, whole
from tests.world.drive import Walk
from tests.world.scope import Machine
from tests.world.scopes import whole_agents

MOST = 5000


def walk(*, claim_seconds: float = whole.LEASE, work_ticks: int = 3, local: bool = True) -> Walk:
    scope = whole_agents(claim_seconds=claim_seconds, work_ticks=work_ticks)
    if not local:
        scope = replace(scope, machines={name: Machine(place=name) for name in scope.machines})
    return Walk(replace(scope, faults=scope.faults | {"crash"}, budget=100, boots=100, until=1e6))


def go(played: Walk, until: Callable[[], bool], *, without: tuple[str, ...] = ()) -> None:
    """Everybody but these goes on, in turn, until something is so."""
    for _ in range(MOST):
        if until():
            return
        awake = [one for one in played.state.choices() if one in played.state.procs and one not in without]
        played.take(awake[0] if awake else "tick")
    raise AssertionError("it never came to that")


def waits_in(played: Walk, name: str, kind: str) -> Callable[[], bool]:
    return lambda: (node := played.state.procs[name].node) is not None and node.call[0] == kind


def passed(played: Walk, seconds: float) -> Callable[[], bool]:
    until = played.state.now + seconds
    return lambda: played.state.now >= until


def done(played: Walk) -> Callable[[], bool]:
    return lambda: whole.ended(played.state)


def test_two_agents_bring_every_job_and_request_to_its_end_on_one_table():
    with walk() as played:
        go(played, done(played))
        rows = played.state.tables[whole.TABLE].newest.rows
        assert sorted(rows) == ["ja", "jb", "r1", "r2", "r3", "r4", "source1"]
        assert {"table busy", "landed", "succeed", "job succeed"} <= played.world.seen


def test_a_worker_whose_claim_has_ended_begins_no_change():
    with walk(claim_seconds=30.0) as played:
        go(played, waits_in(played, "a1", "open"))
        played.take("a1!stall").take("a!stall")
        go(played, passed(played, 40.0), without=("a", "a1"))
        go(played, lambda: "stood down" in played.world.seen, without=("a",))
        go(played, done(played))
        assert played.state.tables[whole.TABLE].newest.rows.count("ja") == 1


def test_a_worker_whose_lease_has_ended_begins_no_change():
    with walk(claim_seconds=300.0) as played:
        go(played, waits_in(played, "a1", "open"))
        played.take("a1!stall")
        go(played, passed(played, whole.LEASE + whole.TICK), without=("a1",))
        go(played, done(played))
        assert "stood down" in played.world.seen
        assert played.state.tables[whole.TABLE].newest.rows.count("ja") == 1


def test_a_worker_goes_on_while_its_daemon_stands_still_and_hands_over_what_was_taken_from_it():
    with walk(work_ticks=12, local=False) as played:
        status = lambda: mailbox.status_of(played.state)  # noqa: E731  # asked again and again
        go(played, lambda: status() is not None and status().state == "running")
        holder = status().agent
        played.take(f"{holder}!stall")
        go(played, lambda: status().agent != holder, without=(holder,))
        go(played, lambda: "handed over" in played.world.seen, without=(holder,))
        go(played, done(played))
        assert played.state.tables[whole.TABLE].newest.rows.count("r1") == 1
        assert len(status().holds) == 2


def test_a_worker_ends_with_its_daemon_and_another_takes_its_job_up():
    with walk() as played:
        go(played, waits_in(played, "a1", "open"))
        played.take("a!crash")
        go(played, lambda: played.state.procs["a1"].node.call == ("done",), without=("a",))
        assert "ja" not in played.state.tables[whole.TABLE].newest.rows
        played.take("a+")
        go(played, done(played))
        assert played.state.tables[whole.TABLE].newest.rows.count("ja") == 1
