"""When workers are started and ended: the duty over a pretended crew and a real queue."""

import pytest
from duty_kit import FakeCrew, JumpClock, Queue, Told

from fdagent.daemon.duties import (
    CRASHES_A_MINUTE,
    ROWS_SECONDS,
    SLOW_START_SECONDS,
    STALLED_SECONDS,
    STARTS_A_TICK,
    Staffing,
    Telling,
)
from fdagent.work.news import News
from models.job import JobFacts

HOUR = 3600.0


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
    return FakeCrew()


def staffing(queue, crew, *, concurrency=1, envs=("dev",), hours=24.0):
    return Staffing(queue.own, crew, "etl-01", concurrency, hours * HOUR, lambda: envs, queue.clock, Told())


def test_without_a_due_job_no_worker_is_started(queue, crew):
    duty = staffing(queue, crew)
    duty.tick()
    queue.ask("later", not_before=queue.clock.wall() + 60)
    duty.tick()
    assert crew.started == []


def test_a_due_job_gets_one_worker_under_the_agents_name(queue, crew):
    duty = staffing(queue, crew)
    queue.ask()
    duty.tick()
    duty.tick()
    assert crew.started == ["etl-01/1"]
    assert duty.tell.events() == ["worker_started"]


def test_a_job_gets_its_worker_when_its_time_comes_though_nothing_in_the_queue_changes(queue, crew):
    duty = staffing(queue, crew)
    queue.ask(not_before=queue.clock.wall() + 60)
    for _ in range(600):
        duty.tick()
        queue.clock.now += 0.1
    assert crew.started == []
    queue.clock.now += 0.2
    duty.tick()
    assert crew.started == ["etl-01/1"]


@pytest.mark.parametrize(("jobs", "concurrency", "workers"), [(1, 3, 1), (2, 3, 2), (5, 3, 3), (5, 1, 1)])
def test_as_many_workers_are_started_as_jobs_are_due_and_no_more_than_there_may_be(
    queue, crew, jobs, concurrency, workers
):
    duty = staffing(queue, crew, concurrency=concurrency)
    for number in range(jobs):
        queue.ask(f"j{number}")
    for _ in range(3):
        duty.tick()
    assert len(crew.started) == workers
    assert len(set(crew.started)) == workers


def test_many_workers_are_started_over_several_turns(queue, crew):
    duty = staffing(queue, crew, concurrency=64)
    for number in range(64):
        queue.ask(f"j{number}")
    duty.tick()
    assert len(crew.started) == STARTS_A_TICK


@pytest.mark.parametrize("envs", [(), ("prod",)])
def test_a_job_of_an_environment_that_is_not_served_gets_no_worker(queue, crew, envs):
    duty = staffing(queue, crew, envs=envs)
    queue.ask()
    duty.tick()
    assert crew.started == []


def test_an_idle_worker_is_left_to_take_the_job(queue, crew):
    duty = staffing(queue, crew, concurrency=2)
    queue.ask("j1")
    duty.tick()
    job = queue.claim(pid=501)
    queue.other.finish(job, "succeed", JobFacts())
    queue.ask("j2")
    duty.tick()
    assert crew.started == ["etl-01/1"]


def test_a_busy_worker_is_no_idle_one(queue, crew):
    duty = staffing(queue, crew, concurrency=2)
    queue.ask("j1")
    duty.tick()
    queue.claim(pid=501)
    queue.ask("j2")
    duty.tick()
    assert crew.started == ["etl-01/1", "etl-01/2"]


def test_rows_that_wait_for_the_run_log_get_a_worker_too(queue, crew):
    duty = staffing(queue, crew)
    queue.ask()
    queue.other.finish(queue.claim(), "succeed", JobFacts(), rows=('{"row": 1}',))
    duty.tick()
    assert crew.started == ["etl-01/1"]


def test_a_label_is_free_again_once_its_worker_has_ended(queue, crew):
    duty = staffing(queue, crew)
    queue.ask()
    duty.tick()
    crew.die("etl-01/1", 0)
    duty.tick()
    assert crew.started == ["etl-01/1", "etl-01/1"]


