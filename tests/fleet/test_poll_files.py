"""What a poll makes of the files it finds, of every ugliness, and what it sweeps away."""

import json
from dataclasses import replace

import pytest

from fdagent.errors import Unavailable
from fdagent.fleet.records import cancel_key, dump, request_key, status_key
from fdagent.stores.local import LocalStore
from models.slot import DAY
from models.status import RequestState, Status

# Found


def test_a_half_written_file_is_waited_for_and_runs_once_it_is_whole(fleet, a):
    fleet.post("r1", body=b'{"entities": ["bron')
    fleet.go(50, a)
    assert fleet.state("r1") == "absent"
    fleet.put(request_key("r1"), b'{"entities": ["bronze.orders"]}')
    a.tick()
    assert fleet.state("r1") == "accepted"
    assert a.job("r1").entities == ("bronze.orders",)


def test_a_file_that_grows_is_waited_for_from_its_last_change(fleet, a):
    fleet.post("r1", body=b'{"ent')
    fleet.go(50, a)
    fleet.put(request_key("r1"), b'{"entities": ["bron')
    fleet.go(50, a)
    assert fleet.state("r1") == "absent"
    fleet.go(20, a)
    assert fleet.state("r1") == "rejected"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"a": 1, "a": 2}',
        b'{"deadline": NaN}',
        b'{"entities": []}',
        b'{"entities": "bronze.orders"}',
        b'{"backfill": "some"}',
        b'{"deadline": "tomorrow"}',
        b"\xff\xfe\x00\xd8",
        b"\x00" * 300_000,
        b"[" * 100_000,
    ],
    ids=range(12),
)
def test_a_file_that_is_no_request_is_rejected_after_a_minute_with_the_reason_and_hides_no_other(fleet, a, body):
    fleet.post("a-bad", body=body)
    fleet.post("b-good")
    a.tick()
    assert (fleet.state("a-bad"), fleet.state("b-good")) == ("absent", "accepted")
    fleet.go(60, a)
    status = fleet.status("a-bad")
    assert status.state == "rejected"
    assert len(status.reason) > 20
    assert a.job("a-bad") is None


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_what_powershell_writes_is_accepted(fleet, a, encoding):
    fleet.post("r1", body='{"entities": ["bronze.orders"], "submitted_by": "Jörg"}\r\n'.encode(encoding))
    a.tick()
    assert (fleet.state("r1"), a.job("r1").entities) == ("accepted", ("bronze.orders",))


@pytest.mark.parametrize("entity", ["../x", "silver.gone", "..", "C:\\x", "silver/orders", "nowhere.*"])
def test_entities_that_the_promoted_version_lacks_are_rejected_at_once(fleet, a, entity):
    fleet.post("r1", entities=(entity,))
    a.tick()
    assert (fleet.state("r1"), a.job("r1")) == ("rejected", None)


def test_entities_are_not_judged_by_a_version_that_is_not_the_promoted_one(fleet, a):
    a.promoted = "another"
    fleet.post("r1", entities=("silver.gone",))
    fleet.go(300, a)
    assert fleet.state("r1") == "absent"


def test_ids_that_are_no_ids_are_rejected_where_a_status_may_lie_and_told_where_none_may(tmp_path, fleet):
    store = LocalStore(tmp_path / "root", clock=fleet.true, ids=fleet.ids)
    fleet.store = store
    agent = fleet.agent("etl-01")
    agent.tick()
    folder = tmp_path / "root" / "requests"
    folder.mkdir(exist_ok=True)
    long = "x" * 65
    for name in ("..evil", "a b", "con", ".hidden", "ünï", "a%2e%2e", "good", long):
        (folder / f"{name}.json").write_text("{}")
    (folder / "half.json.tmp").write_text("{")
    (folder / "sub").mkdir()
    (folder / "sub" / "x.json").write_text("{}")
    before = {path for path in tmp_path.rglob("*") if path.parent.name not in ("status", "agents")}
    agent.tick()
    told = [entry[-2] for entry in agent.log if entry[1] == "file_ignored"]
    assert all(any(name in said for said in told) for name in ("..evil", "a b", "con", "ünï", "a%2e%2e"))
    assert fleet.state("good") == "accepted"
    fleet.go(60, agent)
    assert fleet.state(long) == "rejected"
    assert "65 characters" in fleet.status(long).reason
    assert len([entry for entry in agent.log if entry[1] == "file_ignored"]) == len(told), "told once"
    statuses = sorted(path.name for path in (tmp_path / "root" / "status").iterdir())
    assert statuses == sorted(["good.json", f"{long}.json"])
    after = {path for path in tmp_path.rglob("*") if path.parent.name not in ("status", "agents")}
    assert {path for path in after - before if "lock" not in str(path)} == {tmp_path / "root" / "status"}


