"""Each row of "Job and request side by side": what a poll does where the two don't agree."""

from dataclasses import replace

import pytest
from fleet_kit import ALL, LOST, Fleet

from fdagent.errors import HandedOver
from fdagent.fleet.records import dump, request_key, status_key
from models.job import JobFacts
from models.status import RequestState


def held(fleet, a, name="r1", **fields):
    fleet.post(name, **fields)
    a.tick()
    assert fleet.state(name) == "accepted"
    return name


def test_a_crash_between_claim_and_queue_is_mended_by_the_next_poll(fleet, a):
    enqueue, a.jobs.enqueue = a.jobs.enqueue, None
    fleet.post("r1")
    with pytest.raises(TypeError):
        a.tick()
    assert (fleet.state("r1"), a.job("r1")) == ("accepted", None)
    a.jobs.enqueue = enqueue
    a.tick()
    assert a.job("r1").state == "queued"
    assert fleet.status("r1").agents == ("etl-01",), "the same hold goes on"
    assert fleet.status("r1").job_id == a.job("r1").id
    a.do("r1")
    assert fleet.state("r1") == "succeeded"


@pytest.mark.parametrize("begun", [False, True])
def test_a_new_start_adopts_what_an_older_one_held_and_its_job_goes_on(fleet, a, begun):
    held(fleet, a)
    if begun:
        a.begin("r1").table("bronze.orders")
    job = a.job("r1")
    a.restart()
    fleet.go(3 * 30, a)
    status = fleet.status("r1")
    assert (status.instance, status.agents, status.job_id) == ("etl-01-2", ("etl-01", "etl-01"), job.id)
    assert a.job("r1").state == "queued"
    assert fleet.state("r1") == "accepted"
    a.do("r1")
    assert fleet.state("r1") == "succeeded"


@pytest.mark.parametrize("begun", [False, True])
def test_a_lost_queue_is_filled_again_from_what_the_statuses_name(fleet, a, begun):
    held(fleet, a)
    if begun:
        a.begin("r1").table("bronze.orders")
    a.wiped()
    fleet.go(3 * 30, a)
    assert a.job("r1").state == "queued"
    a.do("r1")
    assert fleet.state("r1") == "succeeded"


def test_a_late_write_of_this_very_start_is_adopted(fleet, a):
    fleet.post("r1")
    a.view.fault = lambda call, key: "late" if (call, key) == ("write", status_key("r1")) else None
    a.tick()
    assert fleet.state("r1") == "absent"
    assert a.job("r1") is None
    a.view.fault = lambda call, key: None
    a.view.late[0]()
    a.tick()
    assert a.events()[-1] == "adopt"
    assert (fleet.status("r1").agents, a.job("r1").state) == (("etl-01",), "queued")


def test_a_lost_answer_is_recognised_and_the_request_is_held_once(fleet, a):
    fleet.post("r1")
    a.view.fault = lambda call, key: "lost" if (call, key) == ("write", status_key("r1")) else None
    a.tick()
    assert (fleet.status("r1").agents, a.job("r1").state, a.events()) == (("etl-01",), "queued", ["claim"])


@pytest.mark.parametrize("begun", [False, True])
def test_the_job_of_a_request_whose_files_were_deleted_is_dropped(fleet, a, begun):
    held(fleet, a)
    attempt = a.begin("r1") if begun else None
    fleet.remove(status_key("r1"))
    fleet.remove(request_key("r1"))
    a.tick()
    if attempt is None:
        assert (a.job("r1").state, a.job("r1").reason) == ("cancelled", "handed_over")
        return
    assert a.job("r1").stop == "handed_over"
    with pytest.raises(HandedOver):
        attempt.hold.check()
    assert attempt.handed_over().reason == "handed_over"
    a.tick()
    assert fleet.state("r1") == "absent", "what somebody removed is not brought back"


