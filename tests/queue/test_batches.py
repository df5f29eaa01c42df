"""Run-log rows as batches: what has a name keeps it and its rows, whatever happens in between."""

import sqlite3

import pytest
from fakes import FakeClock, FakeIds
from hypothesis import given
from hypothesis import strategies as st

from fdagent.queue import batches
from fdagent.queue.batches import Batch
from fdagent.queue.db import NAME, Database
from fdagent.queue.jobs import Jobs, Worker
from models.job import Job, JobFacts, JobState

WORKER = Worker("etl-01/1", "host/boot/ns", 100, 1.0)


def queue(database: Database) -> Jobs:
    return Jobs(database, clock=FakeClock(), ids=FakeIds())


@pytest.fixture
def jobs():
    return queue(Database.over(sqlite3.connect(":memory:", isolation_level=None)))


def end(jobs: Jobs, name: str, *rows: str, env: str = "dev") -> None:
    """A job that has come and gone, with rows."""
    jobs.enqueue(Job(name, JobState.QUEUED, "op", env, run_key=name, dedupe_key=name))
    jobs.finish(jobs.claim(WORKER), "succeed", JobFacts(), rows=rows)


def test_all_rows_of_an_environment_go_together_and_environments_apart(jobs):
    for n in range(3):
        end(jobs, f"d{n}", f"d{n}")
        end(jobs, f"p{n}", f"p{n}", env="prod")
    assert jobs.closed_batches() == [Batch("dev", "", 3), Batch("prod", "", 3)]
    assert jobs.batch_rows(jobs.name_batch("prod")) == ["p0", "p1", "p2"]
    assert jobs.batch_rows(jobs.name_batch("dev")) == ["d0", "d1", "d2"]
    assert jobs.name_batch("dev") == ""


def test_what_ends_after_a_batch_was_named_is_another_batch(jobs):
    end(jobs, "a", "1")
    name = jobs.name_batch("dev")
    end(jobs, "b", "2")
    assert jobs.closed_batches() == [Batch("dev", name, 1), Batch("dev", "", 1)]
    assert jobs.batch_rows(name) == ["1"]
    jobs.drop_batch(name)
    jobs.drop_batch(name)
    assert jobs.closed_batches() == [Batch("dev", "", 1)]
    assert jobs.batch_rows(name) == []


def test_rows_of_an_attempt_that_runs_get_no_name(jobs):
    jobs.enqueue(Job("j", JobState.QUEUED, "op", "dev", run_key="j", dedupe_key="j"))
    running = jobs.claim(WORKER)
    jobs.progress(running, {}, "1")
    assert jobs.name_batch("dev") == ""
    jobs.finish(running, "succeed", JobFacts(), rows=["2"])
    assert jobs.batch_rows(jobs.name_batch("dev")) == ["1", "2"]


def test_a_batch_is_bounded_but_holds_whole_attempts(jobs, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 3)
    for name in "abc":
        end(jobs, name, f"{name}1", f"{name}2")
    assert jobs.batch_rows(jobs.name_batch("dev")) == ["a1", "a2", "b1", "b2"]
    assert jobs.batch_rows(jobs.name_batch("dev")) == ["c1", "c2"]


def test_two_connections_name_no_row_twice(tmp_path):
    one, two = (queue(Database(tmp_path)) for _ in range(2))
    for n in range(5):
        end(one, f"j{n}", str(n))
    name = one.name_batch("dev")
    assert two.name_batch("dev") == ""
    assert two.closed_batches() == [Batch("dev", name, 5)]
    two.drop_batch(name)
    assert (one.batch_rows(name), one.closed_batches()) == ([], [])


def test_rows_of_an_earlier_file_keep_the_names_under_which_they_may_be_in_the_run_log(tmp_path):
    jobs = queue(Database(tmp_path))
    end(jobs, "a", "1", "2")
    end(jobs, "b", "3")
    claims = dict(jobs.database.rows("select job_id, claim from run_row"))
    jobs.database.close()
    raw = sqlite3.connect(tmp_path / NAME)
    raw.executescript("drop table run_batch; pragma user_version = 3;")
    raw.close()
    for _ in range(2):
        jobs = queue(Database(tmp_path))
        assert jobs.closed_batches() == [Batch("dev", f"a/{claims['a']}", 2), Batch("dev", f"b/{claims['b']}", 1)]
        assert jobs.batch_rows(f"a/{claims['a']}") == ["1", "2"]
        jobs.database.close()


@given(st.lists(st.sampled_from(["end", "name", "append", "append and drop", "drop"]), max_size=40))
def test_every_row_is_appended_exactly_once_in_whatever_order_workers_do_it(steps):
    """A run log keyed by the batches' names, as the Delta table is by its transactions."""
    jobs = queue(Database.over(sqlite3.connect(":memory:", isolation_level=None)))
    log: dict[str, list[str]] = {}
    ended = 0

    def append(name: str) -> None:
        rows = jobs.batch_rows(name)
        assert log.setdefault(name, rows) == rows, "a batch changed after it was tried"

    for what in [*steps, "name", "append and drop", "append and drop"]:
        named = [batch.name for batch in jobs.closed_batches() if batch.name]
        if what == "end":
            ended += 1
            end(jobs, f"j{ended}", str(ended))
        elif what == "name":
            jobs.name_batch("dev")
        elif what == "append":
            for name in named[:1]:
                append(name)
        elif what == "append and drop":
            for name in named:
                append(name)
                jobs.drop_batch(name)
        elif named and named[0] in log:
            jobs.drop_batch(named[0])
    assert jobs.closed_batches() == []
    assert sorted(row for rows in log.values() for row in rows) == sorted(str(n + 1) for n in range(ended))
