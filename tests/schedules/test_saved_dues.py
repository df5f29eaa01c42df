"""Due times survive what happens to files: a lost queue, a lost `dues.json`, a full disk, an old record."""

import json
import os
import sqlite3
from dataclasses import replace

import pytest
from schedule_kit import DAY, MINUTE, Rig, TwoClocks, at, daily, minutely, outcomes

from fdagent.errors import DiskFull, HomeDenied, Unavailable
from fdagent.fleet.presence import agent_cell, agent_key
from fdagent.ports import Absent
from fdagent.queue import dues as dues_module
from fdagent.queue.db import APPLICATION_ID, SCHEMA_VERSION, Database
from fdagent.queue.dues import FILE, FOREVER
from fdagent.stores.memory import MemoryStore
from models import codec
from models.agent import AgentRecord, AgentState
from models.agent import Schedule as RecordedSchedule
from models.step import Write


@pytest.fixture
def rig(tmp_path):
    made = Rig(daily("02:00"), home=tmp_path / "home")
    yield made
    made.database.close()


def saved(rig: Rig) -> dict:
    return json.loads((rig.home / FILE).read_text())["schedules"]


# A lost queue file


def test_after_the_queue_file_was_lost_nothing_runs_again(rig):
    rig.tick("2027-01-15 09:00")
    rig.tick("2027-01-16 02:00")
    rig.lose_the_queue()
    assert rig.tick("2027-01-16 09:00") == []
    assert rig.view().last_due == at("2027-01-16 02:00")
    assert outcomes(rig.tick("2027-01-17 02:00")) == ["2027-01-17 02:00 ran"]


def test_after_the_queue_file_was_lost_what_was_missed_meanwhile_runs_once(rig):
    rig.tick("2027-01-15 09:00")
    rig.tick("2027-01-16 02:00")
    rig.lose_the_queue()
    assert outcomes(rig.tick("2027-01-20 09:00")) == ["2027-01-20 02:00 ran; missed: 3 collapsed"]


def test_a_pause_outlives_the_queue_file(rig):
    rig.tick("2027-01-15 09:00")
    rig.schedules.pause("d", FOREVER)
    rig.dues.save()
    rig.lose_the_queue()
    assert [entry.words for entry in rig.tick("2027-01-18 09:00")] == ["paused, as 2 before it"]


def test_a_person_who_pauses_one_schedule_of_a_lost_queue_loses_no_other_ones_due_time(tmp_path):
    rig = Rig(daily("02:00"), minutely(), home=tmp_path)
    rig.tick("2027-01-15 09:00")
    rig.tick("2027-01-16 02:00")
    rig.lose_the_queue()
    rig.schedules.pause("m", FOREVER)
    rig.dues.save()
    assert saved(rig)["d"]["mark"] == at("2027-01-16 02:00")
    rig.start()
    assert {entry.schedule for entry in rig.tick("2027-01-16 09:00")} == {"m"}


def test_a_clock_that_is_set_back_after_the_queue_was_lost_runs_nothing_again(rig):
    rig.tick("2027-01-15 09:00")
    rig.tick("2027-01-16 02:00")
    rig.tick("2027-01-17 02:00")
    rig.lose_the_queue()
    assert rig.tick("2027-01-15 12:00") == []
    assert rig.tick("2027-01-16 02:30") == []
    assert "ahead" not in rig.view().note
    assert rig.tick("2027-01-17 02:30") == []
    rig.work()
    assert outcomes(rig.tick("2027-01-18 02:00")) == ["2027-01-18 02:00 ran"]
    assert len(rig.sentences("schedule_trouble")) == 1


def test_marks_from_a_clock_that_was_years_ahead_are_told_and_a_person_can_count_anew(rig):
    rig.tick("2099-01-15 09:00")
    rig.tick("2099-01-16 02:00")
    rig.lose_the_queue()
    assert rig.tick("2027-01-15 09:00") == []
    assert "2099-01-16T02:00:00Z" in rig.sentences("schedule_trouble")[0]
    rig.schedules.resume("d", rig.clock.now)
    assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]


