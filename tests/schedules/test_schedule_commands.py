"""`fdagent schedule list, pause, resume`, the schedules of `status`, and what `why` is told."""

import json
import re
import time
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_kit import MINUTE, Rig, at, daily, minutely

from fdagent.cli.main import commands, run
from fdagent.cli.schedule import moment
from fdagent.config.schedules import Schedule
from fdagent.config.shapes import DAYS
from fdagent.errors import UsageError
from fdagent.fleet.due import Times, times_in
from fdagent.fleet.schedules import explain, fingerprint
from fdagent.project.scaffold import write_scaffold
from fdagent.queue.db import Database
from fdagent.queue.dues import Dues
from fdagent.queue.jobs import Jobs
from fdagent.system import SystemClock, SystemIds

AGENT = """
[agent]
name = "etl-01"
project = "."
environments = ["dev"]
home = "home"
time_zone = "Europe/Berlin"

[[schedule]]
id = "nightly"
env = "dev"
daily = ["02:30"]

[[schedule]]
id = "often"
env = "dev"
entities = ["bronze.*"]
every_minutes = 15
time_zone = "UTC"
enabled = false
"""


class Person:
    """Gives commands in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.home, self._capsys = folder, folder / "home", capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        line = [*words, "--config", str(self.folder / "agent.toml")]
        found = run(commands(line), line)
        said = self._capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        assert found == code, said.out + said.err
        return said.out + said.err

    def json(self, *words: str, code: int = 0):
        return json.loads(self(*words, "--json", code=code))


@pytest.fixture
def person(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.delenv("FABRIC_DESKTOP_HOME", raising=False)
    write_scaffold(tmp_path / "p")
    (tmp_path / "p/agent.toml").write_text(AGENT)
    return Person(tmp_path / "p", capsys)


def test_a_list_before_anything_ran_makes_no_file_and_says_when_it_will(person):
    said = person("schedule", "list")
    assert "daily at 02:30 (Europe/Berlin)" in said
    assert "disabled" in said
    assert not person.home.exists()
    first, second = person.json("schedule", "list")["schedules"]
    assert (first["id"], first["env"], first["shared"], first["last_outcome"]) == ("nightly", "dev", False, None)
    assert datetime.fromisoformat(first["next_due_at"]).minute == 30
    assert (second["note"], second.get("next_due_at"), second["enabled"]) == ("disabled", None, False)


def test_a_pause_without_an_end_is_shown_until_it_is_resumed(person):
    assert "fdagent schedule resume nightly" in person("schedule", "pause", "nightly")
    assert "paused until resumed" in person("status")
    (nightly, _) = person.json("status")["schedules"]
    assert (nightly["paused_until"], nightly.get("next_due_at")) == ("9999-12-31T23:59:59Z", None)
    assert "Resumed nightly. It is next due at" in person("schedule", "resume", "nightly")
    (nightly, _) = person.json("schedule", "list")["schedules"]
    assert (nightly.get("paused_until"), nightly["note"]) == (None, None)


def test_a_pause_is_in_the_queue_file_and_beside_it(person):
    person("schedule", "pause", "nightly", "--until", "2099-01-15T09:00:00Z")
    assert json.loads((person.home / "dues.json").read_text())["schedules"]["nightly"]["paused_until"] == at(
        "2099-01-15 09:00"
    )
    database = Database(person.home)
    dues = Dues(Jobs(database, clock=SystemClock(), ids=SystemIds()), person.home)
    assert dues.standings()["nightly"].paused_until == at("2099-01-15 09:00")
    database.close()


def test_a_list_sees_a_pause_whose_queue_file_was_lost(person):
    person("schedule", "pause", "nightly")
    for file in person.home.glob("queue*"):
        file.unlink()
    assert "paused until resumed" in person("schedule", "list")
    assert not (person.home / "queue.sqlite3").exists()


ZONES = ["Asia/Kolkata", "America/St_Johns", "UTC"]
WRITTEN_OUT = re.compile(r"\b(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)")


@pytest.mark.parametrize("zone", ZONES)
def test_every_time_of_a_schedule_is_shown_in_its_own_zone_on_a_machine_of_another(person, zone, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        (person.folder / "agent.toml").write_text(AGENT.replace('"Europe/Berlin"', f'"{zone}"'))
        listed = person("schedule", "list")
        assert {clock for _, clock in WRITTEN_OUT.findall(listed)} == {"02:30:00"}
        assert "02:30" in person("status")
        said = person("schedule", "pause", "nightly", "--until", "2099-01-15T09:00:00Z")
        local = datetime.fromisoformat("2099-01-15T09:00:00+00:00").astimezone(ZoneInfo(zone))
        words = f"{local:%Y-%m-%d %H:%M:%S} ({zone})"
        assert f"until {words}" in said
        assert f"paused until {words}" in " ".join(person("schedule", "list").split())
        assert f"it is paused until {words}" in person("why", "nightly")
        assert "02:30:00" in person("schedule", "resume", "nightly")
        person("schedule", "pause", "nightly", "--until", "9999-12-31T23:59:59Z")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_pause_until_a_local_time_is_this_machines(person):
    found = person.json("schedule", "pause", "nightly", "--until", "2099-07-15 09:00")
    assert found["paused_until"] == "2099-07-15T07:00:00Z"
    assert found["next_due_at"] == "2099-07-16T00:30:00Z"


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2027-01-15T09:00:00Z", "2027-01-15 09:00"),
        ("2027-01-15T09:00:00+02:00", "2027-01-15 07:00"),
        ("2027-01-15 09:00", "2027-01-15 08:00"),
        ("2027-01-15", "2027-01-14 23:00"),
        ("20270115T0900", "2027-01-15 08:00"),
        ("2027-03-28 02:30", "2027-03-28 01:30"),
        ("2027-10-31 02:30", "2027-10-31 00:30"),
    ],
)
def test_a_moment_is_read_as_it_is_written(text, utc, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    assert moment(text, 0) == at(utc)


@pytest.mark.parametrize(
    "text", ["tomorrow", "18:00", "", "2027-13-01", "2027-02-30 10:00", "1e9", "2027-01-15 09:00 CET", "\x1b[2J"]
)
def test_what_is_no_moment_is_refused_with_the_forms_that_are(text):
    with pytest.raises(UsageError, match="is no time") as err:
        moment(text, 0)
    assert "2027-01-15T09:00:00Z" in str(err.value)
    assert "\x1b" not in str(err.value)


@pytest.mark.parametrize("text", ["2020-01-01", "2027-01-15T09:00:00Z", "0001-01-01T00:00:00+14:00"])
def test_a_moment_that_has_passed_is_refused(text):
    with pytest.raises(UsageError):
        moment(text, at("2027-01-15 09:00"))


def test_a_wrong_until_changes_nothing(person):
    assert "is no time" in person("schedule", "pause", "nightly", "--until", "soon", code=2)
    assert "has passed" in person("schedule", "pause", "nightly", "--until", "2020-01-01", code=2)
    assert not person.home.exists()


def test_a_schedule_that_is_not_there_is_named_with_its_nearest(person):
    assert "did you mean `nightly`?" in person("schedule", "pause", "nihgtly", code=3)
    assert "has no schedule 'x'" in person("schedule", "resume", "x", code=3)
    assert person.json("schedule", "resume", "x", code=3)["exit_code"] == 3


def test_without_an_agent_toml_there_are_no_schedules_and_that_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("FABRIC_DESKTOP_AGENT_CONFIG", raising=False)
    write_scaffold(tmp_path / "p")
    for words, code in ((["schedule", "list"], 0), (["schedule", "pause", "x"], 2)):
        line = [*words, "--project", str(tmp_path / "p")]
        assert run(commands(line), line) == code
        said = capsys.readouterr()
        assert "agent.toml" in said.out + said.err


def test_resuming_what_is_not_paused_says_so(person):
    assert "Nothing held up nightly" in person("schedule", "resume", "nightly")
    assert "It is not run: disabled" in person("schedule", "resume", "often")


# What is shown of a schedule


def test_a_schedule_shows_its_next_time_and_what_became_of_the_last():
    rig = Rig(minutely())
    rig.tick()
    assert (rig.view().next_due, rig.view().outcome, rig.view().last_due) == (at("2027-01-15 09:01"), "", None)
    rig.go(MINUTE)
    assert rig.view().outcome == "ran (queued)"
    rig.work()
    assert rig.view().outcome == "ran (succeeded)"
    rig.go(2 * MINUTE)
    assert rig.view().outcome == "skipped: still running"
    rig.work("fail")
    rig.go(MINUTE)
    rig.work("fail")
    assert (rig.view().outcome, rig.view().last_due) == ("ran (failed)", at("2027-01-15 09:04"))


def test_a_due_time_that_no_agent_has_settled_yet_is_shown_as_the_next():
    rig = Rig(daily("02:00"))
    rig.tick("2027-01-15 09:00")
    rig.clock.now = at("2027-01-18 09:00")
    assert rig.view().next_due == at("2027-01-16 02:00")


def test_a_due_time_that_ran_while_the_clock_was_ahead_is_not_shown_as_the_next():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.tick("2027-01-15 09:02:30")
    rig.tick("2027-01-15 09:01:30")
    assert rig.view().next_due == at("2027-01-15 09:03")


def shut(rig: Rig, **more: bool) -> dict[str, str]:
    """What keeps a schedule from running now: condition to sentence."""
    (answer,) = explain(rig.view(), **more)
    failed = {check.guard: check.sentence for check in answer.checks if not check.held}
    assert answer.open is not bool(failed)
    return failed


def test_why_says_of_each_condition_whether_it_holds():
    rig = Rig(daily("02:00"))
    assert shut(rig).keys() == {"seen", "due"}
    rig.tick("2027-01-15 09:00")
    assert shut(rig) == {"due": "it is due at 2027-01-16 02:00:00 (UTC)"}
    rig.clock.now = at("2027-01-16 02:00")
    assert shut(rig) == {}
    assert shut(rig, served=False) == {"served": "no agent of this home serves dev"}
    assert shut(rig, served=True) == {}
    rig.tick()
    rig.clock.now = at("2027-01-17 02:00")
    assert re.fullmatch(r"job job-\d+ of it is unfinished", shut(rig)["run_over"])
    rig.work()
    assert shut(rig) == {}


def test_why_says_that_it_is_paused_disabled_shared_of_no_known_zone_or_ahead_of_the_clock():
    rig = Rig(daily("02:00"))
    rig.tick()
    rig.schedules.pause("d", at("2027-01-20 00:00"))
    assert shut(rig)["not_paused"] == "it is paused until 2027-01-20 00:00:00 (UTC)"
    rig.schedules.pause("d", at("9999-12-31 23:59:59"))
    assert shut(rig) == {"not_paused": "it is paused until a person resumes it", "due": "nothing is due"}
    assert "enabled" in shut(Rig(daily("02:00", enabled=False)))
    assert "own" in shut(Rig(daily("02:00", shared=True)))
    assert "tzdata" in shut(Rig(daily("02:00", time_zone="Mars/Olympus")))["zone_known"]
    rig.dues.change("d", lambda was: was.__class__("d", was.rule, at("2099-01-01"), at("2099-01-01")))
    assert "2099-01-01" in shut(rig)["not_ahead"]


# Fingerprints and words


BASE = Schedule(id="s", env="dev", entities=("a.*", "b.c"), daily=("02:00", "14:00"), time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "t"},
        {"env": "prod"},
        {"entities": ("a.*",)},
        {"entities": ()},
        {"cascade": True},
        {"backfill": "full"},
        {"daily": ("02:00",)},
        {"daily": (), "weekly": ("mon 02:00",)},
        {"daily": (), "every_minutes": 60.0},
        {"time_zone": "Europe/Paris"},
    ],
)
def test_a_copy_that_means_something_else_has_another_fingerprint(changed):
    from dataclasses import replace

    assert fingerprint(replace(BASE, **changed)) != fingerprint(BASE)


def test_copies_that_mean_the_same_have_the_same_fingerprint_whatever_order_they_are_written_in():
    from dataclasses import replace

    other = replace(BASE, entities=("b.c", "a.*"), daily=("14:00", "02:00", "14:00"), shared=True, enabled=False)
    assert fingerprint(other) == fingerprint(BASE)
    every = Schedule(id="s", env="dev", every_minutes=15.0)
    assert fingerprint(replace(every, time_zone="UTC")) == fingerprint(every)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (Times(1), "every minute"),
        (Times(15.0), "every 15 minutes"),
        (Times(0.05), "every 0.05 minutes"),
        (Times(527040.0), "every 527040 minutes"),
        (Times(daily=("02:00", "14:00")), "daily at 02:00, 14:00 (local time)"),
        (Times(weekly=("mon 06:00",), zone="UTC"), "weekly on mon 06:00 (UTC)"),
    ],
)
def test_times_in_words(times, words):
    assert times.words == words


CLOCKS = st.lists(st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59)), min_size=1, max_size=3)
DATED = st.builds("{} {}".format, st.sampled_from(DAYS), CLOCKS.map(lambda found: found[0]))
NAMED = st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia"])


@given(
    st.one_of(
        st.builds(Times, st.integers(1, 100_000).map(float)),
        st.builds(Times, st.just(None), CLOCKS.map(tuple), st.just(()), NAMED),
        st.builds(Times, st.just(None), st.just(()), st.lists(DATED, min_size=1, max_size=3).map(tuple), NAMED),
    )
)
def test_times_are_read_back_from_their_words(times):
    assert times_in(times.words) == times


@pytest.mark.parametrize(
    "words",
    [
        "daily at 02:00 (local time)",
        "daily at 25:00 (UTC)",
        "weekly on 02:00 (UTC)",
        "weekly on mon 2:00 (UTC)",
        "daily at 02:00 (Mars/Phobos)",
        "every 0 minutes",
        f"every {'9' * 400} minutes",
        "every now and then",
        "",
    ],
)
def test_words_that_are_no_times_known_here_are_none(words):
    assert times_in(words) is None
