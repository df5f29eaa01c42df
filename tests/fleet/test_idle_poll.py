"""What a poll costs where nothing has changed."""

import time

from fleet_kit import Fleet

from fdagent.fleet.folder import Folder
from fdagent.fleet.records import dump, parser
from fdagent.ports import Blob, Entry
from fdagent.stores.local import LocalStore
from models.slot import Request
from models.status import RequestState, Status

MANY = 10_000
MOST_SECONDS = 0.010


def fastest(do, times=20):
    spent = []
    for _ in range(times):
        before = time.perf_counter()
        do()
        spent.append(time.perf_counter() - before)
    return min(spent)


def test_an_idle_poll_beside_ten_thousand_finished_requests_takes_under_ten_milliseconds(tmp_path):
    fleet = Fleet()
    for folder in ("requests", "status"):
        (tmp_path / folder).mkdir()
    request = dump(Request(deadline=fleet.time.now + 9))
    for number in range(MANY):
        status = Status(
            id=f"r{number}",
            env="dev",
            state=RequestState.SUCCEEDED,
            finished_at=fleet.time.now,
            deadline=fleet.time.now + 9,
        )
        (tmp_path / "requests" / f"r{number}.json").write_bytes(request)
        (tmp_path / "status" / f"r{number}.json").write_bytes(dump(status))
    fleet.store = LocalStore(tmp_path, clock=fleet.true, ids=fleet.ids)
    agent = fleet.agent("etl-01")
    agent.tick()
    agent.view.calls.clear()
    # The first polls scan again: a folder that changed within the last second may have changed since.
    spent = fastest(agent.mailbox.tick, 200)
    assert {call for call, _ in agent.view.calls} == {"list"}, "an idle poll reads nothing"
    print(f"{spent * 1000:.2f} ms an idle poll")
    assert spent < MOST_SECONDS


def test_a_listing_that_is_new_but_the_same_is_read_no_more():
    class Again:
        reads = 0

        def list(self, prefix):
            return tuple(Entry(f"requests/r{number}.json", f"e{number}", 1.0, 2) for number in range(MANY))

        def read(self, key):
            self.reads += 1
            return Blob(b"{}", key.replace("requests/r", "e").removesuffix(".json"), 1.0)

    store = Again()
    folder = Folder(store, "requests/", parser(Request), Fleet().true)
    folder.poll()
    assert (store.reads, len(folder.changed)) == (MANY, MANY)
    folder.noted()
    folder.poll()
    assert (store.reads, folder.changed) == (MANY, frozenset())