@pytest.mark.parametrize("begun", [False, True])
def test_the_job_of_a_request_that_another_holds_is_dropped(fleet, a, b, begun):
    held(fleet, a)
    attempt = a.begin("r1") if begun else None
    fleet.go(LOST + 60, b)
    assert (fleet.status("r1").agent, fleet.status("r1").taken_over_from) == ("etl-02", "etl-01")
    a.tick()
    if attempt is None:
        assert (a.job("r1").state, a.job("r1").reason) == ("cancelled", "handed_over")
    else:
        assert a.job("r1").stop == "handed_over"
        with pytest.raises(HandedOver):
            attempt.hold.check()
    assert fleet.status("r1").agent == "etl-02"


def test_a_queued_job_whose_status_still_runs_makes_it_wait(fleet, a):
    held(fleet, a)
    attempt = a.begin("r1")
    attempt.table("bronze.orders")
    a.view.fault = lambda call, key: "down" if key == status_key("r1") else None
    assert attempt.end("the network is gone", retryable=True).state == "queued"
    a.view.fault = lambda call, key: None
    assert fleet.state("r1") == "running"
    a.tick()
    status = fleet.status("r1")
    assert (status.state, status.error) == ("accepted", "the network is gone")
    assert [(table.entity, table.by) for table in status.tables] == [("bronze.orders", "etl-01")]


@pytest.mark.parametrize("moment", [("read", "cancel/r1.json"), ("write", "status/r1.json")], ids=["read", "write"])
def test_a_status_is_not_made_to_wait_once_the_next_attempt_has_begun(fleet, a, moment):
    held(fleet, a)
    attempt = a.begin("r1")
    a.view.fault = lambda call, key: "down" if key == status_key("r1") else None
    attempt.end("the network is gone", retryable=True, unspent=True)
    a.view.fault = lambda call, key: None
    fleet.time.now += 100

    def next_attempt(call, key):
        # The worker begins again between the poll's look at its queue and its write.
        if (call, key) == moment:
            a.view.before = lambda call, key: None
            a.begin("r1")

    a.view.before = next_attempt
    a.mailbox.tick()
    assert (fleet.state("r1"), a.job("r1").state) == ("running", "running")
    assert "wait" not in a.events()


@pytest.mark.parametrize(
    ("error", "state"), [("", "succeeded"), ("a check failed", "failed")], ids=["succeeded", "failed"]
)
def test_a_finished_job_whose_status_lags_is_told_with_its_tables(fleet, a, error, state):
    held(fleet, a)
    attempt = a.begin("r1")
    attempt.table("bronze.orders", rows=5)
    attempt.tables["silver.orders"] = {"state": "failed" if error else "succeeded", "run_id": "x2", "rows": 7}
    a.view.away = True
    assert attempt.end(error).state == state
    a.view.away = False
    assert fleet.state("r1") == "running"
    a.tick()
    status = fleet.status("r1")
    assert (status.state, status.error) == (state, error or None)
    assert [table.entity for table in status.tables] == ["bronze.orders", "silver.orders"]
    assert (status.rows_written, status.run_ids[-1]) == (12, "x2")


def test_a_job_that_used_its_attempts_before_it_could_start_fails_its_request(fleet, a):
    held(fleet, a)
    attempt = a.begin("r1", start=False)
    a.view.away = True
    attempt.end("the project is wrong")
    a.view.away = False
    a.tick()
    assert (fleet.state("r1"), fleet.status("r1").error) == ("failed", "the project is wrong")


@pytest.mark.parametrize("begun", [False, True])
def test_a_job_that_a_person_cancelled_fails_its_request_with_that_reason(fleet, a, begun):
    held(fleet, a)
    if begun:
        attempt = a.begin("r1")
        a.jobs.ask(attempt.job.id, "ask_to_stop", JobFacts(reason="cancelled"))
        attempt.end("It was stopped before all its tables were run.", retryable=True, unspent=True)
    else:
        a.jobs.ask(a.job("r1").id, "cancel", JobFacts(reason="cancelled"))
        a.tick()
        assert "cancelled" in fleet.status("r1").reason
    assert (fleet.state("r1"), a.job("r1").state) == ("failed", "cancelled")


