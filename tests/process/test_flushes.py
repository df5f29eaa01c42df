"""Run-log rows on their way from the queue into the run log: together, once each, through kills and among rivals."""

import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fakes import FakeClock
from flush_process import NOBODY, end_job, flusher_of
from process_kit import Site

from fdagent.cli.where import where
from fdagent.engine import runlog
from fdagent.errors import HomeError, Unavailable
from fdagent.queue import batches
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from fdagent.work import flusher as module
from fdagent.work.flusher import BUSY_SECONDS, LATE_SECONDS

pytestmark = pytest.mark.process
SCRIPT = str(Path(__file__).with_name("flush_process.py"))
POINTS = [
    ("Jobs.name_batch", "before"),
    ("Jobs.name_batch", "after"),
    ("runlog.append_rows", "before"),
    ("runlog._append", "after"),
    ("runlog.append_rows", "after"),
    ("Jobs.drop_batch", "after"),
]


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path / "project")
    made.promote()
    return made


@pytest.fixture
def flusher(site):
    made = replace(flusher_of(site.root), clock=FakeClock())
    yield made
    made.jobs.database.close()


def start(site: Site, label: str, jobs: int, *fault: str) -> "subprocess.Popen[str]":
    words = [sys.executable, SCRIPT, str(site.root), label, str(jobs), *fault]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


def once_each(site: Site, expected: list[str]) -> None:
    """Both logs have each row once."""
    for log in ("run_log", "check_log"):
        table = DeltaTable(str(site.root / ".local/dev/LH_Meta/Tables" / log)).to_pyarrow_table()
        assert Counter(table["run_id"].to_pylist()) == Counter(expected), log
    assert site.unflushed() == 0


def appends(site: Site) -> int:
    """How many commits the run log had after its creation."""
    return DeltaTable(str(site.root / ".local/dev/LH_Meta/Tables/run_log")).version()


def test_rows_of_many_jobs_go_as_one_append(site, flusher):
    for n in range(7):
        end_job(flusher.jobs, f"j{n}")
    flusher.flush()
    assert appends(site) == 1
    once_each(site, [f"j{n}" for n in range(7)])
    flusher.flush()
    assert appends(site) == 1


def test_a_worker_that_goes_from_job_to_job_appends_once_in_two_seconds_and_at_the_end(site):
    site.deliver()
    asked = [site.ask("bronze.orders") for _ in range(12)]
    started = time.monotonic()
    site.run()
    assert appends(site) <= 1 + (time.monotonic() - started) / BUSY_SECONDS
    assert sorted(row.job_id for row in site.log()) == asked
    assert site.unflushed() == 0


def test_rows_beyond_a_batch_are_other_appends_of_the_same_flush(site, flusher, monkeypatch):
    for owner in (batches, module):
        monkeypatch.setattr(owner, "BATCH_ROWS", 2)
    for n in range(5):
        end_job(flusher.jobs, f"j{n}")
    flusher.flush()
    assert appends(site) == 3
    once_each(site, [f"j{n}" for n in range(5)])


@pytest.mark.parametrize(("point", "when"), POINTS, ids=str)
def test_a_worker_killed_in_its_second_flush_loses_and_doubles_no_row(site, flusher, point, when):
    victim = start(site, "v", 12, point, when)
    _, err = victim.communicate(timeout=60)
    assert (victim.returncode, err) == (-9, "")
    ended = [f"v-{n}" for n in range(6)]
    if point == "runlog._append":  # called twice a flush: it dies in its first, between the two logs
        ended = ended[:3]
    end_job(flusher.jobs, "later")
    flusher.flush()
    once_each(site, [*ended, "later"])


def test_workers_that_flush_at_once_lose_and_double_no_row(site, flusher):
    workers = [start(site, f"w{n}", 12) for n in range(3)]
    for worker in workers:
        _, err = worker.communicate(timeout=120)
        assert (worker.returncode, err) == (0, "")
    once_each(site, [f"w{n}-{job}" for n in range(3) for job in range(12)])


def test_a_batch_that_another_worker_has_just_brought_is_not_there_twice(site, flusher, monkeypatch):
    rival, real = flusher_of(site.root), runlog.append_rows
    end_job(flusher.jobs, "j")

    def beaten(*args, **more):
        monkeypatch.setattr(runlog, "append_rows", real)
        rival.flush()
        real(*args, **more)

    monkeypatch.setattr(runlog, "append_rows", beaten)
    flusher.flush()
    assert appends(site) == 1
    once_each(site, ["j"])
    rival.jobs.database.close()


