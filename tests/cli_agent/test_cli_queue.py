"""`queue`: an environment's requests as a person reads them; and sentences on a terminal."""

import io
import os

import pytest
from cli_agent_kit import Desk
from rich.text import Text

from fdagent.cli import main, view
from fdagent.fleet.asking import post_request
from models import codec
from models.slot import Request
from models.status import RequestState, Status

HOUR = 3600.0


def post(desk: Desk, name: str, **about) -> None:
    post_request(desk.store, name, Request(**about), clock=desk.clock, ids=desk.ids)


def put(desk: Desk, name: str, state: RequestState, **about) -> None:
    record = Status(id=name, env="dev", state=state, op="s1", agent="etl-02", **about)
    desk.file(f"status/{name}.json", codec.dump(record.to_json()).decode())


def line(desk: Desk, name: str) -> str:
    return next(line for line in desk("queue", "dev").out.splitlines() if line.startswith(name))


def test_an_open_request_says_when_it_expires_and_one_that_ended_when_it_did(desk):
    now = desk.clock.wall()
    post(desk, "waits", deadline=now + HOUR + 30)
    post(desk, "late", deadline=now - 600)
    put(desk, "done", RequestState.SUCCEEDED, finished_at=now - 1589, deadline=now + HOUR)
    assert "expires in 1 h 00 min" in line(desk, "waits")
    assert "overdue for 10 min" in line(desk, "late")
    assert "ended 26 min" in line(desk, "done")


def test_a_request_that_was_taken_over_names_both_agents(desk):
    put(desk, "r1", RequestState.RUNNING, agents=("etl-01", "etl-02"), taken_over_from="etl-01")
    assert "etl-01 → etl-02" in line(desk, "r1")
    [row] = desk("queue", "dev", "--json").json["requests"]
    assert (row["agents"], row["taken_over_from"]) == (["etl-01", "etl-02"], "etl-01")


def test_what_other_programs_wrote_into_a_request_is_never_obeyed_by_the_terminal(desk):
    put(desk, "r1", RequestState.FAILED, error="\x1b]0;owned\x07", agents=("\x1b[31mx",), finished_at=0.0)
    desk.file("requests/b\x1b[31m.json", "{}")
    said = desk("queue", "dev")
    assert said.code == 0
    assert "\x1b" not in said.out
    assert r"\x1b]0;owned\x07" in said.out


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 80, 140])
def test_an_error_on_a_terminal_breaks_between_words_and_loses_none(columns, monkeypatch):
    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))
    what, fix = "The configuration in /srv/some-where/agent.toml has problems. " * 4, "Mend them, and try again. " * 5
    problems = ("one: " + "word " * 30,)
    assert main._fail(what.strip(), fix.strip(), 2, as_json=False, problems=problems) == 2
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(out.getvalue().split()) == " ".join(f"Error: {what} - {problems[0]} {fix}".split())
    assert any(line.startswith("    word") for line in lines) or columns == 140


def test_a_sentence_behind_something_goes_on_below_itself(monkeypatch, capsys):
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("COLUMNS", "40")
    view.hanging(Text("no   "), "its request file is gone, or could not be looked up in the mailbox")
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("no   its")
    assert more
    assert all(one.startswith("     ") and len(one) <= 40 for one in more)


@pytest.mark.parametrize("words", [["silver.order"], ["silver.order", "--cascade"], ["platinum.*", "silver.orders"]])
def test_a_request_for_what_this_project_does_not_have_is_posted_with_a_warning(desk, words):
    said = desk("request", "dev", *words, "--id", "r1")
    assert (said.code, "Posted r1." in said.out) == (0, True)
    assert said.err.startswith(f"Warning: No entity of this project is named or matched by `{words[0]}`. ")
    assert said.err.endswith("It is rejected unless the promoted version has it.\n")
    assert (desk.control / "requests/r1.json").exists()


@pytest.mark.parametrize("words", [[], ["silver.orders"], ["silver.*", "bronze.orders"]])
def test_a_request_for_what_this_project_has_warns_of_nothing(desk, words):
    assert desk("request", "dev", *words).err == ""