def test_of_ids_equal_but_for_case_the_first_is_served_and_the_other_rejected(fleet, a):
    fleet.post("run-A")
    fleet.post("RUN-a")
    a.tick()
    assert (fleet.state("RUN-a"), fleet.state("run-A")) == ("accepted", "rejected")
    assert "letter case" in fleet.status("run-A").reason
    a.do("RUN-a")
    fleet.post("Run-A")
    a.tick()
    assert fleet.state("Run-A") == "rejected", "an id that was used is used in every letter case"


def test_an_id_that_a_kept_job_has_in_another_case_does_not_take_that_jobs_end_for_its_own(fleet, a):
    fleet.post("run-A")
    a.tick()
    a.do("run-A")
    fleet.remove(request_key("run-A"))
    fleet.remove(status_key("run-A"))
    fleet.post("RUN-A")
    a.tick()
    fleet.go(60, a)
    assert fleet.state("RUN-A") == "failed"
    assert "letter case" in fleet.status("RUN-A").reason


def test_a_newer_contracts_files_are_left_alone(fleet, a):
    fleet.post("r1", body=b'{"contract": 2, "entities": {"all": true}}')
    fleet.post("r2")
    fleet.put(status_key("r2"), json.dumps({"contract": 2, "state": "thinking"}).encode())
    before = fleet.store.read(status_key("r2")).body
    fleet.go(300, a)
    assert (fleet.state("r1"), a.job("r2")) == ("absent", None)
    assert fleet.store.read(status_key("r2")).body == before


# Swept


def ended_long_ago(fleet, a, name="r1", **fields):
    fleet.post(name, **fields)
    a.tick()
    a.do(name)
    fleet.time.now += 15 * DAY
    a.beat()


def test_what_ended_long_ago_is_swept_request_first_then_wish_then_status(fleet, a):
    ended_long_ago(fleet, a)
    fleet.wish("r1")
    a.view.calls.clear()
    a.tick()
    assert [key for call, key in a.view.calls if call == "delete"] == [
        request_key("r1"),
        cancel_key("r1"),
        status_key("r1"),
    ]
    assert fleet.state("r1") == "absent"


def test_a_sweep_that_is_cut_off_is_gone_on_with_and_nothing_is_claimed_in_between(fleet, a):
    ended_long_ago(fleet, a)
    for key in (request_key("r1"), status_key("r1")):
        a.view.fault = lambda call, met, key=key: "down" if (call, met) == ("delete", key) else None
        a.mailbox._sweeper._swept_at = float("-inf")
        with pytest.raises(Unavailable):
            a.mailbox.tick()
        assert fleet.state("r1") == "succeeded"
        assert a.job("r1").state == "succeeded"
    a.view.fault = lambda call, key: None
    a.mailbox._sweeper._swept_at = float("-inf")
    a.mailbox.tick()
    assert fleet.state("r1") == "absent"


def test_a_deadline_ahead_keeps_what_ended_long_ago(fleet, a):
    ended_long_ago(fleet, a, deadline=fleet.time.now + 30 * DAY)
    a.tick()
    assert fleet.store.read(request_key("r1")) is not None


def test_what_nobody_could_read_is_swept_too_and_a_newer_contract_keeps_no_other_from_it(fleet, a):
    fleet.post("a-newer", body=b'{"contract": 2}')
    old = Status(
        id="a-newer", env="dev", state=RequestState.SUCCEEDED, finished_at=fleet.time.now, deadline=fleet.time.now
    )
    fleet.put(status_key("a-newer"), dump(old))
    fleet.post("b-bad", body=b"{")
    fleet.post("c-first-version", body=b"{}")
    fleet.put(status_key("c-first-version"), dump(replace(old, id="c-first-version", deadline=None)))
    a.tick()
    fleet.go(60, a)
    assert fleet.state("b-bad") == "rejected"
    fleet.time.now += 16 * DAY
    a.beat()
    a.tick()
    assert [fleet.state(name) for name in ("a-newer", "b-bad", "c-first-version")] == ["succeeded", "absent", "absent"]
    assert fleet.store.read(request_key("a-newer")) is not None
    assert fleet.store.read(request_key("b-bad")) is None


def test_an_orphan_cancel_file_is_swept_by_its_age(fleet, a):
    fleet.wish("nothing")
    fleet.go(700, a, step=350)
    assert fleet.store.read(cancel_key("nothing")) is not None
    fleet.time.now += 15 * DAY
    a.beat()
    a.tick()
    assert fleet.store.read(cancel_key("nothing")) is None


def test_three_agents_sweep_the_same_without_trouble(fleet, a, b):
    ended_long_ago(fleet, a)
    b.beat()
    b.mailbox.look.poll()
    a.tick()
    b.mailbox._sweeper.turn()
    assert fleet.state("r1") == "absent"
    assert not [entry for entry in b.log if entry[1] == "request_trouble"]
