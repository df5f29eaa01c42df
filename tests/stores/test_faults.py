"""A client behind a network that loses, cuts, delays, repeats, holds and fails: it never reports a wrong outcome."""

import random
import threading
import time
from collections import Counter

import azurite
import pytest
from faultproxy import FAULTS, Proxy

from fdagent.errors import StoreError, Unavailable, Unknown
from fdagent.ports import Absent, Match
from fdagent.stores.blobauth import SharedKey
from fdagent.system import SystemClock, SystemIds

pytestmark = pytest.mark.azurite

PATIENCE = 0.12
KEYS = ["leases/a.json", "leases/b.json", "status/c.json", "status/d.json"]


class Hasty(SystemClock):
    """Pauses between tries a fiftieth as long."""

    def sleep(self, seconds):
        super().sleep(seconds / 50)


class Ops(SystemIds):
    """Remembers the op of the last write."""

    def new(self):
        self.last = super().new()
        return self.last


def behind(server, container, proxy, client):
    ids = Ops()
    store = server.store(
        container,
        port=proxy.port,
        clock=Hasty(),
        ids=ids,
        client=client,
        auth=SharedKey(azurite.ACCOUNT, azurite.KEY, SystemClock()),
    )
    return store, ids


@pytest.mark.long
def test_a_thousand_faults_over_races_of_create_replace_and_delete_never_report_a_wrong_outcome(http_server):
    container = http_server.new_container()
    said: list[tuple[str, str, str]] = []
    end = time.monotonic() + 100
    with Proxy(http_server.port, PATIENCE, lambda method: 0.15 if method == "GET" else 0.6, seed=7) as proxy:

        def rival(n):
            chance = random.Random(n)
            with http_server.new_client(try_seconds=PATIENCE) as client:
                store, ids = behind(http_server, container, proxy, client)
                while proxy.count("PUT", "DELETE") < 1000 and time.monotonic() < end:
                    said.append((*one_change(store, ids, chance),))

        rivals = [threading.Thread(target=rival, args=(n,)) for n in range(8)]
        [thread.start() for thread in rivals]
        [thread.join(120) for thread in rivals]
    assert proxy.count("PUT", "DELETE") >= 1000
    outcomes = Counter(outcome for _, _, outcome in said)
    landed = Counter(landing.op for landing in proxy.landed)
    wrong = [one for one in said if is_wrong(*one, landed)]
    print(dict(outcomes))
    assert wrong == []
    assert {fault for (method, fault) in proxy.faults if method == "PUT"} == set(FAULTS)
    assert min(outcomes[name] for name in ("done", "Conflict", "Unknown")) > 10, outcomes
    assert all(n == 1 for op, n in landed.items() if op in {op for kind, op, _ in said if kind == "replace"})


def one_change(store, ids, chance):
    """One logical change of one key: (what, op, outcome)."""
    key = chance.choice(KEYS)
    try:
        blob = store.read(key)
    except Unavailable:
        return "read", "", "Unavailable"
    kind = "create" if blob is None else chance.choice(["replace", "replace", "delete"])
    body = b'{"op": "%d"}' % chance.getrandbits(60)
    try:
        if kind == "create":
            store.write(key, body, Absent())
        elif kind == "replace":
            store.write(key, body, Match(blob.etag))
        else:
            store.delete(key, Match(blob.etag))
    except StoreError as error:
        return kind, ids.last, type(error).__name__
    return kind, ids.last, "done"


def is_wrong(kind, op, outcome, landed):
    if kind == "read" or outcome == "Unknown":
        return False
    return (outcome == "done") != (landed[op] > 0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_alone_behind_one_fault_is_won_or_unknown_and_a_read_tells_which(http_server, fault):
    """Case 1: a lost answer, then a refusal of the client's own write."""
    container = http_server.new_container()
    once = iter([True])
    with Proxy(
        http_server.port, PATIENCE, lambda method: 1.0 if method == "PUT" and next(once, False) else 0.0
    ) as proxy:
        proxy.random.choice = lambda choices: fault if choices is FAULTS else choices[0]
        with http_server.new_client(try_seconds=PATIENCE) as client:
            store, ids = behind(http_server, container, proxy, client)
            etag = store.write("leases/a.json", b"mine", Absent())
            assert store.read("leases/a.json").etag == etag
    assert proxy.faults["PUT", fault] == 1
    assert [landing.op for landing in proxy.landed] == [ids.last]


def test_a_write_whose_every_try_is_swallowed_is_unknown_and_one_that_never_left_is_not(http_server):
    container = http_server.new_container()
    with Proxy(http_server.port, PATIENCE, lambda method: 1.0) as proxy:
        proxy.random.choice = lambda choices: "lose request" if choices is FAULTS else choices[0]
        with http_server.new_client(try_seconds=PATIENCE) as client:
            store, _ = behind(http_server, container, proxy, client)
            with pytest.raises(Unknown):
                store.write("leases/a.json", b"mine", Absent())
            with pytest.raises(Unknown):
                store.delete("leases/a.json", Match("0x1"))
            with pytest.raises(Unavailable):
                store.read("leases/a.json")
    with http_server.new_client(try_seconds=PATIENCE) as client:
        store, _ = behind(http_server, container, proxy, client)
        with pytest.raises(Unavailable):
            store.write("leases/a.json", b"mine", Absent())
    assert proxy.landed == []


def test_a_delete_whose_answer_is_lost_is_unknown_and_then_absent(http_server):
    container = http_server.new_container()
    once = iter([True])
    with Proxy(
        http_server.port, PATIENCE, lambda method: 1.0 if method == "DELETE" and next(once, False) else 0.0
    ) as proxy:
        proxy.random.choice = lambda choices: "lose answer" if choices is FAULTS else choices[0]
        with http_server.new_client(try_seconds=PATIENCE) as client:
            store, _ = behind(http_server, container, proxy, client)
            etag = store.write("leases/a.json", b"mine", Absent())
            with pytest.raises(Unknown):
                store.delete("leases/a.json", Match(etag))
            assert store.read("leases/a.json") is None


def test_a_listing_behind_faults_is_whole_or_an_error(http_server):
    container = http_server.new_container()
    direct = http_server.store(container)
    keys = [f"requests/r{n:03}.json" for n in range(60)]
    for key in keys:
        direct.write(key, b"{}", Absent())
    whole = errors = 0
    with (
        Proxy(http_server.port, PATIENCE, lambda method: 0.5, seed=3) as proxy,
        http_server.new_client(try_seconds=PATIENCE) as client,
    ):
        store = http_server.store(container, port=proxy.port, clock=Hasty(), client=client, page=7)
        for _ in range(12):
            try:
                assert [entry.key for entry in store.list("requests/")] == keys
                whole += 1
            except Unavailable:
                errors += 1
    assert whole > 0, errors
    assert proxy.count("GET") > 20
