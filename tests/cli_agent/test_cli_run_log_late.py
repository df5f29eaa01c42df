"""Run-log rows that can't be written, for whatever reason, are kept, and keep no job from being run."""

import errno
import sqlite3

import duckdb
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

from fdagent.engine import runlog
from fdagent.errors import HomeError, Unavailable
from fdagent.queue.jobs import Jobs

ERRORS = [
    Unavailable("The store is away."),
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.ENOSPC, "No space left on device"),
    FileNotFoundError(errno.ENOENT, "No usable temporary directory found"),
    duckdb.IOException("IO Error: disk"),
    DeltaError("Generic delta error"),
    pa.ArrowInvalid("Could not convert"),
    sqlite3.OperationalError("disk I/O error"),
    MemoryError(),
    ValueError("a value with a secret-canary"),
]


def rows_kept(desk) -> int:
    jobs = desk.jobs()
    batches = jobs.closed_batches()
    jobs.database.close()
    return sum(batch.rows for batch in batches)


@pytest.mark.parametrize("err", ERRORS, ids=lambda err: type(err).__name__)
def test_a_run_log_that_can_not_be_written_fails_no_job_and_loses_no_row(desk, monkeypatch, err):
    def fails(*_args, **_more):
        raise err

    with monkeypatch.context() as patched:
        patched.setattr(runlog, "append_rows", fails)
        for _ in range(2):
            assert desk("enqueue", "dev").code == 0
        said = desk("run", "--until-idle")
        assert said.code == 0
        assert " ".join(said.out.split()).count("The run log of dev could not be written; its rows are kept.") == 1
        assert "secret-canary" not in said.out + said.err
        assert {job["state"] for job in desk("status", "--json").json["finished"]} == {"succeeded"}
    assert rows_kept(desk) == 6
    assert desk("run", "--until-idle").code == 0
    assert rows_kept(desk) == 0


def test_a_queue_that_can_not_be_used_ends_the_work_with_a_sentence(desk, monkeypatch):
    def fails(*_args):
        raise HomeError("The queue could not be used.", fix="Look at the disk.")

    desk("enqueue", "dev")
    monkeypatch.setattr(Jobs, "drop_batch", fails)
    said = desk("run", "--until-idle")
    assert said.code == 1
    assert "The queue could not be used." in said.err


def test_a_run_log_that_is_away_is_tried_once_a_turn_however_much_waits(desk, monkeypatch):
    tried = []

    def fails(*_args, **_more):
        tried.append(1)
        raise Unavailable("The store is away.")

    monkeypatch.setattr(runlog, "append_rows", fails)
    for _ in range(4):
        desk("enqueue", "dev")
        desk("run", "--until-idle")
    tried.clear()
    assert rows_kept(desk) == 12
    desk("run", "--until-idle")
    assert len(tried) <= 2