def test_an_older_queue_file_that_somebody_put_back_runs_nothing_again(rig):
    rig.tick("2027-01-15 09:00")
    rig.tick("2027-01-16 02:00")
    rig.database.close()
    backup = (rig.home / "queue.sqlite3").read_bytes()
    rig.database = Database(rig.home)
    rig.start()
    rig.work()
    assert len(rig.tick("2027-01-17 02:00")) == 1
    rig.database.close()
    (rig.home / "queue.sqlite3").write_bytes(backup)
    rig.database = Database(rig.home)
    rig.start()
    assert rig.tick("2027-01-17 09:00") == []
    assert rig.tick("2027-01-16 12:00") == []
    assert rig.tick("2027-01-17 02:00") == []
    assert outcomes(rig.tick("2027-01-18 02:00"))[0].startswith("2027-01-18 02:00")


def test_an_older_queue_file_with_other_times_counts_as_the_file_beside_it_says(rig):
    rig.tick("2027-01-15 09:00")
    rig.database.close()
    backup = (rig.home / "queue.sqlite3").read_bytes()
    rig.database = Database(rig.home)
    rig.start(daily("03:00"))
    rig.tick("2027-01-16 03:00")
    rig.database.close()
    (rig.home / "queue.sqlite3").write_bytes(backup)
    rig.database = Database(rig.home)
    rig.start()
    assert outcomes(rig.tick("2027-01-19 09:00")) == ["2027-01-19 03:00 ran; missed: 2 collapsed"]


# dues.json


def test_the_file_beside_the_queue_follows_each_change(rig):
    rig.tick("2027-01-15 09:00")
    assert saved(rig)["d"] == {"rule": "daily at 02:00 (UTC)", "mark": at("2027-01-15 09:00"), "paused_until": None}
    rig.tick("2027-01-16 02:00:10")
    assert saved(rig)["d"]["mark"] == at("2027-01-16 02:00")


def test_an_older_file_beside_the_queue_changes_nothing(rig):
    rig.tick("2027-01-15 09:00")
    old = (rig.home / FILE).read_bytes()
    rig.tick("2027-01-16 02:00")
    (rig.home / FILE).write_bytes(old)
    rig.work()
    rig.start()
    assert rig.tick("2027-01-16 09:00") == []


def test_after_a_clock_was_set_back_a_file_from_before_that_does_not_count(rig):
    rig.tick("2027-01-15 09:00")
    rig.tick("2099-01-15 09:00")
    ahead = (rig.home / FILE).read_bytes()
    rig.tick("2027-01-15 10:00")
    (rig.home / FILE).write_bytes(ahead)
    rig.work()
    rig.start()
    assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]


def test_without_the_file_the_queue_counts(rig):
    rig.tick("2027-01-15 09:00")
    (rig.home / FILE).unlink()
    rig.start()
    assert rig.tick("2027-01-15 10:00") == []
    assert saved(rig)["d"]["mark"] == at("2027-01-15 09:00")
    assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"null",
        b"\xff\xfe\x00",
        b'{"schedules": []}',
        b'{"schedules": {"d": {}}}',
        b'{"schedules": {"d": {"rule": 1, "mark": 1, "paused_until": null}}}',
        b'{"schedules": {"d": {"rule": "r", "mark": "1", "paused_until": null}}}',
        b'{"schedules": {"d": {"rule": "r", "mark": true, "paused_until": null}}}',
        b'{"schedules": {"d": {"rule": "r", "mark": NaN, "paused_until": null}}}',
        b'{"schedules": {"d": {"rule": "r", "mark": 1e999, "paused_until": null}}}',
        b'{"schedules": {"d": {"rule": "r", "mark": 1, "paused_until": "no"}}}',
        b'{"schedules": {"d": {"rule": "r", "mark": 1}}}',
        b"[" * 100_000,
    ],
)
def test_a_file_that_is_no_such_file_is_told_and_written_anew(rig, content):
    rig.tick("2027-01-15 09:00")
    (rig.home / FILE).write_bytes(content)
    rig.start()
    assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]
    assert len(rig.sentences("dues_unreadable")) == 1
    assert saved(rig)["d"]["mark"] == at("2027-01-16 02:00")


def test_a_folder_in_the_place_of_the_file_stops_no_run_and_is_told(rig):
    rig.tick("2027-01-15 09:00")
    (rig.home / FILE).unlink()
    (rig.home / FILE).mkdir()
    rig.start()
    rig.clock.now = at("2027-01-16 02:00")
    with pytest.raises(HomeDenied, match=r"dues\.json can't be written"):
        rig.duty.tick()
    assert [entry.words for entry in rig.ledger()] == ["ran"]


