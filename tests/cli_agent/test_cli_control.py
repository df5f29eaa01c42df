"""What a person wishes of a job and of the agent of a home: done, or refused in words."""

import contextlib
import json
import threading
import time

import pytest
from cli_agent_kit import GONE, Desk

from fdagent.daemon.agent import DRAIN
from fdagent.daemon.home import PID, taken
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.sightings import Sightings
from models.job import JobFacts, JobState
from models.status import RequestState

DEADLINE = 10.0


@contextlib.contextmanager
def an_agent(desk: Desk):
    """Somebody holds the home."""
    with taken(desk.home, desk.clock):
        yield


# retry


@pytest.mark.parametrize("event", ["fail", "bury", "cancel"])
def test_a_job_that_did_not_finish_is_queued_again_with_all_its_attempts(desk, event):
    desk.ended(event, max_attempts=1)
    said = desk("retry", "job1")
    assert (said.code, said.err) == (0, "")
    assert "Queued job1 again" in said.out
    assert "No agent runs in this home" in said.out
    now = desk.get()
    assert (now.state, now.attempt, now.error) == (JobState.QUEUED, 0, "")


@pytest.mark.parametrize("value", ["nan", "-nan", "inf", "-inf", "1e15", "-1", "1e999", "soon", ""])
@pytest.mark.parametrize("option", [["request", "dev", "--deadline"], ["drain", "--wait", "--timeout"]], ids=" ".join)
def test_a_number_that_is_none_or_out_of_bounds_is_wrong_usage(desk, option, value):
    said = desk(*option[:-1], f"{option[-1]}={value}")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("Error: Invalid value for ")
    assert not (desk.control / "requests").exists()


def test_a_job_is_named_by_its_first_letters_and_its_finished_tables_stay_done(desk):
    tables = {"bronze.orders": {"state": "succeeded"}, "silver.orders": {"state": "failed"}}
    desk.ended(name="abc123", facts=JobFacts(error="x", tables=tables))
    said = desk("retry", "abc")
    assert "What it finished (1 of its tables) is not run again." in said.out
    assert dict(desk.get("abc123").tables) == tables


def test_with_an_agent_in_the_home_nobody_is_told_to_start_one(desk):
    desk.ended()
    with an_agent(desk):
        assert "No agent" not in desk("retry", "job1").out


@pytest.mark.parametrize(("make", "state"), [("job", "queued"), ("running", "running")])
def test_a_job_that_has_not_ended_is_not_tried_again(desk, make, state):
    getattr(desk, make)()
    said = desk("retry", "job1")
    assert said.code == 4
    assert f"Job job1 is not tried again: the job is {state}." in said.err
    assert "fdagent why job1" in said.err
    assert said.out == ""


def test_a_job_that_succeeded_is_not_tried_again(desk):
    desk.ended("succeed")
    assert desk("retry", "job1").code == 4
    assert desk.get().state is JobState.SUCCEEDED


def test_a_job_is_not_tried_again_beside_another_for_the_same_work(desk):
    desk.ended(name="old", dedupe_key="agent/nightly")
    desk.job("new", dedupe_key="agent/nightly")
    said = desk("retry", "old")
    assert said.code == 4
    assert "a job for the same work is already there" in said.err


@pytest.mark.parametrize("status", [RequestState.FAILED, RequestState.EXPIRED, None])
def test_a_job_of_a_request_that_ended_or_was_swept_must_be_asked_for_anew(desk, status):
    desk.ended(source="pipeline:r1")
    if status is not None:
        desk.status("r1", status)
    said = desk("retry", "job1")
    assert said.code == 4
    assert "asked anew with `fdagent request`" in said.err
    assert desk.get().state is JobState.FAILED


def test_a_job_of_an_open_request_is_tried_again(desk):
    desk.ended(source="pipeline:r1")
    desk.status("r1", RequestState.ACCEPTED)
    assert desk("retry", "job1").code == 0