def test_a_worker_that_can_not_be_started_is_told_and_tried_again(queue, crew):
    duty = staffing(queue, crew)
    queue.ask()
    crew.refuses = OSError(11, "Resource temporarily unavailable")
    duty.tick()
    assert duty.tell.events() == ["worker_not_started"]
    assert "Resource temporarily unavailable" in duty.tell.lines[0][2]
    crew.refuses = None
    queue.clock.now += 1
    duty.tick()
    assert crew.started == ["etl-01/1"]


def crash_often(duty, crew, clock) -> None:
    for _ in range(CRASHES_A_MINUTE):
        clock.now += 1
        duty.tick()
        crew.die("etl-01/1", -9)
    duty.tick()


def test_workers_that_keep_ending_badly_are_started_slowly(queue, crew, clock):
    duty = staffing(queue, crew)
    queue.ask()
    crash_often(duty, crew, clock)
    assert len(crew.started) == CRASHES_A_MINUTE
    assert duty.tell.events().count("worker_ended") == CRASHES_A_MINUTE
    clock.now += SLOW_START_SECONDS - 1
    duty.tick()
    assert len(crew.started) == CRASHES_A_MINUTE
    clock.now += 1
    duty.tick()
    assert len(crew.started) == CRASHES_A_MINUTE + 1


def test_a_crash_an_hour_slows_nothing(queue, crew, clock):
    duty = staffing(queue, crew)
    queue.ask()
    for _ in range(3 * CRASHES_A_MINUTE):
        clock.now += HOUR
        duty.tick()
        crew.die("etl-01/1", -9)
        duty.tick()
    assert len(crew.started) == 3 * CRASHES_A_MINUTE + 1


def test_workers_that_end_well_are_no_crashes(queue, crew, clock):
    duty = staffing(queue, crew)
    queue.ask()
    for _ in range(3 * CRASHES_A_MINUTE):
        clock.now += 1
        duty.tick()
        crew.die("etl-01/1", 0)
        duty.tick()
    assert len(crew.started) == 3 * CRASHES_A_MINUTE + 1


def test_the_worker_of_a_job_that_runs_for_too_long_is_ended_with_the_reason(queue, crew, clock):
    duty = staffing(queue, crew, hours=2)
    queue.ask()
    duty.tick()
    queue.claim(pid=501)
    duty.tick()
    clock.now += 2 * HOUR
    duty.tick()
    assert crew.killed == []
    clock.now += 1
    duty.tick()
    assert crew.killed == [("etl-01/1", "was ended because the job ran for over 2 h (max_job_hours)")]
    assert "job_too_long" in duty.tell.events()


@pytest.mark.parametrize("jump", [1e6, -1e6])
def test_a_jump_of_the_wall_clock_ends_no_job(queue, crew, clock, jump):
    duty = staffing(queue, crew, hours=2)
    queue.ask()
    duty.tick()
    queue.claim(pid=501)
    duty.tick()
    clock.ahead += jump
    for _ in range(10):
        clock.now += 1
        duty.tick()
    assert crew.killed == []


def test_each_attempt_has_the_whole_time(queue, crew, clock):
    duty = staffing(queue, crew, hours=2)
    queue.ask()
    duty.tick()
    for _ in range(2):
        job = queue.claim(pid=501)
        duty.tick()
        clock.now += 1.5 * HOUR
        duty.tick()
        queue.other.finish(job, "retry", JobFacts(retryable=True))
    assert crew.killed == []


def test_the_job_of_somebody_elses_worker_is_not_ended(queue, crew, clock):
    duty = staffing(queue, crew, hours=2)
    queue.ask()
    queue.claim(pid=9999)
    duty.tick()
    clock.now += 9 * HOUR
    duty.tick()
    assert crew.killed == []


def test_an_idle_worker_that_leaves_a_due_job_lying_is_ended(queue, crew, clock):
    duty = staffing(queue, crew)
    queue.ask()
    duty.tick()
    clock.now += 1
    duty.tick()
    clock.now += STALLED_SECONDS - 1
    duty.tick()
    assert crew.killed == []
    clock.now += 1
    duty.tick()
    assert [label for label, _ in crew.killed] == ["etl-01/1"]
    assert "worker_stalled" in duty.tell.events()
    clock.now += 1
    duty.tick()
    assert len(crew.killed) == 1, "it gets the whole time again"