def test_while_the_disk_is_full_due_times_go_on_and_the_file_follows_once_there_is_room(rig, monkeypatch):
    rig.tick("2027-01-15 09:00")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _no_room)
        rig.clock.now = at("2027-01-16 02:00")
        with pytest.raises(DiskFull, match=r"dues\.json"):
            rig.duty.tick()
        assert [entry.words for entry in rig.ledger()] == ["ran"]
        assert saved(rig)["d"]["mark"] == at("2027-01-15 09:00")
        with pytest.raises(DiskFull):
            rig.duty.tick()
    assert rig.tick() == []
    assert saved(rig)["d"]["mark"] == at("2027-01-16 02:00")


def _no_room(_handle):
    raise OSError(28, "No space left on device")


def test_a_process_that_dies_between_the_ledger_and_the_file_leaves_both_readable(rig, monkeypatch):
    rig.tick("2027-01-15 09:00")
    with monkeypatch.context() as patch:
        patch.setattr(dues_module, "_replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        rig.clock.now = at("2027-01-16 02:00")
        with pytest.raises(KeyboardInterrupt):
            rig.duty.tick()
    rig.start()
    assert rig.tick("2027-01-16 02:01") == []
    rig.work()
    assert outcomes(rig.tick("2027-01-17 02:00")) == ["2027-01-17 02:00 ran"]


def test_a_due_time_that_runs_again_because_both_were_lost_has_the_same_run_key(rig):
    rig.tick("2027-01-15 09:00")
    before = (rig.home / FILE).read_bytes()
    rig.tick("2027-01-16 02:00")
    (first,) = rig.work()
    rig.database.close()
    (rig.home / FILE).write_bytes(before)
    rig.lose_the_queue()
    rig.tick("2027-01-16 02:05")
    (second,) = rig.work()
    assert (first.run_key, first.id != second.id) == (second.run_key, True)


def test_an_earlier_versions_queue_file_gets_the_ledger_where_it_lies(tmp_path):
    Database(tmp_path).close()
    raw = sqlite3.connect(tmp_path / "queue.sqlite3")
    raw.executescript("drop table due; drop table schedule; pragma user_version = 1;")
    raw.execute("insert into wish values ('drain', 'asked')")
    raw.commit()
    raw.close()
    rig = Rig(minutely(), home=tmp_path)
    rig.tick()
    assert [entry.words for entry in rig.go(MINUTE)] == ["ran"]
    assert rig.jobs.wish("drain") == "asked"
    assert [row[0] for row in rig.database.rows("pragma user_version")] == [SCHEMA_VERSION]
    assert [row[0] for row in rig.database.rows("pragma application_id")] == [APPLICATION_ID]
    rig.database.close()


# The agent's record


def store_with(*schedules: RecordedSchedule) -> MemoryStore:
    store = MemoryStore(TwoClocks())
    record = AgentRecord(name="etl-01", state=AgentState.STOPPED, op="op", env="dev", schedules=schedules)
    store.write(agent_key("etl-01"), codec.dump(record.to_json()), Absent())
    return store


def recorded(schedule: str = "d", **changed: object) -> RecordedSchedule:
    base = RecordedSchedule(id=schedule, when="daily at 02:00 (UTC)", last_due_at=at("2027-01-16 02:00"))
    return replace(base, **changed)


def test_with_queue_and_file_lost_the_agents_own_record_says_what_has_run():
    rig = Rig(daily("02:00"), stores={"dev": store_with(recorded())})
    rig.clock.now = at("2027-01-20 09:00")
    rig.schedules.records("dev", rig.clock.now)
    assert outcomes(rig.tick()) == ["2027-01-20 02:00 ran; missed: 3 collapsed"]


def test_a_record_knows_a_due_time_by_the_second_and_that_is_enough():
    schedule = minutely(every_minutes=0.025)
    last = at("2027-01-15 09:00:01")  # the due time was half a second later
    store = store_with(recorded("m", when="every 0.025 minutes", last_due_at=last))
    rig = Rig(schedule, stores={"dev": store})
    rig.schedules.records("dev", rig.clock.now)
    assert rig.tick("2027-01-15 09:00:02.9") == []
    (entry,) = rig.tick("2027-01-15 09:00:03")
    assert entry.due == at("2027-01-15 09:00:03")


@pytest.mark.parametrize(
    "other",
    [
        recorded(when="daily at 03:00 (UTC)"),
        recorded(when=None),
        recorded("another"),
        recorded(last_due_at=None),
        RecordedSchedule(),
    ],
)
def test_a_record_of_other_times_says_nothing_about_these(other):
    rig = Rig(daily("02:00"), stores={"dev": store_with(other)})
    rig.schedules.records("dev", rig.clock.now)
    assert rig.dues.standings() == {}


def test_an_older_record_changes_nothing():
    rig = Rig(daily("02:00"), stores={"dev": store_with(recorded())})
    rig.tick("2027-01-20 09:00")
    rig.schedules.records("dev", rig.clock.now)
    assert rig.dues.standings()["d"].mark == at("2027-01-20 09:00")


def test_after_a_clock_was_set_back_a_record_from_before_that_does_not_count():
    store = store_with(recorded(last_due_at=at("2099-01-15 02:00")))
    rig = Rig(daily("02:00"), stores={"dev": store})
    rig.tick("2027-01-15 09:00")
    rig.tick("2099-01-15 09:00")
    rig.work()
    rig.tick("2027-01-15 10:00")
    rig.start()
    rig.schedules.records("dev", rig.clock.now)
    assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]


