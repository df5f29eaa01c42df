"""What a poll asks of the store where nothing has changed; what it costs is measured by the bench."""

from finished import agent_beside
from fleet_kit import Fleet

from fdagent.fleet.folder import Folder
from fdagent.fleet.records import parser
from fdagent.ports import Blob, Entry
from models.slot import Request

MANY = 10_000


def test_an_idle_poll_beside_finished_requests_reads_none_of_them(tmp_path):
    agent = agent_beside(tmp_path, 1_000)
    agent.view.calls.clear()
    for _ in range(10):
        agent.mailbox.tick()
    assert {call for call, _ in agent.view.calls} == {"list"}


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
