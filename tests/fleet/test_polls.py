"""What a poll does with requests: looks that fail, the order of precedence, and what ends a request without a run."""

import pytest
from fleet_kit import BEAT, LOST, POLL

from fdagent.errors import DiskFull, Unavailable
from fdagent.fleet.records import request_key, status_key
from models.slot import DAY

# A look that fails


@pytest.mark.parametrize("folder", ["agents/", "cancel/", "requests/", "status/", "requests/r1.json"])
def test_nothing_is_claimed_while_the_store_is_away_and_nothing_is_forgotten_once_it_is_back(fleet, a, folder):
    fleet.post("r1")
    a.view.fault = lambda call, key: "down" if key == folder else None
    with pytest.raises(Unavailable):
        a.mailbox.tick()
    assert (fleet.state("r1"), a.job("r1")) == ("absent", None)
    a.view.fault = lambda call, key: None
    a.mailbox.tick()
    assert fleet.state("r1") == "accepted"


def test_one_request_that_the_store_has_no_answer_for_hides_no_other(fleet, a):
    for name in ("a", "b", "c"):
        fleet.post(name)
    a.concurrency = 3
    a.view.fault = lambda call, key: "down" if key == status_key("a") else None
    a.mailbox.tick()
    assert [fleet.state(name) for name in ("b", "c")] == ["accepted", "accepted"]
    assert any(entry[1] == "request_trouble" for entry in a.log)


def test_a_store_that_goes_away_during_a_poll_is_not_asked_for_each_request(fleet, a):
    for number in range(50):
        fleet.post(f"r{number}")
    a.view.fault = lambda call, key: "down" if call == "read" and key.startswith("status/") else None
    a.view.calls.clear()
    with pytest.raises(Unavailable):
        a.mailbox.tick()
    assert sum(call == "read" for call, _ in a.view.calls) < 60


def test_a_request_that_the_full_disk_of_a_home_keeps_out_hides_no_other(fleet, a):
    fleet.post("r1")
    fleet.post("r2")
    real = a.jobs.enqueue

    def full(job, **more):
        if job.run_key == "r1":
            raise DiskFull("No room is left.")
        return real(job, **more)

    a.jobs.enqueue = full
    a.concurrency = 5
    a.tick()
    assert a.job("r2") is not None


# Precedence


def test_a_cancel_file_comes_before_the_deadline_and_before_a_claim(fleet, a):
    for name, deadline in (("late", fleet.time.now - 1), ("new", fleet.time.now + 60)):
        fleet.post(name, deadline=deadline)
        fleet.wish(name)
    a.tick()
    assert [fleet.state("late"), fleet.state("new")] == ["cancelled", "cancelled"]


def test_the_deadline_comes_before_a_rejection_and_before_a_claim(fleet, a):
    fleet.post("unknown", entities=("silver.gone",), deadline=fleet.time.now)
    fleet.post("known", deadline=fleet.time.now)
    a.tick()
    assert [fleet.state("unknown"), fleet.state("known")] == ["expired", "expired"]


def test_the_deadline_comes_before_giving_up(fleet, a, b):
    fleet.post("r1", deadline=fleet.time.now + 60)
    a.tick()
    a.begin("r1")
    b.max_attempts = 1
    b.start()
    b.beat()
    fleet.go(LOST + 60, b)
    assert fleet.state("r1") == "expired"


def test_giving_up_comes_before_taking_over_and_names_each_hold(fleet):
    a, b, c = (fleet.agent(f"etl-0{n}", max_attempts=2) for n in (1, 2, 3))
    a.tick()
    b.tick()
    fleet.post("r1", deadline=fleet.time.now + DAY)
    a.tick()
    a.begin("r1")
    fleet.go(LOST + 2 * POLL, b)
    b.begin("r1")
    c.tick()
    fleet.go(LOST + 3 * POLL, c)
    status = fleet.status("r1")
    assert (status.state, status.agents) == ("failed", ("etl-01", "etl-02"))
    assert "etl-01, etl-02" in status.error


def test_ten_thousand_expired_requests_keep_no_valid_one_from_its_poll(fleet, a):
    for number in range(10_000):
        fleet.post(f"old-{number:05d}", due_at=fleet.time.now - 1e6, deadline=fleet.time.now - 1)
    fleet.post("valid")
    a.tick()
    assert fleet.state("valid") == "accepted"
    assert 0 < sum(entry[1] == "request_expire" for entry in a.log) <= 50, "the rest is left to later polls: it beats"
    for _ in range(3):
        a.mailbox.tick()
    assert sum(entry[1] == "request_expire" for entry in a.log) == 200


def test_the_oldest_due_is_taken_first(fleet, a):
    fleet.post("a-new", due_at=fleet.time.now - 10)
    fleet.post("z-old", due_at=fleet.time.now - 20)
    a.tick()
    assert (fleet.state("z-old"), fleet.state("a-new")) == ("accepted", "absent")


# Cancel, expire


def test_a_request_that_waits_for_its_worker_is_cancelled_by_its_holder(fleet, a):
    fleet.post("r1")
    a.tick()
    fleet.wish("r1")
    a.tick()
    assert (fleet.state("r1"), a.job("r1").state, a.job("r1").reason) == ("cancelled", "cancelled", "cancelled")


