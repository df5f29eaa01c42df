"""One daemon a home, and what it does with the queue file it finds."""

import os
import subprocess
import sys

import pytest
from duty_kit import JumpClock, Told

from fdagent.daemon.home import LOCK, PID, TRIES, daemon_pid, open_queue, taken
from fdagent.errors import HomeDenied, QueueUnreadable, Refused
from fdagent.queue.db import NAME, Database
from fdagent.stores.filelock import FileLock


@pytest.fixture
def clock():
    return JumpClock()


def test_a_home_is_made_held_and_let_go(tmp_path, clock):
    home = tmp_path / "a/b"
    assert daemon_pid(home) is None
    with taken(home, clock):
        assert daemon_pid(home) == os.getpid()
    assert daemon_pid(home) is None
    assert not (home / PID).exists()
    with taken(home, clock):
        pass


def test_a_second_one_is_refused_with_the_pid_of_the_first_which_goes_on(tmp_path, clock):
    with taken(tmp_path, clock):
        with pytest.raises(Refused, match=rf"Another agent \(pid {os.getpid()}\) works in"), taken(tmp_path, clock):
            pass
        assert daemon_pid(tmp_path) == os.getpid()


@pytest.mark.parametrize("said", ["", "no number", None])
def test_a_home_whose_pid_can_not_be_read_is_refused_all_the_same(tmp_path, clock, said):
    with taken(tmp_path, clock):
        if said is None:
            (tmp_path / PID).unlink()
        else:
            (tmp_path / PID).write_text(said)
        assert daemon_pid(tmp_path) == 0
        with pytest.raises(Refused, match="Another agent works in"), taken(tmp_path, clock):
            pass


def test_somebody_who_only_looks_keeps_nobody_from_starting(tmp_path):
    look = FileLock(tmp_path / LOCK)
    assert look.try_acquire()

    class Clock(JumpClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if len(self.slept) == TRIES - 1:
                look.release()

    with taken(tmp_path, Clock()):
        assert daemon_pid(tmp_path) == os.getpid()


def test_a_home_that_is_a_file_is_denied(tmp_path, clock):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(HomeDenied, match="can't be used"), taken(tmp_path / "home", clock):
        pass


def test_a_start_that_fails_lets_the_home_go(tmp_path, clock):
    (tmp_path / PID).mkdir()
    with pytest.raises(HomeDenied), taken(tmp_path, clock):
        pass
    (tmp_path / PID).rmdir()
    with taken(tmp_path, clock):
        pass


@pytest.mark.process
def test_the_lock_dies_with_its_process(tmp_path, clock):
    script = (
        "import sys, os; from pathlib import Path; from fdagent.daemon.home import taken;"
        "from fdagent.system import SystemClock; held = taken(Path(sys.argv[1]), SystemClock()); held.__enter__();"
        "print('held', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "held\n"
    assert daemon_pid(tmp_path) == child.pid
    child.kill()
    child.communicate(timeout=10)
    assert daemon_pid(tmp_path) is None
    with taken(tmp_path, clock):
        pass


def test_a_sound_queue_is_opened_without_a_word(tmp_path, clock):
    Database(tmp_path).close()
    told = Told()
    open_queue(tmp_path, clock, told).close()
    assert told.lines == []


def test_two_damaged_files_in_a_row_are_both_kept(tmp_path, clock):
    told = Told()
    for content in (b"first" * 1000, b"second" * 1000):
        (tmp_path / NAME).write_bytes(content)
        open_queue(tmp_path, clock, told).close()
        clock.now += 0.5
        Path = type(tmp_path)
        for part in ("", "-wal", "-shm"):
            Path(f"{tmp_path / NAME}{part}").unlink(missing_ok=True)
    kept = sorted(path.read_bytes()[:6] for path in tmp_path.glob("queue.damaged-*.sqlite3"))
    assert kept == [b"firstf", b"second"]
    assert told.events() == ["queue_put_aside"] * 2


def test_the_log_of_a_damaged_file_is_never_taken_for_that_of_the_new_one(tmp_path, clock):
    (tmp_path / NAME).write_bytes(b"garbage" * 1000)
    (tmp_path / f"{NAME}-wal").write_bytes(b"its log")
    database = open_queue(tmp_path, clock, Told())
    assert not (tmp_path / f"{NAME}-wal").read_bytes().startswith(b"its log")
    database.check()
    database.close()


def test_somebody_elses_file_is_refused_and_left_alone(tmp_path, clock):
    import sqlite3

    connection = sqlite3.connect(tmp_path / NAME)
    connection.execute("create table theirs (x)")
    connection.close()
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(QueueUnreadable, match="not a queue of this version"):
        open_queue(tmp_path, clock, Told())
    assert (tmp_path / NAME).read_bytes() == before
