"""One agent's record: announced, beaten, drained, stopped; clashes of names, clones, and a store that is away."""

import json
from dataclasses import dataclass, field, replace

import pytest
from duty_kit import HERE, Failing, JumpClock
from fakes import FakeIds, FakeProcesses

from fdagent.fleet.presence import OPS_KEPT, Presence, Standing, agent_key
from fdagent.ports import Match
from models.agent import AgentRecord, AgentState

BEAT = 30
STALE = 90.0
KEY = agent_key("etl-01")


@dataclass
class One:
    """One start of an agent named etl-01 on some host."""

    store: Failing
    clock: JumpClock
    instance: str
    host: str = "host-a"
    pid: int = 100
    place: str = HERE
    alive: dict[int, float] = field(default_factory=lambda: {100: 1.0})
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.processes = FakeProcesses(here=self.place, me=self.pid, alive=self.alive)
        self.presence = Presence(
            self.store,
            "dev",
            "etl-01",
            self.instance,
            self.describe,
            STALE,
            self.clock,
            FakeIds(f"{self.instance}-"),
            self.processes,
            self.told.append,
        )

    def describe(self) -> AgentRecord:
        return AgentRecord(
            name="etl-01",
            state=AgentState.RUNNING,
            instance=self.instance,
            host=self.host,
            boot=self.place,
            pid=self.pid,
            process_started_at=1.0,
            status_seconds=BEAT,
            env="dev",
        )

    def beat(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.now += BEAT
            self.presence.tick()

    @property
    def standing(self) -> Standing:
        return self.presence.standing

    @property
    def serves(self) -> bool:
        return self.presence.serves


@pytest.fixture
def clock():
    return JumpClock()


@pytest.fixture
def store(clock):
    return Failing(clock)


@pytest.fixture
def one(store, clock):
    return One(store, clock, "first")


def elsewhere(store, clock, instance: str = "second", **fields) -> One:
    """The same name on another machine."""
    return One(store, clock, instance, host="host-b", place="host-b/boot/ns", alive={}, **fields)


def record(store) -> dict:
    return json.loads(store.read(KEY).body)


def test_it_announces_itself_beats_drains_and_says_goodbye(one, store):
    one.presence.tick()
    assert (record(store)["state"], record(store)["instance"], one.standing) == ("running", "first", Standing.PRESENT)
    first = record(store)
    one.beat()
    assert record(store)["heartbeat_at"] > first["heartbeat_at"]
    assert record(store)["started_at"] == first["started_at"]
    one.presence.drain()
    assert record(store)["state"] == "stopping"
    one.beat()
    assert record(store)["state"] == "stopping", "it beats on while its jobs end"
    one.presence.stop()
    assert record(store)["state"] == "stopped"
    assert one.told == []


def test_the_next_start_after_a_goodbye_is_announced_at_once(one, store, clock):
    one.presence.tick()
    one.presence.stop()
    other = elsewhere(store, clock)
    other.presence.tick()
    assert (other.standing, record(store)["instance"]) == (Standing.PRESENT, "second")


def test_the_next_start_after_a_kill_on_the_same_machine_is_announced_at_once(one, store, clock):
    one.presence.tick()
    after = One(store, clock, "second", pid=101, alive={101: 1.0})
    after.presence.tick()
    assert (after.standing, record(store)["instance"]) == (Standing.PRESENT, "second")


def test_a_name_under_which_somebody_beats_is_refused_and_serves_nothing(one, store, clock):
    one.presence.tick()
    other = elsewhere(store, clock)
    other.presence.tick()
    assert not other.serves, "while it watches, it takes no work"
    assert "may be alive on host-a" in other.told[0]
    one.beat()
    other.presence.tick()
    assert (other.standing, other.serves) == (Standing.REFUSED, False)
    assert "Another agent named etl-01 is alive on host-a: this one takes no work in dev." in other.told
    assert record(store)["instance"] == "first"
    told = len(other.told)
    for _ in range(5):
        one.beat()
        other.presence.tick()
    assert len(other.told) == told, "it is said once"


def test_a_name_that_was_silent_for_two_beats_is_taken_and_not_before(one, store, clock):
    one.presence.tick()
    other = elsewhere(store, clock)
    other.presence.tick()
    other.beat()
    assert not other.serves
    other.beat()
    assert (other.standing, other.serves, record(store)["instance"]) == (Standing.PRESENT, True, "second")


def test_a_refused_start_takes_the_name_once_the_other_falls_silent(one, store, clock):
    one.presence.tick()
    other = elsewhere(store, clock)
    other.presence.tick()
    one.beat()
    other.presence.tick()
    assert other.standing is Standing.REFUSED
    other.beat(3)
    assert (other.standing, other.serves) == (Standing.PRESENT, True)


def test_the_one_that_was_silent_and_comes_back_finds_itself_replaced(one, store, clock):
    one.presence.tick()
    other = elsewhere(store, clock)
    other.presence.tick()
    other.beat(2)
    one.beat()
    assert (one.standing, one.serves) == (Standing.REPLACED, False)
    assert "It takes no more work in dev." in one.told[0]
    one.beat(5)
    one.presence.drain()
    one.presence.stop()
    assert record(store)["instance"] == "second"
    assert record(store)["state"] == "running"
    assert len(one.told) == 1


def test_a_clone_that_even_shares_the_instance_is_found_out_by_the_version_it_never_wrote(one, store, clock):
    one.presence.tick()
    clone = One(store, clock, "first")
    clone.presence.ids.prefix = "clone-"
    clone.presence.standing = one.standing
    clone.presence._ops.extend(one.presence._ops)
    clone.beat()
    assert clone.standing is Standing.PRESENT
    one.beat()
    assert (one.standing, one.serves) == (Standing.REPLACED, False)
    clone.beat(3)
    assert clone.standing is Standing.PRESENT, "one of the two goes on"


@pytest.mark.parametrize("how", ["lost", "late"])
@pytest.mark.parametrize("event", ["announce", "beat", "drain", "stop"])
def test_a_lost_answer_is_never_taken_for_a_replacement(one, store, how, event):
    if event != "announce":
        one.presence.tick()
    store.plan = iter([how])
    {"drain": one.presence.drain, "stop": one.presence.stop}.get(event, one.presence.tick)()
    assert one.standing is Standing.PRESENT
    expected = {"drain": "stopping", "stop": "stopped"}.get(event, "running")
    assert record(store)["state"] == expected
    assert one.told == []


def test_a_store_that_is_away_stops_nothing_is_told_once_and_found_again(one, store):
    one.presence.tick()
    store.down = True
    one.beat(10)
    assert (one.standing, one.serves) == (Standing.PRESENT, True)
    assert len(one.told) == 1
    assert "could not be written; it is tried again" in one.told[0]
    store.down = False
    one.beat()
    assert one.told[1:] == ["The control folder of dev can be used again."]
    assert record(store)["instance"] == "first"


def test_a_start_without_its_store_serves_and_is_announced_once_it_can_be(one, store):
    store.down = True
    one.presence.tick()
    one.beat(3)
    assert (one.standing, one.serves) == (Standing.WAITING, True)
    store.down = False
    one.beat()
    assert one.standing is Standing.PRESENT


def test_a_record_that_a_person_removed_is_announced_anew(one, store):
    one.presence.tick()
    store.delete(KEY, Match(store.read(KEY).etag))
    one.beat()
    assert store.read(KEY) is None
    one.beat()
    assert (one.standing, record(store)["instance"]) == (Standing.PRESENT, "first")


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[]", b'{"name": "etl-01"}', b'{"contract": 99, "name": "etl-01"}']
)
def test_a_record_that_is_none_is_left_alone_and_told_and_the_agent_goes_on(one, store, body):
    one.presence.tick()
    store.write(KEY, body, Match(store.read(KEY).etag))
    one.beat(5)
    assert store.read(KEY).body == body
    assert (one.serves, len(one.told)) == (True, 1)