def test_while_there_is_always_a_next_job_rows_wait_a_moment_for_others(site, flusher):
    flusher.flush_if_due()
    end_job(flusher.jobs, "a")
    flusher.clock.now += BUSY_SECONDS - 0.1
    flusher.flush_if_due()
    assert site.unflushed() == 1
    end_job(flusher.jobs, "b")
    flusher.clock.now += 0.1
    flusher.flush_if_due()
    once_each(site, ["a", "b"])
    assert appends(site) == 1


def test_rows_do_not_wait_for_a_long_job(site, flusher, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.0)
    end_job(flusher.jobs, "a")
    arrived, real = threading.Event(), Jobs.drop_batch

    def dropped(*args):
        real(*args)
        arrived.set()

    monkeypatch.setattr(Jobs, "drop_batch", dropped)
    with flusher.meanwhile(lambda: Database(where(site.root).home)):
        assert arrived.wait(60)
        once_each(site, ["a"])


def test_rows_that_could_not_be_written_beside_a_long_job_are_tried_again_while_it_runs(site, flusher, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(module, "LATE_SECONDS", 0.01)
    end_job(flusher.jobs, "a")
    arrived, real, append = threading.Event(), Jobs.drop_batch, runlog.append_rows
    away = iter([True])

    def first_away(*args, **about):
        if next(away, False):
            raise Unavailable("The store is away.")
        append(*args, **about)

    def dropped(*args):
        real(*args)
        arrived.set()

    monkeypatch.setattr(runlog, "append_rows", first_away)
    monkeypatch.setattr(Jobs, "drop_batch", dropped)
    said: list[str] = []
    flusher.trouble = said.append
    with flusher.meanwhile(lambda: Database(where(site.root).home)):
        assert arrived.wait(60)
    assert len(said) == 1
    once_each(site, ["a"])


def test_a_worker_without_work_brings_now_and_then_what_another_has_left(site, flusher):
    flusher.flush()
    end_job(flusher.jobs, "a")
    flusher.flush_if_late()
    assert site.unflushed() == 1
    flusher.clock.now += LATE_SECONDS
    flusher.flush_if_late()
    once_each(site, ["a"])


def test_a_short_job_ends_without_a_flush_beside_it(site, flusher):
    end_job(flusher.jobs, "a")
    with flusher.meanwhile(lambda: pytest.fail("no connection is opened")):
        pass
    assert site.unflushed() == 1


def test_an_outage_leaves_one_batch_that_was_tried_and_is_told_once(site, flusher, monkeypatch):
    said, tried = [], []

    def away(places, batch, rows, **_):
        tried.append((batch, len(rows)))
        raise Unavailable("The store is away.")

    flusher.trouble = said.append
    with monkeypatch.context() as patched:
        patched.setattr(runlog, "append_rows", away)
        for n in range(4):
            end_job(flusher.jobs, f"j{n}")
            flusher.flush()
    assert len(said) == 1
    assert tried == [(tried[0][0], 1)] * 4, "once a turn, and always the same"
    flusher.flush_if_late()
    assert site.unflushed() == 4
    flusher.clock.now += LATE_SECONDS
    flusher.flush_if_late()
    assert appends(site) == 2
    once_each(site, [f"j{n}" for n in range(4)])


def test_a_worker_whose_daemon_is_gone_brings_nothing(site, flusher):
    end_job(flusher.jobs, "a")
    flusher.wishes = type("Gone", (), {"orphaned": lambda self: True, "stopping": lambda self: True})()
    flusher.flush()
    assert site.unflushed() == 1
    flusher.wishes = NOBODY
    flusher.flush()
    once_each(site, ["a"])


def test_a_queue_that_fails_beside_a_job_is_told_and_does_not_end_the_job(flusher, monkeypatch):
    def broken():
        raise HomeError("The queue could not be used.", fix="Look at the disk.")

    monkeypatch.setattr(module, "BUSY_SECONDS", 0.0)
    said, told = [], threading.Event()
    flusher.trouble = lambda sentence: (said.append(sentence), told.set())
    with flusher.meanwhile(broken):
        assert told.wait(60)
    assert said == [
        "Run-log rows wait until the job that runs has ended. The queue could not be used. Look at the disk."
    ]
