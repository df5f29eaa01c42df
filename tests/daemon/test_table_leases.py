"""Table leases as one claim takes, keeps and frees them, and how a worker holds one table at a time."""

import contextlib
import json
import random
from dataclasses import dataclass

import pytest
from duty_kit import HERE, Failing, JumpClock, processes
from fakes import FakeIds

from fdagent.errors import Denied, GaveUp, StoodDown, TableBusy, Unavailable
from fdagent.fleet.records import lease_key
from fdagent.ports import Absent, Match
from fdagent.stores.sightings import Sightings
from fdagent.work.holding import MARGIN_SECONDS
from fdagent.work.leases import Holder, TableLease
from fdagent.work.news import News
from fdagent.work.tablehold import TableHolds, Unwanted
from models.step import Refusal

SPAN = 30.0
TABLE = "silver.orders"
KEY = lease_key(TABLE)
SEEDS = 60
STEPS = 120


@pytest.fixture
def clock():
    return JumpClock()


@pytest.fixture
def store(clock):
    return Failing(clock)


def lease(store, clock, name: str, *, pid: int = 501, place: str = HERE, left=lambda _: False, **alive) -> TableLease:
    holder = Holder("etl-01", "instance", "host", place, pid, 1.0, job_id=name)
    alive = alive or {"p501": 1.0, "p502": 1.0}
    return TableLease(
        store, TABLE, SPAN, holder, Sightings(clock), clock, FakeIds(f"{name}-"), processes(**alive), left
    )


def test_it_is_taken_believed_in_and_freed(store, clock):
    mine = lease(store, clock, "a")
    assert mine.acquire() is None
    assert mine.belief.held()
    record = json.loads(store.read(KEY).body)
    assert (record["table"], record["agent"], record["job_id"], record["seconds"]) == (TABLE, "etl-01", "a", SPAN)
    mine.release()
    assert not mine.belief.held()
    assert store.read(KEY) is None


def test_another_claim_is_refused_while_it_is_renewed(store, clock):
    mine, other = lease(store, clock, "a"), lease(store, clock, "b", pid=502)
    assert mine.acquire() is None
    for _ in range(10):
        clock.now += SPAN / 3
        assert mine.renew()
        assert isinstance(other.acquire(), Refusal)
    assert mine.belief.held()
    assert not other.belief.held()


def test_a_lease_that_nobody_renews_is_taken_after_its_whole_span_seen_unchanged(store, clock):
    mine, other = lease(store, clock, "a"), lease(store, clock, "b", pid=502)
    mine.acquire()
    clock.now += 1000
    assert isinstance(other.acquire(), Refusal), "it has only just been met"
    clock.now += SPAN - 0.1
    assert isinstance(other.acquire(), Refusal)
    clock.now += 0.1
    assert other.acquire() is None
    assert not mine.belief.held()
    assert not mine.renew()


def test_the_one_that_lost_it_does_not_free_the_new_holders(store, clock):
    mine, other = lease(store, clock, "a"), lease(store, clock, "b", pid=502)
    mine.acquire()
    other.acquire()
    clock.now += SPAN
    assert other.acquire() is None
    mine.release()
    assert json.loads(store.read(KEY).body)["job_id"] == "b"


def test_the_lease_of_a_process_that_is_gone_is_taken_at_once(store, clock):
    lease(store, clock, "a").acquire()
    other = lease(store, clock, "b", pid=502, p502=1.0)
    assert other.acquire() is None


@pytest.mark.parametrize("place", ["", "elsewhere/boot/ns"])
def test_the_lease_of_a_process_of_another_place_is_not(store, clock, place):
    lease(store, clock, "a", place=place).acquire()
    assert isinstance(lease(store, clock, "b", pid=502, p502=1.0).acquire(), Refusal)


def test_a_lease_that_is_left_alone_is_taken_at_once(store, clock):
    lease(store, clock, "a").acquire()
    assert lease(store, clock, "b", pid=502, left=lambda _: True).acquire() is None


def test_a_holder_whose_belief_has_ended_does_not_renew_though_nobody_took_it(store, clock):
    mine = lease(store, clock, "a")
    mine.acquire()
    clock.now += SPAN - MARGIN_SECONDS
    assert not mine.renew()


