"""Taking back jobs that nobody runs any more, and what becomes of a worker that let its claim lapse."""

import pytest
from duty_kit import FakeCrew, JumpClock, Queue, Told, processes

from fdagent.daemon.duties import MOST_PRUNES, Pruning, Recovery
from fdagent.queue.jobs import PRUNED_AT_ONCE
from fdagent.stores.sightings import Sightings
from models.job import LEFT, Job, JobFacts, JobState

DAY = 86_400.0


@pytest.fixture
def clock():
    return JumpClock()


@pytest.fixture
def queue(tmp_path, clock):
    made = Queue(tmp_path, clock)
    yield made
    made.close()


@pytest.fixture
def crew():
    return FakeCrew(workers={"etl-01/1": 501})


def recovery(queue, crew, **alive):
    return Recovery(queue.own, crew, Sightings(queue.clock), processes(**alive), Told())


def test_a_job_whose_process_is_gone_is_taken_back_at_once_with_how_it_ended(queue, crew):
    queue.ask()
    queue.claim(pid=501)
    crew.fates[501] = "was ended by SIGKILL"
    duty = recovery(queue, crew)
    duty.tick()
    job = queue.own.get("j1")
    assert (job.state, job.error) == (JobState.QUEUED, "Its worker (pid 501) was ended by SIGKILL.")
    assert duty.tell.events() == ["job_recovered"]
    assert crew.killed == []


def test_a_process_with_the_same_number_and_another_start_is_gone_all_the_same(queue, crew):
    queue.ask()
    queue.claim(pid=501, started=1.0)
    recovery(queue, crew, p501=2.0).tick()
    assert queue.own.get("j1").state is JobState.QUEUED


def test_of_a_worker_of_an_earlier_daemon_nothing_is_known_but_that_it_is_gone(queue, crew):
    queue.ask()
    queue.claim(pid=77)
    recovery(queue, crew).tick()
    assert queue.own.get("j1").error == LEFT


def test_a_job_whose_worker_lives_is_left_alone_however_long_it_takes(queue, crew):
    queue.ask()
    job = queue.claim(pid=501)
    duty = recovery(queue, crew, p501=1.0)
    for _ in range(200):
        queue.clock.now += 10
        assert isinstance(queue.other.renew(job, lapsed=False), Job)
        duty.tick()
    assert queue.own.get("j1").state is JobState.RUNNING


def lapse(queue, duty, seconds: float) -> None:
    duty.tick()
    for _ in range(int(seconds)):
        queue.clock.now += 1
        duty.tick()


def test_a_claim_that_is_not_renewed_lapses_after_its_span_and_not_before_and_its_worker_is_ended(queue, crew):
    queue.ask(lease_seconds=30.0)
    queue.claim(pid=501)
    duty = recovery(queue, crew, p501=1.0)
    lapse(queue, duty, 29)
    assert queue.own.get("j1").state is JobState.RUNNING
    lapse(queue, duty, 1)
    job = queue.own.get("j1")
    assert (job.state, job.error) == (JobState.QUEUED, "Its worker (pid 501) gave no sign of life for 30 s.")
    assert crew.killed == [("etl-01/1", "was ended because it gave no sign of life")]
    assert duty.tell.events() == ["job_recovered", "worker_stalled"]


def test_a_worker_that_has_just_ended_is_not_said_to_be_stalled(queue, crew):
    queue.ask(lease_seconds=30.0)
    queue.claim(pid=501)
    duty = recovery(queue, crew)
    duty.tick()
    assert queue.own.get("j1").error == "Its worker (pid 501) has ended."
    assert crew.killed == []
    assert duty.tell.events() == ["job_recovered"]


def test_a_worker_that_lost_one_job_and_has_another_is_not_ended(queue, crew):
    queue.ask("lost", lease_seconds=30.0)
    queue.claim(pid=501)
    duty = recovery(queue, crew, p501=1.0)
    lapse(queue, duty, 29)
    queue.ask("other")
    queue.claim(pid=501)
    lapse(queue, duty, 1)
    assert queue.own.get("lost").state is JobState.QUEUED
    assert crew.killed == []


