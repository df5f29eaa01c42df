"""What every store must do, asked of each: memory, local folder, Azurite over http with a key, over https with a token."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fdagent.errors import BadKey, Conflict, Unknown
from fdagent.ports import Absent, Match
from fdagent.stores.cell import StoreCell
from fdagent.stores.sightings import Sightings
from fdagent.system import SystemClock
from models.step import Write

LOST = (Conflict, Unknown)


def test_a_record_that_is_not_there_reads_as_none(store):
    assert store.read("status/none.json") is None


def test_a_created_record_reads_back_with_the_etag_it_was_created_with(store):
    etag = store.write("status/a.json", b'{"n": 1}', Absent())
    blob = store.read("status/a.json")
    assert (blob.body, blob.etag) == (b'{"n": 1}', etag)
    assert 0 <= blob.age < 60


def test_a_second_create_is_a_conflict_and_changes_nothing(store):
    etag = store.write("status/a.json", b"first", Absent())
    with pytest.raises(Conflict):
        store.write("status/a.json", b"second", Absent())
    assert store.read("status/a.json").body == b"first"
    assert store.read("status/a.json").etag == etag


def test_a_replace_of_the_version_read_lands_and_changes_the_etag(store):
    first = store.write("status/a.json", b"1", Absent())
    second = store.write("status/a.json", b"2", Match(first))
    assert second != first
    assert (store.read("status/a.json").body, store.read("status/a.json").etag) == (b"2", second)


def test_a_replace_of_an_older_version_is_a_conflict_and_changes_nothing(store):
    first = store.write("status/a.json", b"1", Absent())
    store.write("status/a.json", b"2", Match(first))
    with pytest.raises(Conflict):
        store.write("status/a.json", b"3", Match(first))
    assert store.read("status/a.json").body == b"2"


def test_a_replace_of_a_record_that_is_gone_never_succeeds_and_creates_nothing(store):
    etag = store.write("status/a.json", b"1", Absent())
    store.delete("status/a.json", Match(etag))
    with pytest.raises(LOST):
        store.write("status/a.json", b"2", Match(etag))
    assert store.read("status/a.json") is None


def test_a_delete_of_the_version_read_leaves_nothing(store):
    etag = store.write("cancel/a.json", b"x", Absent())
    store.delete("cancel/a.json", Match(etag))
    assert store.read("cancel/a.json") is None
    assert list(store.list("cancel/")) == []


def test_a_stale_owner_never_deletes_the_new_lock(store):
    old = store.write("leases/gold.sales.json", b'{"op": "a"}', Absent())
    store.delete("leases/gold.sales.json", Match(old))
    new = store.write("leases/gold.sales.json", b'{"op": "b"}', Absent())
    with pytest.raises(LOST):
        store.delete("leases/gold.sales.json", Match(old))
    assert store.read("leases/gold.sales.json").etag == new


def test_a_delete_of_what_is_gone_never_claims_to_have_done_it(store):
    etag = store.write("cancel/a.json", b"x", Absent())
    store.delete("cancel/a.json", Match(etag))
    with pytest.raises(LOST):
        store.delete("cancel/a.json", Match(etag))


def test_the_same_content_written_again_is_another_version_once_the_clock_has_ticked(store):
    first = store.write("status/a.json", b"same", Absent())
    end = time.monotonic() + 5
    second = store.write("status/a.json", b"same", Match(first))
    while second == first and time.monotonic() < end:
        second = store.write("status/a.json", b"same", Match(second))
    assert second != first


def test_a_listing_names_what_reads_name(store):
    etags = {f"requests/r{n}.json": store.write(f"requests/r{n}.json", b"x" * n, Absent()) for n in range(1, 6)}
    store.write("status/r1.json", b"other folder", Absent())
    entries = store.list("requests/")
    assert [(e.key, e.etag, e.size) for e in entries] == [(key, etags[key], n) for n, key in enumerate(etags, 1)]
    assert all(0 <= entry.age < 60 for entry in entries)
    assert all(store.read(e.key).etag == e.etag for e in entries)


def test_a_listing_may_be_asked_for_the_beginning_of_a_name(store):
    for key in ("status/ab.json", "status/abc.json", "status/b.json"):
        store.write(key, b"x", Absent())
    assert [entry.key for entry in store.list("status/ab")] == ["status/ab.json", "status/abc.json"]
    assert list(store.list("status/zz")) == []


def test_a_listing_of_everything_goes_through_the_folders(store):
    keys = ["agents/etl-01.json", "incidents/incidents.json", "release.json"]
    for key in reversed(keys):
        store.write(key, b"x", Absent())
    assert [entry.key for entry in store.list("")] == keys


def test_a_listing_of_a_folder_that_was_never_written_to_is_empty(store):
    assert list(store.list("requests/")) == []


def test_a_listing_follows_every_change_at_once(store):
    seen = []
    etag = store.write("status/a.json", b"0", Absent())
    for n in range(1, 6):
        seen.append([entry.etag for entry in store.list("status/")] == [etag])
        etag = store.write("status/a.json", str(n).encode(), Match(etag))
    store.delete("status/a.json", Match(etag))
    assert seen == [True] * 5
    assert list(store.list("status/")) == []


def test_an_empty_record_and_a_large_one_come_back_whole(store):
    large = bytes(range(256)) * 1024
    store.write("status/empty.json", b"", Absent())
    store.write("status/large.json", large, Absent())
    assert store.read("status/empty.json").body == b""
    assert store.read("status/large.json").body == large


@pytest.mark.parametrize(
    "key",
    [
        *("", "/", "a//b.json", "/etc/passwd", "status/", "../x.json", "status/../../x.json", "status/./x.json"),
        *(
            "status\\x.json",
            "status/a%2e.json",
            "status/a b.json",
            "status/a\n.json",
            "status/a\0.json",
            "status/é.json",
        ),
        *("status/.hidden", "status/x.", "status/con.json", "status/NUL", "status/COM1.json", "C:/x.json", "a:b"),
        *("status/" + "x" * 141, "a/b/c/d/e.json", "status/*.json", "status/~x.json", ".locks/00", ".tmp/x"),
    ],
)
def test_a_key_that_no_record_may_have_is_refused_by_every_call(store, key):
    """Case 22: `..` and separators in ids that become paths."""
    for call in (
        lambda: store.read(key),
        lambda: store.write(key, b"x", Absent()),
        lambda: store.write(key, b"x", Match("1")),
        lambda: store.delete(key, Match("1")),
    ):
        with pytest.raises(BadKey):
            call()
    assert list(store.list("")) == []


@pytest.mark.parametrize("prefix", ["../", "/", "status/../", "status//", ".", "a b", "status/%", "status\\", "con/"])
def test_a_prefix_that_no_key_has_is_refused(store, prefix):
    with pytest.raises(BadKey):
        store.list(prefix)


@pytest.mark.parametrize(
    "key", ["requests/sched-hourly-20270115T0900Z.json", "leases/_maintenance.json", "release.json"]
)
def test_the_keys_of_the_contract_are_taken(store, key):
    store.write(key, b"{}", Absent())
    assert [entry.key for entry in store.list(key)] == [key]


def test_a_clock_offset_is_known_once_the_store_was_asked(store):
    store.read("status/a.json")
    assert abs(store.clock_offset()) < 5


@pytest.mark.parametrize("round_", range(3))
def test_of_sixteen_creators_exactly_one_wins(backend, round_):
    outcomes = race(backend, lambda store, n: store.write("leases/t.x.json", f"{n}".encode(), Absent()))
    winner = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, str)]
    assert len(winner) == 1, outcomes
    assert backend.store.read("leases/t.x.json").body == f"{winner[0]}".encode()
    # Whether a create of the same second was ever there can't always be told from what is there now.
    assert all(isinstance(outcome, str | Conflict | Unknown) for outcome in outcomes)


@pytest.mark.parametrize("round_", range(3))
def test_of_sixteen_replacers_of_one_version_exactly_one_wins(backend, round_):
    etag = backend.store.write("leases/t.x.json", b"old", Absent())
    outcomes = race(backend, lambda store, n: store.write("leases/t.x.json", f"{n}".encode(), Match(etag)))
    winner = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, str)]
    assert len(winner) == 1, outcomes
    assert backend.store.read("leases/t.x.json").body == f"{winner[0]}".encode()
    assert all(isinstance(outcome, str | Conflict) for outcome in outcomes)


def test_of_sixteen_deleters_exactly_one_knows_that_it_won(backend):
    etag = backend.store.write("leases/t.x.json", b"old", Absent())
    outcomes = race(backend, lambda store, n: store.delete("leases/t.x.json", Match(etag)))
    assert sum(outcome is None for outcome in outcomes) == 1, outcomes
    assert all(outcome is None or isinstance(outcome, LOST) for outcome in outcomes)


def test_a_create_refused_while_another_write_comes_and_goes_leaves_nobody_without_a_claim(backend):
    """Case 2: a conflict, then no object. Everyone who reads again and judges gets his turn."""
    turns = []

    def claim(store, n):
        for _ in range(500):
            try:
                etag = store.write("leases/t.x.json", f"{n}".encode(), Absent())
            except LOST:
                # Unknown where the store can't tell: what is there now tells whose it is, and it is not this one's.
                assert (blob := store.read("leases/t.x.json")) is None or blob.body != f"{n}".encode()
                time.sleep(0.002 * (1 + n % 4))
                continue
            turns.append(n)
            store.delete("leases/t.x.json", Match(etag))
            return "had its turn"
        return "starved"

    assert race(backend, claim, 8) == ["had its turn"] * 8
    assert sorted(turns) == list(range(8))


def test_a_cell_writes_what_its_arrow_says(store):
    cell = StoreCell(store, "agents/etl-01.json", json.loads, lambda record: json.dumps(record).encode())
    assert cell.read() == (None, "")
    first = cell.write(Write.CREATE, {"n": 1}, "")
    assert cell.read() == ({"n": 1}, first)
    with pytest.raises(Conflict):
        cell.write(Write.CREATE, {"n": 9}, "")
    second = cell.write(Write.REPLACE, {"n": 2}, first)
    with pytest.raises(Conflict):
        cell.write(Write.DELETE, None, first)
    assert cell.write(Write.DELETE, None, second) == ""
    assert cell.read() == (None, "")


def test_a_reader_sees_a_record_unchanged_only_while_nobody_writes_it(backend):
    sightings, clock = Sightings(SystemClock()), SystemClock()
    first = backend.store.write("leases/t.x.json", b"1", Absent())
    for _ in range(2):
        asked = clock.elapsed()
        sightings.listed("leases/", backend.store.list("leases/"), asked=asked)
    assert sightings.unchanged_for("leases/t.x.json", first) is not None
    second = backend.open().write("leases/t.x.json", b"2", Match(first))
    sightings.listed("leases/", backend.store.list("leases/"))
    assert sightings.unchanged_for("leases/t.x.json", first) is None
    assert sightings.unchanged_for("leases/t.x.json", second) == 0


def race(backend, action, count=16):
    """What each of `count` rivals, all let go at once, got from `action(store, n)`: its answer or its error."""
    gate = threading.Barrier(count)

    def rival(n):
        store = backend.open()
        gate.wait(20)
        try:
            return action(store, n)
        except (Conflict, Unknown) as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(rival, range(count)))