@pytest.mark.parametrize("how", ["lost", "late"])
@pytest.mark.parametrize("event", ["acquire", "renew", "release"])
def test_a_lost_answer_is_settled_by_reading(store, clock, event, how):
    mine = lease(store, clock, "a")
    if event != "acquire":
        mine.acquire()
        clock.now += 1
    store.plan = iter([how])
    getattr(mine, event)()
    assert mine.belief.held() is (event != "release")
    assert (store.read(KEY) is None) is (event == "release")


def test_a_create_that_lands_after_all_is_known_as_ones_own(store, clock):
    """Its answer was lost, the lease was freed, and then the write came back from the dead: nobody believes in it."""
    mine = lease(store, clock, "a")
    mine.acquire()
    body = store.read(KEY).body
    mine.release()
    store.write(KEY, body, Absent())
    other = lease(store, clock, "b", pid=502)
    assert not mine.belief.held()
    assert isinstance(other.acquire(), Refusal)
    clock.now += SPAN
    assert other.acquire() is None


@dataclass
class Worker:
    """One of the rivals: its lease, and whether it stands still."""

    lease: TableLease
    still: bool = False


@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_never_believe_at_once_whatever_is_lost_stopped_or_broken(store, clock, seed):
    dice = random.Random(seed)
    everybody = {f"p{500 + number}": 1.0 for number in range(3)}
    rivals = [Worker(lease(store, clock, f"w{number}", pid=500 + number, **everybody)) for number in range(3)]
    store.plan = iter(lambda: dice.choice([None] * 6 + ["lost", "late", "away"]), "never")
    took = 0
    for _ in range(STEPS):
        clock.now += dice.choice([0.1, 1, SPAN / 3, SPAN / 2, SPAN - MARGIN_SECONDS])
        rival = dice.choice(rivals)
        rival.still = dice.random() < 0.2
        if not rival.still:
            with contextlib.suppress(Unavailable, GaveUp):
                if rival.lease.belief.held():
                    dice.choice([rival.lease.renew, rival.lease.renew, rival.lease.release])()
                else:
                    took += rival.lease.acquire() is None
        assert sum(rival.lease.belief.held() for rival in rivals) <= 1, f"seed {seed}"
    assert took > 3, f"seed {seed}: nothing happened"


def holds(store, clock, name: str, *, pid: int = 501, told=None, news: News | None = None) -> TableHolds:
    holder = Holder("etl-01", "instance", "host", HERE, pid, 1.0)
    return TableHolds(
        holder,
        SPAN,
        Sightings(clock),
        clock,
        FakeIds(f"{name}-"),
        processes(p501=1.0, p502=1.0),
        news=lambda: news or News(),
        told=told or (lambda _: None),
        env="dev",
        store=store,
    )


def test_a_table_is_held_for_as_long_as_its_block(store, clock):
    mine = holds(store, clock, "a")
    mine.check()
    with mine.held(TABLE, "job"):
        assert json.loads(store.read(KEY).body)["job_id"] == "job"
        mine.check()
        clock.now += SPAN
        with pytest.raises(StoodDown, match=f"The lease of {TABLE} could not be kept"):
            mine.check()
    mine.check()
    assert store.read(KEY) is None


def test_it_is_freed_when_its_block_fails(store, clock):
    with pytest.raises(ZeroDivisionError), holds(store, clock, "a").held(TABLE, "job"):
        raise ZeroDivisionError
    assert store.read(KEY) is None


def test_a_table_that_another_keeps_is_busy_after_about_a_span(store, clock):
    other = lease(store, clock, "b", pid=502)
    other.acquire()
    waits = clock.sleep

    def sleep(seconds: float) -> None:
        waits(seconds)
        other.renew()

    clock.sleep = sleep
    before = clock.now
    with pytest.raises(TableBusy, match=f"{TABLE} is busy") as busy, holds(store, clock, "a").held(TABLE, "job"):
        pass
    assert busy.value.retryable
    assert f"{TABLE} is busy: etl-01 on host holds it for job b; it was waited for 30 s." in str(busy.value)
    assert SPAN <= clock.now - before <= SPAN + 5
    assert json.loads(store.read(KEY).body)["job_id"] == "b"


def test_a_wish_to_stop_ends_the_wait_for_a_table(store, clock):
    lease(store, clock, "b", pid=502).acquire()
    before = clock.now
    with (
        pytest.raises(Unwanted),
        holds(store, clock, "a").held(TABLE, "job", lambda: clock.now - before > 3),
    ):
        raise AssertionError("it was run")
    assert clock.now - before < 6
    assert json.loads(store.read(KEY).body)["job_id"] == "b"