def test_a_request_whose_status_can_not_be_read_leaves_its_job_as_it_is(desk):
    desk.ended(source="pipeline:r1")
    desk.file("status/r1.json", '{"id": "r1", "state": ')
    said = desk("retry", "job1")
    assert said.code == 2
    assert desk.get().state is JobState.FAILED


@pytest.mark.parametrize("command", ["retry", "cancel"])
def test_a_job_that_is_not_there_is_not_found_and_looking_for_it_makes_no_home(desk, command):
    said = desk(command, "nope")
    assert said.code == 3
    assert "No job's id begins with 'nope'." in said.err
    assert not desk.home.exists()


@pytest.mark.parametrize("command", ["retry", "cancel"])
def test_letters_that_begin_two_ids_change_neither(desk, command):
    desk.ended(name="ab1")
    desk.job("ab2")
    said = desk(command, "ab")
    assert said.code == 3
    assert "2 jobs' ids begin with 'ab'." in said.err
    assert (desk.get("ab1").state, desk.get("ab2").state) == (JobState.FAILED, JobState.QUEUED)


# cancel


def test_a_job_that_waits_is_cancelled(desk):
    desk.job()
    said = desk("cancel", "job1")
    assert (said.code, said.out) == (0, "Cancelled job1: it had not started.\n")
    assert (desk.get().state, desk.get().reason) == (JobState.CANCELLED, "cancelled")


def test_a_job_that_runs_is_asked_to_stop_and_its_table_is_finished_first(desk):
    desk.running()
    for _ in range(2):
        said = desk("cancel", "job1")
        assert said.code == 0
        assert "the table that runs is finished first" in said.out
    assert (desk.get().state, desk.get().stop) == (JobState.RUNNING, "cancelled")


def test_a_job_whose_worker_is_gone_is_cancelled_by_the_agent_that_takes_it_back(desk):
    desk.running(pid=GONE)
    assert "its worker is gone, so the agent cancels it" in desk("cancel", "job1").out
    jobs = desk.jobs()
    [job] = jobs.recover(Sightings(desk.clock), desk.processes)
    jobs.database.close()
    assert (job.state, job.reason) == (JobState.CANCELLED, "cancelled")


@pytest.mark.parametrize("event", ["succeed", "fail", "bury", "cancel"])
def test_a_job_that_ended_can_not_be_cancelled(desk, event):
    was = desk.ended(event, max_attempts=1)
    said = desk("cancel", "job1")
    assert said.code == 4
    assert f"Job job1 can't be cancelled: it is {was.state}." in said.err
    assert desk.get() == was


def test_a_job_that_starts_between_the_look_and_the_wish_is_asked_to_stop(desk, monkeypatch):
    waiting = desk.job()
    real, looks = Jobs.get, []

    def get(jobs, job_id):
        looks.append(job_id)
        if len(looks) == 2:  # the first look of the wish itself: after it a worker claims the job
            answer = real(jobs, job_id)
            assert jobs.claim(Worker("etl-01/1", "p", 1, 1.0)).id == waiting.id
            return answer
        return real(jobs, job_id)

    monkeypatch.setattr(Jobs, "get", get)
    assert "Asked job1 to stop" in desk("cancel", "job1").out
    assert desk.get().stop == "cancelled"


@pytest.mark.parametrize("make", ["job", "running"])
def test_a_job_of_a_request_is_cancelled_through_its_request(desk, make):
    getattr(desk, make)(source="pipeline:r1")
    desk.status("r1", RequestState.ACCEPTED)
    was = desk.get()
    assert "Asked that request r1 is cancelled" in desk("cancel", "job1").out
    assert "It was asked before that request r1 is cancelled" in desk("cancel", "job1").out
    assert (desk.control / "cancel" / "r1.json").exists()
    assert desk.get() == was


def test_a_job_whose_request_is_gone_from_the_mailbox_says_so(desk):
    desk.job(source="pipeline:r1")
    said = desk("cancel", "job1")
    assert said.code == 3
    assert "There is no request r1." in said.err


