"""A request ended by a person, in the version that was seen."""

import json

import pytest
from cli_agent_kit import Desk

from models import codec
from models.status import RequestState, Status


def put(desk: Desk, state: RequestState = RequestState.RUNNING, *, op: str = "s1") -> None:
    record = Status(id="r1", env="dev", state=state, op=op, agent="etl-09", instance="i9", agents=("etl-09",))
    desk.file("status/r1.json", codec.dump(record.to_json()).decode())


def kept(desk: Desk) -> dict[str, object]:
    found: dict[str, object] = json.loads((desk.control / "status/r1.json").read_text(encoding="utf-8"))
    return found


def test_a_request_of_an_agent_without_a_record_is_ended_by_the_command_that_why_shows(desk):
    put(desk)
    said = desk("why", "r1").out
    command = next(
        line for line in said.replace("`", "\n").splitlines() if line.startswith("fdagent request dev --abandon")
    )
    ended = desk(*command.split()[1:])
    assert ended.code == 0
    assert "Ended r1 as failed. etl-09" in ended.out
    status = kept(desk)
    assert status["state"] == "failed"
    assert str(status["reason"]).startswith("Abandoned by ")
    assert status["agents"] == ["etl-09"]


def test_it_stands_in_the_audit_log_as_a_persons(desk):
    desk.home.mkdir(parents=True, exist_ok=True)
    put(desk)
    desk("request", "dev", "--abandon", "r1", "--op", "s1")
    [line] = [
        json.loads(line)
        for file in desk.home.rglob("audit-people.*.log")
        for line in file.read_text(encoding="utf-8").splitlines()
        if '"abandon"' in line
    ]
    assert (line["chart"], line["from"], line["to"], line["env"]) == ("request", "running", "failed", "dev")
    assert line["person"]


@pytest.mark.parametrize("state", [RequestState.ACCEPTED, RequestState.RUNNING])
def test_another_version_than_the_one_that_was_named_goes_on(desk, state):
    put(desk, state, op="s2")
    said = desk("request", "dev", "--abandon", "r1", "--op", "s1")
    assert said.code == 4
    assert "Request r1 was not abandoned: another version is there than the one that was named." in said.err
    assert "fdagent why r1" in said.err
    assert kept(desk)["state"] == str(state)


def test_a_final_status_never_changes(desk):
    put(desk, RequestState.SUCCEEDED)
    said = desk("request", "dev", "--abandon", "r1", "--op", "s1")
    assert said.code == 4
    assert "Request r1 was not abandoned: it has ended succeeded." in said.err
    assert kept(desk)["state"] == "succeeded"


def test_a_request_that_no_agent_has_taken_is_cancelled_instead(desk):
    desk("request", "dev", "--id", "r1")
    said = desk("request", "dev", "--abandon", "r1", "--op", "s1")
    assert said.code == 3
    assert "No agent has taken a request r1." in said.err
    assert "--cancel" in said.err
    assert not (desk.control / "status/r1.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--abandon", "r1"), "--abandon r1 needs --op."),
        (("--op", "s1"), "--op belongs to --abandon."),
        (("--abandon", "r1", "--op", "s1", "--cancel", "r1"), "can't both be asked for"),
        (("--abandon", "../r1", "--op", "s1"), "request id"),
        (("--abandon", "r1", "--op", "s1", "--wait"), "posted, or one is ended, not both"),
        (("silver.orders", "--cancel", "r1"), "posted, or one is ended, not both"),
    ],
)
def test_a_wish_that_makes_no_sense_touches_nothing(desk, words, said):
    put(desk)
    answer = desk("request", "dev", *words)
    assert answer.code == 2
    assert said in answer.err
    assert kept(desk)["state"] == "running"
    assert not (desk.control / "requests").exists() or not list((desk.control / "requests").iterdir())
