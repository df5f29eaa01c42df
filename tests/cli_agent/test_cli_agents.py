"""The agents of an environment, whether they seem to live, and one that is gone for good forgotten."""

import pytest
from fakes import FakeClock, FakeIds, FakeProcesses

from fdagent.errors import BadId, NotFound, Refused
from fdagent.fleet.people import LONGEST_WATCH_SECONDS, forget_agent, names_open_request
from fdagent.fleet.presence import Presence, agent_key
from fdagent.ports import Absent, Match
from fdagent.stores.memory import MemoryStore
from models import codec
from models.agent import AgentRecord, AgentState
from models.status import FINAL, RequestState, Status


def test_an_environment_without_agents_says_so(desk):
    said = desk("agents", "dev")
    assert (said.code, said.out) == (0, "No agent has announced itself in dev.\n")


def test_an_agent_is_shown_with_what_it_says_and_what_seems(desk):
    desk.agent()
    said = desk("agents", "dev").out
    for part in ("etl-01", "running", "alive", "host-1", "job1", "2 queued, 1 running", "0.1.0", "a" * 12, "estimate"):
        assert part in said, part


def test_json_has_the_record_its_age_and_the_estimate_under_that_name(desk):
    desk.agent()
    [one] = desk("agents", "dev", "--json").json["agents"]
    expected = {"name", "state", "host", "started_at", "running", "queue", "version", "metadata_version"}
    assert expected | {"age_seconds", "liveness_estimate"} <= one.keys()
    assert one["liveness_estimate"] == "alive"
    assert one["metadata_version"] == "a" * 64


@pytest.mark.parametrize(
    ("age", "seems"), [(0, "alive"), (80, "alive"), (100, "late"), (160, "lost"), (-3600, "unknown")]
)
def test_liveness_is_estimated_by_the_age_of_the_record(desk, age, seems):
    desk.agent()
    desk.age_agent(age)
    assert desk("agents", "dev", "--json").json["agents"][0]["liveness_estimate"] == seems
    assert seems in desk("agents", "dev").out


def test_an_agent_that_said_goodbye_is_stopped_whatever_its_age(desk):
    desk.agent().stop()
    desk.age_agent(1_000_000)
    [one] = desk("agents", "dev", "--json").json["agents"]
    assert (one["state"], one["liveness_estimate"]) == ("stopped", "stopped")


def test_a_record_that_can_not_be_read_is_named_and_hides_no_other(desk):
    desk.agent()
    desk.agent("etl-02")
    desk.file("agents/bad.json", "[]")
    desk.file("agents/newer.json", '{"contract": 9}')
    answer = desk("agents", "dev", "--json").json
    assert [one["name"] for one in answer["agents"]] == ["etl-01", "etl-02"]
    assert [one["key"] for one in answer["unreadable"]] == ["agents/bad.json", "agents/newer.json"]
    assert "agents/newer.json can't be read" in desk("agents", "dev").out


def test_an_environment_that_is_not_there_is_not_found(desk):
    assert desk("agents", "prod").code == 3


def test_an_agent_that_stopped_is_forgotten_at_once(desk):
    desk.agent().stop()
    said = desk("agents", "dev", "--forget", "etl-01")
    assert (said.code, said.out, said.err) == (0, "Forgot etl-01 in dev.\n", "")
    assert not (desk.control / agent_key("etl-01")).exists()


def test_an_agent_that_fell_silent_is_watched_for_its_span_and_then_forgotten(desk):
    desk.agent()
    body = codec.parse((desk.control / agent_key("etl-01")).read_bytes())
    body |= {"heartbeat_at": "2027-01-15T09:00:00Z", "stale_after": "2027-01-15T09:00:01Z", "grace_seconds": 0.1}
    desk.file(agent_key("etl-01"), codec.dump(body).decode())
    said = desk("agents", "dev", "--forget", "etl-01", "--json")
    assert said.code == 0
    assert said.json == {"env": "dev", "forgotten": "etl-01"}
    assert "watched for up to 1.1 s" in said.err


@pytest.mark.parametrize(("name", "code"), [("etl-09", 3), ("../release", 2)])
def test_an_agent_that_is_not_there_can_not_be_forgotten(desk, name, code):
    assert desk("agents", "dev", "--forget", name).code == code