def test_the_record_is_read_once_and_before_it_is_written_over():
    store = store_with(recorded())
    rig = Rig(daily("02:00"), stores={"dev": store})
    (first,) = rig.schedules.records("dev", at("2027-01-16 09:00"))
    assert first.last_due_at is not None
    assert int(first.last_due_at) == at("2027-01-16 02:00")
    found, tag = agent_cell(store, "etl-01").read()
    assert found is not None
    newer = replace(found, schedules=(recorded(last_due_at=at("2027-03-01 02:00")),))
    agent_cell(store, "etl-01").write(Write.REPLACE, newer, tag)
    (second,) = rig.schedules.records("dev", at("2027-01-16 09:00"))
    assert second.last_due_at == first.last_due_at


def test_while_the_record_cannot_be_read_it_is_not_described_and_schedules_run_all_the_same(monkeypatch):
    store = store_with(recorded())
    rig = Rig(daily("02:00"), stores={"dev": store})
    with monkeypatch.context() as patch:
        patch.setattr(store, "read", lambda _: (_ for _ in ()).throw(Unavailable("The store is away.")))
        rig.tick("2027-01-15 09:00")
        with pytest.raises(Unavailable):
            rig.schedules.records("dev", rig.clock.now)
        assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]
    assert len(rig.schedules.records("dev", rig.clock.now)) == 1


def test_what_the_record_says_of_a_schedule():
    rig = Rig(
        daily("02:00", "14:00", entities=("silver.*",), time_zone="Europe/Berlin"), minutely(env="prod"), stores={}
    )
    rig.tick("2027-01-15 09:00")
    rig.tick("2027-01-15 13:00")
    rig.schedules.pause("d", at("2027-01-17 00:00"))
    (record,) = rig.schedules.records("dev", rig.clock.now)
    assert record.to_json() == {
        "id": "d",
        "entities": ["silver.*"],
        "when": "daily at 02:00, 14:00 (Europe/Berlin)",
        "time_zone": "Europe/Berlin",
        "shared": False,
        "last_due_at": "2027-01-15T13:00:00Z",
        "next_due_at": "2027-01-17T01:00:00Z",
        "paused_until": "2027-01-17T00:00:00Z",
        "fingerprint": record.fingerprint,
    }
    assert [one.id for one in rig.schedules.records("prod", rig.clock.now)] == ["m"]


def test_thirty_days_of_lost_files_are_bridged_by_the_record_alone():
    store = store_with(recorded("m", when="every minute", last_due_at=at("2027-01-15 09:00")))
    rig = Rig(minutely(), stores={"dev": store})
    rig.clock.now = at("2027-01-15 09:00") + 30 * DAY
    rig.schedules.records("dev", rig.clock.now)
    assert [entry.words for entry in rig.tick()] == ["ran; missed: 43199 collapsed"]