def test_nothing_is_announced_any_more_once_it_drains(one, store):
    store.down = True
    one.presence.tick()
    one.presence.drain()
    store.down = False
    one.beat(3)
    one.presence.stop()
    assert store.read(KEY) is None


def test_a_drain_that_could_not_be_said_is_said_at_the_next_beat(one, store):
    one.presence.tick()
    store.down = True
    one.presence.drain()
    store.down = False
    one.beat()
    assert record(store)["state"] == "stopping"
    one.presence.stop()
    assert record(store)["state"] == "stopped"


def test_fields_of_a_later_version_survive_every_beat(one, store):
    one.presence.tick()
    body = {**record(store), "from_the_future": [1, 2]}
    store.write(KEY, json.dumps(body).encode(), Match(store.read(KEY).etag))
    one.beat()
    one.presence.stop()
    assert record(store)["from_the_future"] == [1, 2]


def test_what_it_remembers_is_bounded(one):
    one.presence.tick()
    one.beat(3 * OPS_KEPT)
    assert len(one.presence._ops) == OPS_KEPT
    assert one.standing is Standing.PRESENT


def test_of_many_starts_under_one_name_exactly_one_goes_on_beating(store, clock):
    starts = [elsewhere(store, clock, f"start{number}") for number in range(5)]
    for _ in range(12):
        clock.now += BEAT
        for one in starts:
            one.presence.tick()
    assert [one.serves for one in starts].count(True) == 1
    assert record(store)["instance"] == next(one.instance for one in starts if one.serves)


def test_an_agent_of_another_name_is_nobodys_business(one, store, clock):
    one.presence.tick()
    other = One(store, clock, "second")
    other.presence.name = "etl-02"
    other.presence.describe = lambda: replace(other.describe(), name="etl-02")
    other.presence.tick()
    assert other.standing is Standing.PRESENT
    one.beat()
    assert one.standing is Standing.PRESENT