def test_a_worker_that_is_none_of_ours_is_never_ended(queue, crew):
    queue.ask(lease_seconds=30.0)
    queue.claim(pid=777)
    lapse(queue, recovery(queue, crew, p777=1.0), 30)
    assert queue.own.get("j1").state is JobState.QUEUED
    assert crew.killed == []


@pytest.mark.parametrize("place", ["", "other-host/boot/ns", "host/other-boot/ns", "host/boot/other-ns"])
def test_of_another_place_only_the_lapse_counts(queue, crew, place):
    queue.ask(lease_seconds=30.0)
    queue.claim(pid=501, place=place)
    duty = recovery(queue, crew)
    lapse(queue, duty, 29)
    assert queue.own.get("j1").state is JobState.RUNNING
    lapse(queue, duty, 1)
    assert queue.own.get("j1").state is JobState.QUEUED


@pytest.mark.parametrize("jump", [1e6, -1e6])
def test_a_jump_of_the_wall_clock_lets_no_claim_lapse(queue, crew, jump):
    queue.ask(lease_seconds=30.0)
    queue.claim(pid=501)
    duty = recovery(queue, crew, p501=1.0)
    duty.tick()
    queue.clock.ahead += jump
    lapse(queue, duty, 28)
    assert queue.own.get("j1").state is JobState.RUNNING


def test_the_last_attempt_ends_dead_with_how_its_worker_ended(queue, crew):
    queue.ask(max_attempts=1)
    queue.claim(pid=501)
    crew.fates[501] = "was ended by SIGSEGV"
    recovery(queue, crew).tick()
    job = queue.own.get("j1")
    assert (job.state, job.error) == (JobState.DEAD, "Its worker (pid 501) was ended by SIGSEGV.")


def test_a_job_that_was_asked_to_stop_is_cancelled_and_not_run_again(queue, crew):
    queue.ask()
    queue.claim(pid=501)
    queue.other.ask("j1", "ask_to_stop", JobFacts(reason="cancelled"))
    recovery(queue, crew).tick()
    job = queue.own.get("j1")
    assert (job.state, job.reason) == (JobState.CANCELLED, "cancelled")


def test_a_job_that_ends_between_the_look_and_the_write_keeps_its_end(queue, crew):
    queue.ask()
    job = queue.claim(pid=501)
    duty = recovery(queue, crew)
    ends = iter([lambda: queue.other.finish(job, "succeed", JobFacts())])
    crew.fate = lambda _pid: next(ends, lambda: None)() and ""
    duty.tick()
    assert queue.own.get("j1").state is JobState.SUCCEEDED
    assert duty.tell.lines == []


def finished(queue, name: str, ago: float) -> None:
    queue.ask(name)
    queue.other.finish(queue.claim(), "succeed", JobFacts())
    queue.clock.now += ago


def test_only_what_finished_longer_ago_than_it_is_kept_is_deleted(queue):
    finished(queue, "old", ago=20 * DAY)
    queue.ask("long", lease_seconds=60.0)
    queue.claim()
    queue.ask("waits", not_before=queue.clock.wall() + 90 * DAY)
    queue.clock.now += 15 * DAY
    finished(queue, "new", ago=5.0)
    Pruning(queue.own, 30 * DAY).tick()
    left = {name for name in ("old", "long", "waits", "new") if queue.own.get(name)}
    assert left == {"long", "waits", "new"}, "age counts from the finish, and what is open is kept"


def test_one_turn_deletes_a_bounded_number(queue, monkeypatch):
    pruned = []
    monkeypatch.setattr(queue.own, "prune", lambda seconds: pruned.append(seconds) or PRUNED_AT_ONCE)
    Pruning(queue.own, 30 * DAY).tick()
    assert pruned == [30 * DAY] * MOST_PRUNES