def test_an_agent_that_an_open_request_names_is_kept_and_not_watched_in_vain(desk):
    desk.agent()
    desk.status("r1", RequestState.RUNNING)
    said = desk("agents", "dev", "--forget", "etl-01")
    assert said.code == 4
    assert "an open request names it" in said.err
    assert "watched" not in said.err
    assert (desk.control / agent_key("etl-01")).exists()


# The same on clocks that only move when told.


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store(clock):
    return MemoryStore(clock)


def announced(store, clock, **changed) -> Presence:
    about = AgentRecord(
        name="etl-01", state=AgentState.RUNNING, instance="i1", host="h", env="dev", **{"status_seconds": 30, **changed}
    )
    presence = Presence(
        store, "dev", "etl-01", "i1", lambda: about, 90.0, clock, FakeIds("b"), FakeProcesses(), lambda _: None
    )
    presence.tick()
    return presence


def forget(store, clock, told=None):
    told = [] if told is None else told
    return forget_agent(
        store,
        "etl-01",
        clock=clock,
        ids=FakeIds(),
        watching=lambda record, seconds: told.append((record.name, seconds)),
    )


def test_a_silent_agent_is_forgotten_after_its_whole_span_and_grace_by_this_clock(store, clock):
    announced(store, clock)
    told, began = [], clock.now
    assert forget(store, clock, told).name == "etl-01"
    assert told == [("etl-01", 150.0)]
    assert 150 <= clock.now - began < 155
    assert store.read(agent_key("etl-01")) is None


def test_a_record_that_looks_old_is_watched_all_the_same(store, clock):
    announced(store, clock)
    clock.now += 1_000_000
    began = clock.now
    forget(store, clock)
    assert clock.now - began >= 150


def test_an_agent_that_beats_while_it_is_watched_stays(store, clock):
    presence = announced(store, clock)
    began = clock.now

    class Beating(FakeClock):
        def sleep(self, seconds):
            super().sleep(seconds)
            clock.now = self.now
            if self.now - began >= 30:
                presence.tick()

    with pytest.raises(Refused, match="it is not lost"):
        forget(store, Beating(clock.now))
    assert clock.now - began < 40
    assert store.read(agent_key("etl-01")) is not None


def test_an_agent_that_removes_its_record_meanwhile_is_not_found(store, clock):
    announced(store, clock)

    class Removing(FakeClock):
        def sleep(self, seconds):
            super().sleep(seconds)
            blob = store.read(agent_key("etl-01"))
            if blob is not None:
                store.delete(agent_key("etl-01"), Match(blob.etag))

    with pytest.raises(NotFound):
        forget(store, Removing(clock.now))


@pytest.mark.parametrize(
    "changed",
    [{"stale_after": None, "status_seconds": None}, {"grace_seconds": 2 * LONGEST_WATCH_SECONDS}],
    ids=["no span", "a span of hours"],
)
def test_an_agent_that_can_not_be_watched_long_enough_is_kept_at_once(store, clock, changed):
    record = AgentRecord(name="etl-01", state=AgentState.RUNNING, **{"status_seconds": 30, **changed})
    store.write(agent_key("etl-01"), codec.dump(record.to_json()), Absent())
    told, began = [], clock.now
    with pytest.raises(Refused, match="it is not lost"):
        forget(store, clock, told)
    assert (told, clock.now) == ([], began)


def test_a_name_that_is_no_agents_is_refused_before_the_store_is_asked(clock):
    with pytest.raises(BadId):
        forget_agent(None, "..", clock=clock, ids=FakeIds(), watching=lambda *_: None)


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_request_that_ended_names_nobody(store, state):
    put(store, "r1", state)
    assert names_open_request(store, "etl-01") is False


@pytest.mark.parametrize("state", [RequestState.ACCEPTED, RequestState.RUNNING])
def test_an_open_request_names_its_holder_alone(store, state):
    put(store, "r1", state)
    assert names_open_request(store, "etl-01") is True
    assert names_open_request(store, "etl-02") is False


def test_with_a_status_that_can_not_be_read_it_is_not_known_unless_another_names_it(store):
    store.write("status/r0.json", b"{", Absent())
    assert names_open_request(store, "etl-01") is None
    put(store, "r1", RequestState.ACCEPTED)
    assert names_open_request(store, "etl-01") is True


def put(store, name, state):
    record = Status(id=name, env="dev", state=state, op="o", agent="etl-01")
    store.write(f"status/{name}.json", codec.dump(record.to_json()), Absent())