def test_a_table_that_is_free_is_taken_whatever_is_wished(store, clock):
    with holds(store, clock, "a").held(TABLE, "job", lambda: True):
        assert store.read(KEY) is not None


def test_a_table_that_is_freed_meanwhile_is_taken(store, clock):
    other = lease(store, clock, "b", pid=502)
    other.acquire()
    waits = clock.sleep

    def sleep(seconds: float) -> None:
        waits(seconds)
        if clock.now > 1_010 and other.belief.held():
            other.release()

    clock.sleep = sleep
    with holds(store, clock, "a").held(TABLE, "job"):
        assert 1_010 < clock.now < 1_015


def test_the_span_of_a_dead_holder_is_watched_once_and_not_anew_by_each_job(store, clock):
    other = lease(store, clock, "b", pid=502, place="elsewhere/boot/ns")
    other.acquire()
    mine = holds(store, clock, "a")
    before = clock.now
    with mine.held(TABLE, "job"):
        assert clock.now - before <= SPAN + 3


def left_behind(store, clock) -> str:
    """A lease of another machine that nobody renews any more; its op."""
    holder = Holder("etl-02", "theirs", "elsewhere", "elsewhere/boot/ns", 7, 1.0, job_id="b")
    args = (store, TABLE, SPAN, holder, Sightings(clock), clock, FakeIds("b-"), processes())
    assert TableLease(*args).acquire() is None
    op: str = json.loads(store.read(KEY).body)["op"]
    return op


def waited(store, clock, news: News) -> float:
    before = clock.now
    with holds(store, clock, "a", news=news).held(TABLE, "job"):
        return clock.now - before


def test_a_lease_that_the_daemon_has_watched_being_left_alone_is_taken_at_once(store, clock):
    op = left_behind(store, clock)
    assert waited(store, clock, News(("dev",), {"dev": {TABLE: op}})) == 0


@pytest.mark.parametrize(
    "left", [{}, {"prod": {TABLE: "OP"}}, {"dev": {"silver.other": "OP"}}, {"dev": {TABLE: "older"}}]
)
def test_any_other_lease_is_waited_for(store, clock, left):
    op = left_behind(store, clock)
    told = {env: {table: known.replace("OP", op) for table, known in ops.items()} for env, ops in left.items()}
    assert waited(store, clock, News(("dev",), told)) >= SPAN


def test_a_lease_that_was_renewed_since_it_was_called_left_alone_is_not_taken(store, clock):
    other = lease(store, clock, "b", pid=502)
    other.acquire()
    op = json.loads(store.read(KEY).body)["op"]
    assert other.renew()
    assert waited(store, clock, News(("dev",), {"dev": {TABLE: op}})) >= SPAN


def test_a_lease_without_an_op_is_waited_for_whatever_was_told(store, clock):
    store.write(KEY, json.dumps({"table": TABLE, "agent": "other", "seconds": SPAN}).encode(), Absent())
    assert waited(store, clock, News(("dev",), {"dev": {TABLE: ""}})) >= SPAN


def test_a_store_that_refuses_this_identity_is_not_waited_for(store, clock):
    def write(*_args: object) -> str:
        raise Denied("No rights.")

    store.write = write
    before = clock.now
    with pytest.raises(Denied), holds(store, clock, "a").held(TABLE, "job"):
        pass
    assert clock.now == before


def test_a_store_that_is_away_makes_the_table_busy_and_nothing_is_run(store, clock):
    store.down = True
    with pytest.raises(TableBusy, match="can't be reached"), holds(store, clock, "a").held(TABLE, "job"):
        raise AssertionError("it was run")


def test_what_can_not_be_freed_is_told_and_lapses(store, clock):
    told = []
    with holds(store, clock, "a", told=told.append).held(TABLE, "job"):
        store.down = True
    store.down = False
    assert "could not be freed, so it lapses by itself" in told[0]
    other = lease(store, clock, "b", pid=502)
    assert isinstance(other.acquire(), Refusal)
    clock.now += SPAN
    assert other.acquire() is None


def test_a_lease_that_a_person_broke_is_found_lost_at_the_next_renewal(store, clock):
    mine = lease(store, clock, "a")
    mine.acquire()
    store.delete(KEY, Match(store.read(KEY).etag))
    assert not mine.renew()
    assert not mine.belief.held()
