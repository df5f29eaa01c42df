"""Which leases an agent calls left alone: what it tells its workers, who take them at once."""

import pytest
from fakes import FakeClock

from fdagent.fleet.look import Look, Me
from fdagent.ports import Absent, Match
from fdagent.stores.memory import MemoryStore
from models import codec
from models.agent import AgentRecord, AgentState
from models.lease import Lease
from models.liveness import lost_after_seconds

SPAN, BEAT = 300.0, 30.0
TABLE = "silver.orders"
KEY = f"leases/{TABLE}.json"


class Watcher:
    """An agent called `me` that polls a store in which others come and go."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.look = Look("dev", self.store, Me("me", "now", "here"), self.clock)
        self.n = 0

    def put(self, key: str, record: AgentRecord | Lease) -> None:
        found = self.store.read(key)
        self.store.write(key, codec.dump(record.to_json()), Absent() if found is None else Match(found.etag))

    def beat(self, name: str = "etl-02", instance: str = "theirs") -> AgentRecord:
        self.n += 1
        record = AgentRecord(
            name=name, state=AgentState.RUNNING, op=f"a{self.n}", instance=instance, status_seconds=BEAT
        )
        self.put(f"agents/{name}.json", record)
        return record

    def lease(self, agent: str = "etl-02", instance: str | None = "theirs", *, op: str | None = None) -> str:
        self.n += 1
        op = f"l{self.n}" if op is None else op
        self.put(KEY, Lease(table=TABLE, op=op, agent=agent, instance=instance, seconds=SPAN))
        return op

    def pass_(self, seconds: float, *, renewed: bool = False) -> None:
        """Time goes by, polled every ten seconds."""
        until = self.clock.elapsed() + seconds
        while self.clock.elapsed() < until:
            self.clock.sleep(10)
            if renewed:
                self.lease()
            self.look.poll()

    def left(self, *, holds_name: bool = True) -> dict[str, str]:
        return self.look.left_alone(holds_name=holds_name)


@pytest.fixture
def watcher():
    return Watcher()


def lost_after(record: AgentRecord) -> float:
    seconds = lost_after_seconds(record)
    assert seconds is not None
    return seconds


def test_what_a_lost_agent_leased_is_left_alone_once_it_was_not_renewed_for_half_its_span(watcher):
    record, op = watcher.beat(), watcher.lease()
    watcher.look.poll()
    watcher.pass_(lost_after(record) - 20)
    assert watcher.left() == {}
    watcher.pass_(30)
    assert watcher.left() == {TABLE: op}


def test_a_lease_that_a_worker_goes_on_renewing_is_not_though_its_agent_is_lost(watcher):
    """A daemon that was stopped, or killed while a person works its queue, has workers that live."""
    record = watcher.beat()
    watcher.lease()
    watcher.look.poll()
    watcher.pass_(2 * lost_after(record), renewed=True)
    assert watcher.left() == {}


def test_what_another_start_of_a_lost_agents_name_leased_is_not(watcher):
    record = watcher.beat()
    watcher.lease(instance="until-idle")
    watcher.look.poll()
    watcher.pass_(lost_after(record) + SPAN)
    assert watcher.left() == {}


def test_an_agent_that_beats_keeps_what_it_leased(watcher):
    watcher.beat()
    watcher.lease()
    for _ in range(20):
        watcher.pass_(BEAT)
        watcher.beat()
        watcher.look.poll()
    assert watcher.left() == {}


def test_what_an_earlier_start_of_this_agent_leased_is_left_alone_where_this_one_holds_the_name(watcher):
    op = watcher.lease("me", "before the reboot")
    watcher.look.poll()
    watcher.pass_(SPAN / 2 - 20)
    assert watcher.left() == {}
    watcher.pass_(30)
    assert watcher.left() == {TABLE: op}
    assert watcher.left(holds_name=False) == {}


@pytest.mark.parametrize("instance", ["now", None])
def test_what_this_start_leased_or_nobody_knows_which_is_not(watcher, instance):
    watcher.lease("me", instance)
    watcher.look.poll()
    watcher.pass_(2 * SPAN)
    assert watcher.left() == {}


def test_a_lease_without_an_op_or_that_can_not_be_read_is_not_and_hides_no_other(watcher):
    record, op = watcher.beat(), watcher.lease()
    watcher.store.write("leases/gold.a.json", b"{", Absent())
    nameless = Lease(table="gold.b", op="", agent="etl-02", instance="theirs", seconds=SPAN)
    watcher.put("leases/gold.b.json", nameless)
    watcher.look.poll()
    watcher.pass_(lost_after(record) + SPAN)
    assert watcher.left() == {TABLE: op}
