"""Why a job or request ended, in words: never a program's word, never the promise of an attempt that will not come."""

import pytest
from cli_agent_kit import Desk

from fdagent.cli.words import REASONS
from fdagent.fleet.asking import post_request
from models import codec
from models.job import CANCEL_REASONS, JobFacts
from models.slot import Request
from models.status import RequestState, Status

BUSY = "Another agent holds silver.orders. It is tried again by itself."


def cancelled(desk: Desk, reason: str) -> None:
    """A job that was to be tried again, and was cancelled instead."""
    job = desk.running()
    jobs = desk.jobs()
    jobs.finish(job, "retry", JobFacts(error=BUSY, retryable=True, wait_seconds=600.0))
    jobs.ask("job1", "cancel", JobFacts(reason=reason))
    jobs.database.close()
    assert (desk.get().state, desk.get().error) == ("cancelled", BUSY)


@pytest.mark.parametrize("reason", CANCEL_REASONS)
def test_a_cancelled_job_says_why_in_words_and_promises_nothing(desk, reason):
    cancelled(desk, reason)
    for words in (["status"], ["job", "job1"], ["why", "job1"]):
        said = desk(*words).out
        assert REASONS[reason] in said, words
        assert "handed_over" not in "".join(line for line in said.splitlines() if "requeue" not in line), words
    assert BUSY not in desk("status").out
    assert "error of its last attempt" in desk("job", "job1").out
    assert desk("job", "job1", "--json").json["reason"] == reason


def test_a_job_that_is_asked_to_stop_says_why_in_words(desk):
    desk.running()
    jobs = desk.jobs()
    jobs.ask("job1", "ask_to_stop", JobFacts(reason="handed_over"))
    jobs.database.close()
    assert f"asked to stop  {REASONS['handed_over']}" in desk("job", "job1").out
    assert REASONS["handed_over"] in desk("why", "job1").out


def test_a_job_that_is_to_be_tried_again_still_says_so(desk):
    jobs, job = desk.jobs(), desk.running()
    jobs.finish(job, "retry", JobFacts(error=BUSY, retryable=True, wait_seconds=600.0))
    jobs.database.close()
    assert BUSY in desk("status").out
    assert BUSY in desk("job", "job1").out


def put(desk: Desk, state: RequestState, **about) -> None:
    record = Status(id="r1", env="dev", state=state, op="s1", agent="etl-02", **about)
    desk.file("status/r1.json", codec.dump(record.to_json()).decode())


@pytest.mark.parametrize("state", [RequestState.CANCELLED, RequestState.EXPIRED, RequestState.REJECTED])
def test_a_request_that_no_attempt_ended_says_why_it_ended(desk, state):
    put(desk, state, error=BUSY, reason="It was cancelled.", finished_at=0.0)
    for words in (["queue", "dev"], ["why", "dev/r1"]):
        said = desk(*words).out
        assert "It was cancelled." in said
        assert BUSY not in said


def test_a_request_that_failed_says_its_error(desk):
    put(desk, RequestState.FAILED, error="It broke.", reason="x", finished_at=0.0)
    assert "It broke." in desk("queue", "dev").out


def test_the_tables_of_a_request_whose_file_is_gone_are_those_of_its_status(desk):
    put(desk, RequestState.SUCCEEDED, entities=("silver.orders",), finished_at=0.0)
    said = desk("queue", "dev").out
    assert "silver.orders" in said
    assert " all " not in said
    [row] = desk("queue", "dev", "--json").json["requests"]
    assert (row["request_file"], row["entities"]) == (False, ["silver.orders"])


def test_of_a_request_whose_file_is_gone_nobody_says_that_it_asked_for_all(desk):
    put(desk, RequestState.EXPIRED, finished_at=0.0)
    assert "all" not in desk("queue", "dev").out.split()


def test_a_request_for_everything_is_shown_as_such_whatever_it_resolved_to(desk):
    post_request(desk.store, "r1", Request(deadline=desk.clock.wall() + 60), clock=desk.clock, ids=desk.ids)
    put(desk, RequestState.RUNNING, entities=("silver.orders",))
    assert "all" in desk("queue", "dev").out.split()


def test_a_job_shows_the_rows_that_each_table_read_wrote_and_quarantined(desk):
    tables = {
        "bronze.a": {"state": "succeeded", "read": 1200, "rows": 1180, "quarantined": 20},
        "silver.a": {"state": "succeeded", "rows": 5},
        "gold.a": {"state": "failed", "read": None, "rows": 0, "quarantined": 0, "error": "It broke."},
    }
    desk.ended("fail", facts=JobFacts(error="x", tables=tables))
    lines = {
        line.split()[0]: line.split() for line in desk("job", "job1").out.splitlines() if "." in line.split(" ")[0]
    }
    assert lines["bronze.a"] == ["bronze.a", "succeeded", "1,200", "1,180", "20"]
    assert lines["silver.a"] == ["silver.a", "succeeded", "5"]
    assert lines["gold.a"] == ["gold.a", "failed", "It", "broke."]
    assert "rows read  rows written  quarantined" in desk("job", "job1").out