@pytest.mark.parametrize("state", ["queued", "failed"])
def test_a_final_status_is_left_and_its_queued_job_cancelled(fleet, a, state):
    held(fleet, a)
    if state == "failed":
        attempt = a.begin("r1")
        a.view.away = True
        attempt.end("no")
        a.view.away = False
    ended = replace(fleet.status("r1"), state=RequestState.CANCELLED, finished_at=fleet.time.now, op="x")
    fleet.put(status_key("r1"), dump(ended))
    a.tick()
    a.tick()
    assert (fleet.status("r1").state, fleet.status("r1").op) == ("cancelled", "x")
    assert a.job("r1").state == ("cancelled" if state == "queued" else "failed")


def test_a_request_goes_to_another_agent_and_comes_back(fleet, a, b):
    held(fleet, a)
    a.begin("r1").table("bronze.orders")
    fleet.go(LOST + 60, b)
    assert fleet.status("r1").agent == "etl-02"
    assert a.job("r1").state == "running"
    # A wakes up: it stands down.
    a.tick()
    attempt_over = a.jobs.get(a.job("r1").id)
    a.work._finish(attempt_over, _stopped(attempt_over), None)
    assert (a.job("r1").state, a.job("r1").reason) == ("cancelled", "handed_over")
    # B dies, A takes it back: the job it had is queued again.
    b.beat()
    a.tick()
    fleet.go(LOST + 60, a)
    status = fleet.status("r1")
    assert (status.agent, status.agents) == ("etl-01", ("etl-01", "etl-02", "etl-01"))
    assert a.job("r1").state == "queued"
    assert a.job("r1").attempt == 0
    a.begin("r1").end()
    assert fleet.state("r1") == "succeeded"


def _stopped(job):
    from fdagent.work.runner import End

    return End(job.tables, (), "It was stopped.", "", retryable=True, unspent=True)


def test_a_stop_because_it_went_away_does_not_fail_what_has_come_back(fleet, a):
    held(fleet, a)
    attempt = a.begin("r1")
    a.jobs.ask(attempt.job.id, "ask_to_stop", JobFacts(reason="handed_over"))
    assert attempt.end("It was stopped.", retryable=True, unspent=True).reason == "handed_over"
    assert fleet.state("r1") == "running"
    a.tick()
    assert a.job("r1").state == "queued", "it names this agent: it is queued again"
    a.do("r1")
    assert fleet.state("r1") == "succeeded"


def test_tables_of_an_earlier_hold_keep_who_finished_them(fleet, a, b):
    held(fleet, a)
    attempt = a.begin("r1")
    attempt.table("bronze.orders", rows=5, read=9)
    fleet.go(LOST + 60, b)
    taken = b.begin("r1")
    shown = {table.entity: table for table in fleet.status("r1").tables}
    assert (shown["bronze.orders"].state, shown["bronze.orders"].by) == ("succeeded", "etl-01")
    taken.table("bronze.orders", "already_done", rows=0)
    taken.table("silver.orders", rows=3)
    taken.end()
    status = fleet.status("r1")
    shown = {table.entity: (table.state, table.by, table.rows_written) for table in status.tables}
    assert shown == {
        "bronze.orders": ("already_done", "etl-01", 5),
        "silver.orders": ("succeeded", "etl-02", 3),
    }
    assert (status.rows_written, len(status.run_ids)) == (8, 3), "the first hold's run is named too"


def test_a_table_whose_maker_died_unheard_is_nobodys(fleet, a, b):
    held(fleet, a)
    a.begin("r1")
    fleet.go(LOST + 60, b)
    taken = b.begin("r1")
    taken.table("bronze.orders", "already_done", rows=0)
    taken.tables["silver.orders"] = {"state": "waiting", "rows": 0}
    taken.hold.report(taken.tables)
    assert [(table.state, table.by) for table in fleet.status("r1").tables] == [("already_done", None)]


def test_two_environments_have_their_own_requests_of_one_id(fleet):
    both = replace(ALL, environments=("dev", "test"))
    dev, other = fleet.agent("etl-01", both), Fleet()
    other.ids = fleet.ids
    test = other.agent("etl-01", both, env="test")
    test.database = dev.database
    test.start()
    for agent in (dev, test):
        agent.tick()
        agent.fleet.post("sched-nightly-20270115T0900Z")
        agent.tick()
    assert {job.env for job in dev.jobs.unfinished()} == {"dev", "test"}
