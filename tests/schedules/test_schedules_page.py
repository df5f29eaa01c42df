"""docs/schedules.md is true: its examples, its outcomes, its clocks, its commands."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from schedule_kit import DAY, HOUR, MINUTE, Rig, at, minutely, utc

from fdagent.cli.main import commands, run
from fdagent.config.load import load_settings
from fdagent.fleet.due import MOST_COUNTED, Times
from fdagent.project.scaffold import write_scaffold
from fdagent.queue.dues import FOREVER, KEPT

PAGE = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def rows(first_column: str) -> list[list[str]]:
    """The rows of the table whose first column is called so."""
    found = re.search(rf"^\| {re.escape(first_column)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found, first_column
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()]


@pytest.mark.parametrize("row", rows("schedule"), ids=lambda row: f"{row[0]} {row[2]}")
def test_each_example_is_due_when_the_page_says(row):
    schedule, zone, asked, due, _ = row
    (key, value), *_ = tomllib.loads(schedule.strip("`")).items()
    times = Times(**{key: value if key == "every_minutes" else tuple(value)}, zone=zone)
    assert utc(times.next_after(at(asked))) == due


def minute_comes(rig: Rig) -> None:
    rig.go(MINUTE)
    rig.work()


def still_running(rig: Rig) -> None:
    rig.go(2 * MINUTE)


def down_for_30_days(rig: Rig) -> None:
    rig.tick(rig.clock.now + 30 * DAY)


def cut_off(rig: Rig) -> None:
    rig.go(MINUTE)
    rig.start()
    rig.tick(rig.clock.now + HOUR)


def paused(rig: Rig) -> None:
    rig.schedules.pause("m", FOREVER)
    rig.go(MINUTE)


def paused_and_down(rig: Rig) -> None:
    rig.schedules.pause("m", FOREVER)
    rig.tick(rig.clock.now + HOUR)


HAPPENINGS = [minute_comes, still_running, down_for_30_days, cut_off, paused, paused_and_down]


@pytest.mark.parametrize(("happens", "row"), zip(HAPPENINGS, rows("what happens"), strict=True))
def test_each_outcome_is_recorded_as_the_page_says(happens, row):
    rig = Rig(minutely())
    rig.tick()
    happens(rig)
    said = re.findall(r"`([^`]+)`", row[1])
    assert said[0] == rig.ledger()[-1].words
    assert said[1:] in ([], [rig.view().outcome])


def test_the_numbers_on_the_page_are_those_of_the_code():
    assert f"The newest {KEPT:,} outcomes" in PAGE
    assert f"More than {MOST_COUNTED:,} missed" in PAGE


def test_the_clock_table_has_a_row_for_each_kind_of_jump_and_they_hold():
    assert len(rows("the clock")) == 3
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00")
    assert [entry.missed for entry in rig.tick("2027-01-15 10:00")] == [59]
    rig.work()
    assert rig.tick("2027-01-15 09:30") == []
    assert [utc(entry.due) for entry in rig.tick("2027-01-15 10:01")] == ["2027-01-15 10:01"]
    rig.work()
    assert len(rig.tick("2050-01-01 00:00")) == 1
    rig.tick("2027-01-15 10:01:30")
    rig.work()
    assert [(utc(entry.due), entry.words) for entry in rig.tick("2027-01-15 10:02")] == [("2027-01-15 10:02", "ran")]


def test_the_pages_agent_toml_loads(tmp_path):
    (tmp_path / "agent.toml").write_text(BLOCKS["toml"])
    found = load_settings(tmp_path / "agent.toml")
    assert [one.id for one in found.schedules] == ["nightly", "often", "rebuild"]
    assert {one.time_zone for one in found.schedules} == {"Europe/Berlin"}


def test_the_pages_commands_work(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("FABRIC_DESKTOP_HOME", raising=False)
    write_scaffold(tmp_path / "p")
    text = BLOCKS["toml"].replace("/srv/fabric-desktop/project", "p") + '\n[identity]\nkind = "managed_identity"\n'
    (tmp_path / "agent.toml").write_text(text.replace("[agent]", '[agent]\nhome = "home"', 1))
    for line in BLOCKS["sh"].splitlines():
        words = [*shlex.split(line, comments=True)[1:], "--config", str(tmp_path / "agent.toml")]
        assert run(commands(words), words) == 0, capsys.readouterr()
    assert "nightly" in capsys.readouterr().out
