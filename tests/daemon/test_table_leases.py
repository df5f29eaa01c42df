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
from fdagent.work.leases import Holder, Others, TableLease
from fdagent.work.news import News
from fdagent.work.tablehold import TableHolds
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


def lease(
    store, clock, name: str, *, pid: int = 501, place: str = HERE, others: Others | None = None, **alive
) -> TableLease:
    holder = Holder("etl-01", "instance", "host", place, pid, 1.0, job_id=name)
    alive = alive or {"p501": 1.0, "p502": 1.0}
    return TableLease(
        store, TABLE, SPAN, holder, Sightings(clock), clock, FakeIds(f"{name}-"), processes(**alive), others or Others()
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


@pytest.mark.parametrize("others", [Others(lost=lambda _: True), Others(replaced=lambda _: True)])
def test_the_lease_of_a_lost_agent_or_an_ended_claim_is_taken_at_once(store, clock, others):
    lease(store, clock, "a").acquire()
    assert lease(store, clock, "b", pid=502, others=others).acquire() is None


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
    assert SPAN <= clock.now - before <= SPAN + 5
    assert json.loads(store.read(KEY).body)["job_id"] == "b"


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


def left_behind(store, clock, *, agent: str = "etl-02", instance: str = "theirs") -> str:
    """A lease that nobody renews any more, with its agent's record; the etag of that record."""
    holder = Holder(agent, instance, "elsewhere", "elsewhere/boot/ns", 7, 1.0, job_id="b")
    args = (store, TABLE, SPAN, holder, Sightings(clock), clock, FakeIds("b-"), processes())
    assert TableLease(*args).acquire() is None
    return store.write(f"agents/{agent}.json", b'{"op": "last"}', Absent())


def waited(store, clock, news: News) -> float:
    before = clock.now
    with holds(store, clock, "a", news=news).held(TABLE, "job"):
        return clock.now - before


def test_what_a_lost_agent_leased_is_taken_at_once(store, clock):
    etag = left_behind(store, clock)
    assert waited(store, clock, News(("dev",), {"dev": {"etl-02": etag}})) == 0


@pytest.mark.parametrize(
    "lost", [{}, {"prod": {"etl-02": "ETAG"}}, {"dev": {"etl-03": "ETAG"}}, {"dev": {"etl-02": "e"}}]
)
def test_what_an_agent_leased_that_is_not_known_to_be_lost_here_is_waited_for(store, clock, lost):
    etag = left_behind(store, clock)
    told = {env: {agent: tag.replace("ETAG", etag) for agent, tag in agents.items()} for env, agents in lost.items()}
    assert waited(store, clock, News(("dev",), told)) >= SPAN


@pytest.mark.parametrize("after", ["it beat", "it was forgotten"])
def test_an_agent_whose_record_changed_since_it_was_called_lost_is_not_lost(store, clock, after):
    etag = left_behind(store, clock)
    if after == "it beat":
        store.write("agents/etl-02.json", b'{"op": "newer"}', Match(etag))
    else:
        store.delete("agents/etl-02.json", Match(etag))
    assert waited(store, clock, News(("dev",), {"dev": {"etl-02": etag}})) >= SPAN


def test_what_an_earlier_start_of_this_agent_leased_is_taken_at_once_where_this_one_holds_the_name(store, clock):
    left_behind(store, clock, agent="etl-01", instance="before the reboot")
    assert waited(store, clock, News(("dev",))) == 0


@pytest.mark.parametrize(("instance", "envs"), [("instance", ("dev",)), ("before", ("prod",)), ("before", ())])
def test_no_other_lease_of_this_agents_name_is(store, clock, instance, envs):
    left_behind(store, clock, agent="etl-01", instance=instance)
    assert waited(store, clock, News(envs)) >= SPAN


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