def test_a_job_of_a_request_that_has_ended_is_not_cancelled(desk):
    desk.ended(source="pipeline:r1")
    assert desk("cancel", "job1").code == 4
    assert not (desk.control / "cancel").exists()


def test_a_user_without_a_name_can_ask_too(desk, monkeypatch):
    def nobody():
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    desk.job(source="pipeline:r1")
    desk.status("r1", RequestState.ACCEPTED)
    assert desk("cancel", "job1").code == 0


# drain


def test_without_an_agent_there_is_nothing_to_drain_and_nothing_is_made(desk):
    for words in (("drain",), ("drain", "--wait")):
        said = desk(*words)
        assert said.code == 0
        assert f"No agent runs in {desk.home}" in said.out
    assert not desk.home.exists()


def test_a_drain_is_a_wish_in_the_queue_file(desk):
    with an_agent(desk):
        said = desk("drain")
        assert said.code == 0
        assert "takes no new work" in said.out
        assert (desk.home / PID).read_text().strip() in said.out
        jobs = desk.jobs()
        assert jobs.wish(DRAIN)
        jobs.database.close()


def test_a_drain_that_waits_comes_back_when_the_agent_has_ended(desk):
    holding, ended = threading.Event(), []

    def agent():
        with taken(desk.home, desk.clock):
            jobs = desk.jobs()
            holding.set()
            until = time.monotonic() + DEADLINE
            while not jobs.wish(DRAIN) and time.monotonic() < until:
                time.sleep(0.01)
            ended.append(bool(jobs.wish(DRAIN)))
            jobs.database.close()

    thread = threading.Thread(target=agent)
    thread.start()
    assert holding.wait(DEADLINE)
    said = desk("drain", "--wait", "--timeout", "9")
    thread.join(DEADLINE)
    assert ended == [True]
    assert said.code == 0
    assert said.out.endswith("It has ended.\n")


def test_a_drain_that_waited_too_long_says_so_and_the_wish_stays(desk):
    with an_agent(desk):
        said = desk("drain", "--wait", "--timeout", "0")
        assert said.code == 1
        assert "still runs after 0 s" in said.err
        jobs = desk.jobs()
        assert jobs.wish(DRAIN)
        jobs.database.close()


def test_an_agent_that_was_just_starting_and_cleared_the_wish_is_asked_again(desk, monkeypatch):
    asked = []
    real = Jobs.set_wish

    def set_wish(jobs, name, value):
        real(jobs, name, value)
        asked.append(value)
        if len(asked) == 1:
            real(jobs, name, "")

    monkeypatch.setattr(Jobs, "set_wish", set_wish)
    with an_agent(desk):
        assert desk("drain", "--wait", "--timeout", "0.3").code == 1
    assert len(asked) == 2


def test_an_agent_that_was_started_anew_is_not_waited_for(desk, monkeypatch):
    pids = iter([100, 100, 0, 200])
    monkeypatch.setattr("fdagent.daemon.home.daemon_pid", lambda _home: next(pids))
    desk.home.mkdir()
    said = desk("drain", "--wait", "--timeout", "9")
    assert said.code == 0
    assert said.out.endswith("It has ended.\n")


@pytest.mark.parametrize("words", [("drain",), ("retry", "x"), ("why", "x")])
def test_a_home_that_may_not_be_looked_at_is_a_sentence(desk, monkeypatch, words):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fdagent.daemon.home.daemon_pid", denied)
    monkeypatch.setattr("pathlib.Path.exists", denied)
    said = desk(*words)
    assert said.code == 2
    assert f"{desk.home} can't be looked at: permission denied." in said.err


def test_an_error_is_json_where_json_was_asked_for(desk):
    said = desk("why", "nope", "--json")
    assert said.code == 3
    assert set(json.loads(said.out)) == {"error", "fix", "exit_code"}
