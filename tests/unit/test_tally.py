"""How many jobs are in each state: kept by the queue file itself, and always what counting them would say."""

import sqlite3

import pytest
from fakes import FakeClock, FakeIds
from hypothesis import given
from hypothesis import strategies as st

from fdagent.queue.db import NAME, SCHEMA_VERSION, Database
from fdagent.queue.jobs import Jobs, Worker
from models.job import Job, JobFacts, JobState

WORKER = Worker("etl-01/1", "place", 1, 1.0)
STEPS = ["enqueue dev", "enqueue prod", "claim", "succeed", "fail", "retry", "cancel", "revive", "prune"]


def new_job(name: str, env: str = "dev") -> Job:
    return Job(name, JobState.QUEUED, "op", env, run_key=name, dedupe_key=f"cli:{name}")


def counted(jobs: Jobs, env: str = "") -> dict[str, int]:
    """By looking at each job."""
    which = f"where env = '{env}'" if env else ""
    return {row[0]: row[1] for row in jobs.database.rows(f"select state, count(*) from job {which} group by state")}


def step(jobs: Jobs, clock: FakeClock, what: str, n: int) -> None:
    word, _, env = what.partition(" ")
    running = jobs.running()
    if word == "enqueue":
        jobs.enqueue(new_job(f"j{n}", env))
    elif word == "claim":
        jobs.claim(WORKER)
    elif word == "prune":
        clock.now += 100
        jobs.prune(50)
    elif word == "revive":
        for job in jobs.finished(1):
            jobs.ask(job.id, "revive", JobFacts(by_a_person=True))
    elif running:
        jobs.finish(running[0], word, JobFacts(retryable=True, reason="cancelled"))


@given(st.lists(st.sampled_from(STEPS), max_size=40))
def test_counts_are_what_counting_would_say_after_any_steps(steps):
    clock = FakeClock()
    database = Database.over(sqlite3.connect(":memory:", isolation_level=None))
    jobs = Jobs(database, clock=clock, ids=FakeIds())
    for n, what in enumerate(steps):
        step(jobs, clock, what, n)
        assert jobs.counts() == counted(jobs)
        for env in ("dev", "prod"):
            assert jobs.counts(env) == counted(jobs, env)


def test_what_is_rolled_back_is_not_counted():
    jobs = Jobs(Database.over(sqlite3.connect(":memory:", isolation_level=None)), clock=FakeClock(), ids=FakeIds())
    with pytest.raises(ZeroDivisionError), jobs.write(durable=False) as transaction:
        jobs.put(transaction, new_job("a"))
        raise ZeroDivisionError
    assert jobs.counts() == {}


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_file_of_an_earlier_version_is_counted_once_when_it_is_opened(tmp_path, version):
    jobs = Jobs(Database(tmp_path), clock=FakeClock(), ids=FakeIds())
    for n in range(5):
        jobs.enqueue(new_job(f"j{n}"))
    jobs.claim(WORKER)
    jobs.database.close()
    raw = sqlite3.connect(tmp_path / NAME)
    for trigger in ("job_counted", "job_recounted", "job_discounted"):
        raw.execute(f"drop trigger {trigger}")
    raw.executescript(f"drop table tally; drop table project; pragma user_version = {version};")
    raw.close()
    for _ in range(2):
        jobs = Jobs(Database(tmp_path), clock=FakeClock(), ids=FakeIds())
        assert jobs.counts() == {"queued": 4, "running": 1}
        jobs.database.close()
