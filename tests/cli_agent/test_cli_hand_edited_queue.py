"""A row of the queue that somebody edited by hand: the job is named with the way out, and the way out works."""

import contextlib
import sqlite3

import pytest
from cli_agent_kit import Desk

from fdagent.queue.db import NAME


def edit(desk: Desk, statement: str, *values: str) -> None:
    with contextlib.closing(sqlite3.connect(desk.home / NAME)) as database, database:
        database.execute(statement, values)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("entities", "{"),
        ("entities", "[5]"),
        ("entities", "5"),
        ("entities", '"silver.orders"'),
        ("entities", '{"a": 1}'),
        ("entities", "null"),
        ("tables", "["),
        ("tables", "[]"),
        ("tables", '{"silver.orders": 5}'),
    ],
)
@pytest.mark.parametrize(
    "words", [["status"], ["status", "--json"], ["job", "job1"], ["why", "job1"], ["cancel", "job1"]]
)
def test_a_broken_row_names_its_job_and_the_way_out(desk, words, column, value):
    desk.job()
    edit(desk, f"update job set {column} = ?", value)
    said = desk(*words)
    text = said.json["error"] + said.json["fix"] if "--json" in words else said.err
    assert said.code == 1
    assert "Job 'job1' in the queue can't be read: " in text
    assert ".." not in text
    assert f"Stop the agent, then mend or delete that row of the table job in its home's {NAME}." in text


def test_deleting_the_row_makes_the_queue_readable_again(desk):
    desk.job()
    desk.job("job2")
    edit(desk, "update job set entities = '{' where id = 'job1'")
    assert desk("status").code == 1
    edit(desk, "delete from job where id = 'job1'")
    shot = desk("status", "--json").json
    assert [job["id"] for job in shot["unfinished"]] == ["job2"]