def test_a_running_request_is_never_cut_off_by_a_cancel_file(fleet, a):
    fleet.post("r1")
    a.tick()
    attempt = a.begin("r1")
    fleet.wish("r1")
    fleet.go(300, a)
    attempt.hold.check()
    attempt.table("bronze.orders")
    attempt.end()
    assert fleet.state("r1") == "succeeded"


def test_a_cancelled_request_whose_attempt_fails_is_not_tried_again(fleet, a):
    fleet.post("r1")
    a.tick()
    attempt = a.begin("r1")
    fleet.wish("r1")
    assert attempt.end("the network is gone", retryable=True).state == "failed"
    assert (fleet.state("r1"), fleet.status("r1").error) == ("failed", "the network is gone")


def test_nor_is_one_whose_worker_died(fleet, a):
    fleet.post("r1")
    a.tick()
    a.begin("r1")
    fleet.wish("r1")
    a.jobs.recover(_lapsed(), a.presence.processes)
    assert a.job("r1").state == "queued"
    a.tick()
    assert (fleet.state("r1"), a.job("r1").state) == ("failed", "cancelled")


def _lapsed():
    from fleet_kit import _Lapsed

    return _Lapsed()


def test_a_running_request_of_a_gone_agent_is_cancelled_by_another(fleet, a, b):
    fleet.post("r1")
    a.tick()
    a.begin("r1")
    fleet.wish("r1")
    fleet.go(LOST - 2 * BEAT, b)
    assert fleet.state("r1") == "running"
    fleet.go(4 * BEAT, b)
    assert fleet.state("r1") == "cancelled"


def test_an_old_wish_ends_what_a_silent_holder_has_accepted(fleet, a, b):
    fleet.post("r1")
    a.tick()
    fleet.wish("r1")
    fleet.go(50, b)
    assert fleet.state("r1") == "accepted"
    fleet.go(30, b)
    assert fleet.state("r1") == "cancelled"


def test_a_running_request_passes_its_deadline_while_its_agent_lives(fleet, a, b):
    fleet.post("r1", deadline=fleet.time.now + 60)
    a.tick()
    attempt = a.begin("r1")
    fleet.go(600)
    assert fleet.state("r1") == "running"
    attempt.end()
    assert fleet.state("r1") == "succeeded"


def test_an_accepted_request_past_its_deadline_expires_and_its_job_with_it(fleet, a):
    fleet.post("r1", deadline=fleet.time.now + 60)
    a.tick()
    fleet.go(60, a)
    assert (fleet.state("r1"), a.job("r1").state, a.job("r1").reason) == ("expired", "cancelled", "expired")


def test_an_accepted_request_whose_file_is_gone_expires(fleet, a):
    fleet.post("r1")
    a.tick()
    fleet.remove(request_key("r1"))
    a.tick()
    assert (fleet.state("r1"), fleet.status("r1").reason) == ("expired", "Its request file is gone.")


def test_a_request_without_a_deadline_expires_a_day_after_it_was_first_seen(fleet, a):
    a.promoted = "another"
    fleet.post("r1", body=b"{}")
    a.tick()
    fleet.go(DAY - 100, a, step=1000)
    assert fleet.state("r1") == "absent"
    fleet.go(200, a, step=100)
    assert fleet.state("r1") == "expired"


@pytest.mark.parametrize("off", [-7200, 7200])
def test_deadlines_are_read_by_the_stores_clock(fleet, off):
    agent = fleet.agent("etl-01", off=off)
    agent.tick()
    fleet.post("open", deadline=fleet.time.now + 60)
    fleet.post("over", deadline=fleet.time.now - 60)
    agent.tick()
    assert (fleet.state("open"), fleet.state("over")) == ("accepted", "expired")
    agent.begin("open")
    assert fleet.state("open") == "running"


def test_without_the_stores_clock_nothing_is_claimed_and_nothing_expires(fleet, a):
    fleet.post("r1", deadline=fleet.time.now + 600)
    fleet.post("r2", deadline=fleet.time.now - 600)
    fleet.post("r3", body=b"{}")
    a.view.offset_known = False
    fleet.go(300, a)
    assert [fleet.state(name) for name in ("r1", "r2", "r3")] == ["absent"] * 3
    a.view.offset_known = True
    a.tick()
    assert (fleet.state("r1"), fleet.state("r2")) == ("accepted", "expired")


# What a person asks


def test_a_wish_needs_a_request_but_not_one_that_can_be_read(fleet):
    from fdagent.errors import NotFound
    from fdagent.fleet.asking import post_cancel

    asked = {"by": "a person", "clock": fleet.true, "ids": fleet.ids}
    with pytest.raises(NotFound):
        post_cancel(fleet.store, "r1", **asked)
    fleet.put(status_key("r1"), b"{")
    assert post_cancel(fleet.store, "r1", **asked) is True
    assert post_cancel(fleet.store, "r1", **asked) is False


def test_waiting_for_a_request_that_no_agent_looks_after_ends_some_minutes_past_its_deadline(fleet, a):
    from fdagent.cli.mailbox import PAST_DEADLINE_SECONDS, _waited
    from fdagent.errors import GaveUp

    fleet.post("r1")
    before = fleet.time.now
    with pytest.raises(GaveUp, match="r1"):
        _waited(fleet.store, "dev", "r1", fleet.true, seconds=600 + PAST_DEADLINE_SECONDS, as_json=False)
    assert fleet.time.now - before == pytest.approx(600 + PAST_DEADLINE_SECONDS, abs=2)