def test_a_worker_that_takes_job_after_job_is_never_taken_for_stalled(queue, crew, clock):
    duty = staffing(queue, crew)
    queue.ask("j0")
    duty.tick()
    for number in range(1, 10):
        queue.ask(f"j{number}")
        queue.other.finish(queue.claim(pid=501), "succeed", JobFacts())
        clock.now += STALLED_SECONDS / 2
        duty.tick()
    assert crew.killed == []


def test_a_busy_worker_leaves_no_job_lying(queue, crew, clock):
    duty = staffing(queue, crew)
    queue.ask("j1")
    duty.tick()
    queue.claim(pid=501)
    queue.ask("j2")
    for _ in range(5):
        clock.now += STALLED_SECONDS
        duty.tick()
    assert crew.killed == []


def test_an_idle_daemon_does_not_read_the_queue(queue, crew, clock, monkeypatch):
    duty = staffing(queue, crew)
    duty.tick()
    reads = []
    monkeypatch.setattr(queue.own, "running", lambda: reads.append(clock.now) or [])
    for _ in range(100):
        clock.now += 0.1
        duty.tick()
    assert len(reads) <= 11, "once a second, for time's sake"
    queue.ask()
    duty.tick()
    assert reads[-1] == clock.now, "at once when something has changed"


def row_left(queue, name: str, pid: int = 501) -> None:
    queue.ask(name)
    queue.other.finish(queue.claim(pid=pid), "succeed", JobFacts(), rows=(f'{{"row": "{name}"}}',))


def brought(queue) -> None:
    """Some worker has brought all rows that wait."""
    for batch in queue.other.closed_batches():
        queue.other.drop_batch(batch.name or queue.other.name_batch(batch.env))


def busy(queue, crew) -> Staffing:
    """One worker runs a long job; there may be two."""
    duty = staffing(queue, crew, concurrency=2)
    queue.ask("long")
    duty.tick()
    assert queue.claim(pid=crew.workers["etl-01/1"]).id == "long"
    return duty


def test_a_row_that_a_busy_worker_does_not_bring_gets_another_worker_after_a_while(queue, crew):
    duty = busy(queue, crew)
    row_left(queue, "j1", pid=999)
    for _ in range(int(ROWS_SECONDS) - 1):
        duty.tick()
        queue.clock.now += 1
    assert crew.started == ["etl-01/1"]
    for _ in range(3):
        duty.tick()
        queue.clock.now += 1
    assert crew.started == ["etl-01/1", "etl-01/2"]


def test_rows_that_come_and_are_brought_all_along_get_no_worker_of_their_own(queue, crew):
    duty = busy(queue, crew)
    for number in range(5 * int(ROWS_SECONDS)):
        brought(queue)
        row_left(queue, f"j{number}", pid=999)
        duty.tick()
        queue.clock.now += 1
    assert crew.started == ["etl-01/1"]


def test_the_wait_of_rows_that_were_brought_does_not_count_for_later_ones(queue, crew):
    duty = busy(queue, crew)
    row_left(queue, "j1", pid=999)
    duty.tick()
    brought(queue)
    queue.ask("due", env="dev")
    queue.clock.now += 2 * ROWS_SECONDS
    queue.other.finish(queue.claim(pid=999), "succeed", JobFacts(), rows=('{"row": 2}',))
    duty.tick()
    assert crew.started == ["etl-01/1"]


def test_workers_are_told_what_changed_and_nothing_twice(crew):
    news = [News(("dev",))]
    duty = Telling(crew, lambda: news[-1])
    duty.tick()
    duty.tick()
    news.append(News(("dev",), {"dev": {"silver.orders": "op1"}}))
    duty.tick()
    news.append(News(("dev",), {"dev": {"silver.orders": "op1"}}))
    duty.tick()
    news.append(News())
    duty.tick()
    assert crew.news == [News(("dev",)), News(("dev",), {"dev": {"silver.orders": "op1"}}), News()]
