"""The daemon's lines on a terminal and elsewhere, its files while somebody reads, and the log of what people did."""

import io
import json
from types import SimpleNamespace

import pytest
from status_kit import Tty

from fdagent.daemon.logs import PEOPLE, Log, log_files
from fdagent.system import SystemClock


def log(folder, out, **options):
    made = Log(folder, out, {"agent": "etl-01", "host": "vm"}, SystemClock(), **options)
    made.tell("warning", "worker_killed", "Worker etl-01/1 is ended.", job_id="j1", env="dev", run_id="r" * 32)
    made.close()
    return out.getvalue() if out else ""


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_a_pipe_gets_json_and_a_terminal_gets_colour(tmp_path):
    (line,) = log(tmp_path, io.StringIO()).splitlines()
    assert json.loads(line)["job_id"] == "j1"
    assert "\x1b" not in line
    shown = log(tmp_path, Tty())
    assert "\x1b[33mwarning" in shown
    assert "Worker etl-01/1 is ended." in shown
    assert "worker_killed job_id=j1 env=dev" in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_whoever_wants_no_colours_gets_the_words(tmp_path, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    shown = log(tmp_path, Tty())
    assert "\x1b" not in shown
    assert "warning" in shown
    assert not shown.startswith("{")


def test_the_old_console_of_windows_gets_no_codes(tmp_path, monkeypatch):
    monkeypatch.setattr("fdagent.daemon.terminal.sys", SimpleNamespace(platform="win32"))
    monkeypatch.delenv("TERM")
    monkeypatch.delenv("WT_SESSION", raising=False)
    assert "\x1b" not in log(tmp_path, Tty())
    monkeypatch.setenv("WT_SESSION", "1")
    assert "\x1b[33m" in log(tmp_path, Tty())


def test_what_a_line_says_can_not_command_the_terminal(tmp_path):
    out = Tty()
    made = Log(tmp_path, out, {}, SystemClock())
    made.tell("info", "x", "a\x1b[2Jb\nc", entity="e", path="\x1b]0;title\x07")
    made.close()
    assert "\x1b[2J" not in out.getvalue()
    assert "\x1b]0" not in out.getvalue()
    assert out.getvalue().count("\n") == 1


def test_the_file_has_every_field_whatever_the_terminal_shows(tmp_path):
    log(tmp_path, Tty())
    (file,) = log_files(tmp_path)
    assert set(json.loads(file.read_text())) == {
        "ts", "level", "event", "message", "agent", "host", "job_id", "env", "run_id",
    }  # fmt: skip


def test_a_reader_who_keeps_a_file_open_reads_it_to_its_end_while_the_log_goes_on(tmp_path):
    made = Log(tmp_path, None, {}, SystemClock(), file_bytes=500, kept=3)
    made.tell("info", "n", "0")
    (first,) = log_files(tmp_path)
    with first.open(encoding="utf-8") as reader:
        for number in range(1, 40):
            made.tell("info", "n", str(number))
        made.close()
        read = [json.loads(line)["message"] for line in reader]
    assert read == [str(number) for number in range(len(read))]
    assert not first.exists(), "the oldest are removed"
    kept = [json.loads(line)["message"] for file in log_files(tmp_path) for line in file.read_text().splitlines()]
    assert kept == [str(number) for number in range(40 - len(kept), 40)]


# What people did


def noted(home):
    files = log_files(home.path / "logs", PEOPLE)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_each_transition_of_a_persons_command_is_one_line_with_who_it_was(home, monkeypatch):
    monkeypatch.setattr("fdagent.cli.homes.person", lambda: "ada")
    home.path.mkdir()
    home("promote", "dev", "--yes")
    job = home("enqueue", "dev", "--json").json["id"]
    home("cancel", job)
    home("retry", job)
    home("request", "dev", "--id", "r1")
    home("request", "dev", "--cancel", "r1")
    lines = noted(home)
    assert [(line["chart"], line["event"], line["key"]) for line in lines] == [
        ("release", "promote", "release.json"),
        ("job", "enqueue", job),
        ("job", "cancel", job),
        ("job", "revive", job),
        ("slot", "post", "requests/r1.json"),
        ("wish", "post", "cancel/r1.json"),
    ]
    assert {line["person"] for line in lines} == {"ada"}
    assert [line.get("env") for line in lines] == ["dev", None, None, None, "dev", "dev"]
    assert all(line["op"] and line["ts"] and line["host"] for line in lines)


def test_what_was_refused_or_only_looked_at_is_not_noted(home):
    home("promote", "dev", "--yes")
    home.path.mkdir()
    home.ended("a")
    home("retry", "a", code=4)
    home("status")
    home("job", "a")
    home("request", "dev", "--cancel", "nothere", code=3)
    assert noted(home) == []


def test_a_pause_is_noted_with_its_end(home):
    config = home.agent_toml('[[schedule]]\nid = "nightly"\nenv = "dev"\ndaily = ["02:30"]\n')
    home("schedule", "pause", "nightly", "--until", "2099-01-15T09:00:00Z", "--config", config)
    home("schedule", "resume", "nightly", "--config", config)
    assert [(line["event"], line["to"], line["key"]) for line in noted(home)] == [
        ("pause", "paused until 2099-01-15T09:00:00Z", "nightly"),
        ("resume", "not paused", "nightly"),
    ]


def test_no_home_is_made_to_note_something_in(home):
    home("promote", "dev", "--yes")
    assert not home.path.exists()


def test_what_can_not_be_noted_is_done_and_said(home):
    home("promote", "dev", "--yes")
    home.path.mkdir()
    (home.path / "logs").write_text("in the way")
    said = home("enqueue", "dev")
    assert said.out.startswith("Queued ")
    assert "could not be noted" in said.err
