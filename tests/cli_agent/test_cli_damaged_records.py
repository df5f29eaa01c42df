"""A shared record that can't be read: every command names its file and what may safely become of it."""

import pytest
from cli_agent_kit import TABLE, Desk

from fdagent.fleet.asking import post_request
from models.slot import Request

WAYS = {
    "agents/etl-b.json": "Delete that file: the agent of that name, if it lives, writes it anew",
    "status/r1.json": "Once no agent works on it, delete first requests/r1.json, for which it would be run anew, and then",
    f"leases/{TABLE}.json": "Delete that file once no worker is at that table.",
}
DAMAGES = ["[]", "{", "", '{"contract": "one"}', "\x00" * 9]
HOUR = 3600.0


def post(desk: Desk, name: str = "r1") -> None:
    about = Request(submitted_by="ann", deadline=desk.clock.wall() + HOUR)
    post_request(desk.store, name, about, clock=desk.clock, ids=desk.ids)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("agents/etl-b.json", ["why", "dev/etl-b"]),
        ("agents/etl-b.json", ["agents", "dev", "--forget", "etl-b"]),
        ("status/r1.json", ["why", "dev/r1"]),
        ("status/r1.json", ["request", "dev", "--abandon", "r1", "--op", "x"]),
        (f"leases/{TABLE}.json", ["why", f"dev/{TABLE}", "--kind", "lease"]),
        (f"leases/{TABLE}.json", ["lease", "break", "dev", TABLE, "--op", "x"]),
    ],
    ids=str,
)
def test_a_damaged_record_is_named_with_the_way_out_and_left_as_it_is(desk, key, words, damage):
    desk.file(key, damage)
    said = desk(*words)
    assert said.code == 2
    assert said.err.startswith(f"Error: The record {key} of the control root can't be used: The ")
    assert WAYS[key] in said.err
    assert (desk.control / key).read_text() == damage


def test_a_damaged_ledger_is_named(desk):
    from fdagent.cli.reasons.incidents import LEDGER_KEY

    desk.file(LEDGER_KEY, "[]")
    assert f"The record {LEDGER_KEY} of the control root can't be used: " in desk("why", "dev/ledger").err


def test_a_record_of_a_newer_version_is_named_and_not_to_be_deleted(desk):
    desk.file("agents/etl-b.json", '{"contract": 99}')
    said = desk("agents", "dev", "--forget", "etl-b")
    assert "The record agents/etl-b.json of the control root can't be used: " in said.err
    assert "Leave it to a newer version" in said.err
    assert "elete" not in said.err


def test_deleting_in_the_order_that_is_said_ends_the_request_and_runs_nothing_anew(desk):
    post(desk)
    desk.file("status/r1.json", "[]")
    assert "delete first requests/r1.json" in desk("why", "dev/r1").err
    (desk.control / "requests/r1.json").unlink()
    (desk.control / "status/r1.json").unlink()
    assert desk("queue", "dev", "--json").json["requests"] == []


def test_a_damaged_release_is_not_taken_for_none(desk):
    post(desk)
    (desk.project / "agent.toml").write_text(
        '[agent]\nname = "etl-01"\nproject = "."\nenvironments = ["dev"]\n[pipeline]\nenabled = true\n'
    )
    desk.file("release.json", "[]")
    said = desk("why", "r1", "--config", "agent.toml").out
    assert "Nothing was promoted" not in said
    assert "The record release.json of the control root can't be used: " in said
    assert "Mend or remove it, then promote." in said
