"""Both systems' locks and replaces: POSIX for real, Windows behind fakes that refuse as Windows does."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from storefakes import CountingIds, HandClock

from fdagent.errors import Conflict, Unavailable
from fdagent.ports import Absent, Match
from fdagent.stores.filelock import (
    LOCK_SECONDS,
    POLL_SECONDS,
    REFUSED_SECONDS,
    FileLock,
    PosixLocker,
    WindowsFiles,
    WindowsLocker,
)
from fdagent.stores.local import LocalStore

posix = pytest.mark.skipif(sys.platform == "win32", reason="flock is POSIX's")


class Msvcrt:
    """`msvcrt.locking` over open files of this process: one holder a file, anyone else gets EACCES."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        self.held = {}
        self.tried = 0

    def locking(self, handle, mode, count):
        assert count == 1
        assert os.lseek(handle, 0, os.SEEK_CUR) == 0, "the lock is on the first byte"
        about = os.fstat(handle)
        file = about.st_dev, about.st_ino
        if mode == self.LK_UNLCK:
            assert self.held.pop(file) == handle
            return
        self.tried += 1
        if file in self.held:
            raise PermissionError(errno.EACCES, "Permission denied")
        self.held[file] = handle


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def msvcrt():
    return Msvcrt()


@pytest.fixture(params=[pytest.param("posix", marks=posix), "windows"])
def locker(request, clock, msvcrt):
    return PosixLocker() if request.param == "posix" else WindowsLocker(clock, msvcrt)


def test_a_lock_that_is_held_is_not_to_be_had_and_one_given_up_is(locker, tmp_path):
    first, second = FileLock(tmp_path / "lock", locker), FileLock(tmp_path / "lock", locker)
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    second.release()


def test_a_lock_is_given_up_when_its_block_raises(locker, tmp_path):
    lock = FileLock(tmp_path / "lock", locker)
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    assert lock.try_acquire()
    lock.release()


def test_a_lock_file_is_never_deleted(locker, tmp_path):
    with FileLock(tmp_path / "lock", locker):
        pass
    assert (tmp_path / "lock").exists()


def test_taking_a_held_lock_twice_or_giving_up_a_free_one_is_a_mistake_in_the_program(locker, tmp_path):
    lock = FileLock(tmp_path / "lock", locker)
    with pytest.raises(AssertionError):
        lock.release()
    with lock, pytest.raises(AssertionError):
        lock.acquire()


def test_a_lock_leaks_no_descriptor(locker, tmp_path):
    held, other = FileLock(tmp_path / "lock", locker), FileLock(tmp_path / "lock", locker)
    before = open_descriptors()
    for _ in range(50):
        with held:
            assert not other.try_acquire()
    assert open_descriptors() <= before


def open_descriptors():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@posix
def test_threads_that_wait_each_get_their_turn_alone(tmp_path):
    inside, most, turns = [0], [0], []

    def turn(n):
        for _ in range(50):
            with FileLock(tmp_path / "lock", PosixLocker()):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1
            turns.append(n)

    threads = [threading.Thread(target=turn, args=(n,)) for n in range(8)]
    [thread.start() for thread in threads]
    [thread.join(20) for thread in threads]
    assert most == [1]
    assert len(turns) == 400


@posix
def test_a_lock_dies_with_its_process(tmp_path):
    hold = (
        "import sys, time; sys.path.insert(0, sys.argv[2])\n"
        "from fdagent.stores.filelock import FileLock\n"
        "FileLock(sys.argv[1]).acquire(); print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", hold, str(tmp_path / "lock"), str(Path.cwd())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        lock = FileLock(tmp_path / "lock")
        assert not lock.try_acquire()
        other.kill()
        other.wait(10)
        assert lock.try_acquire()
        lock.release()


def test_windows_polls_every_millisecond_until_the_other_is_done(clock, msvcrt, tmp_path):
    other = FileLock(tmp_path / "lock", WindowsLocker(clock, msvcrt))
    other.acquire()

    class Clock(HandClock):
        def sleep(self, seconds):
            super().sleep(seconds)
            if len(self.slept) == 3:
                other.release()

    mine = Clock()
    with FileLock(tmp_path / "lock", WindowsLocker(mine, msvcrt)):
        assert mine.slept == [POLL_SECONDS] * 3
    assert msvcrt.held == {}


def test_windows_gives_up_on_a_lock_that_stays_held(clock, msvcrt, tmp_path):
    other = FileLock(tmp_path / "lock", WindowsLocker(HandClock(), msvcrt))
    other.acquire()
    with pytest.raises(TimeoutError, match="30 s"):
        FileLock(tmp_path / "lock", WindowsLocker(clock, msvcrt)).acquire()
    assert sum(clock.slept) == pytest.approx(LOCK_SECONDS, abs=0.01)
    other.release()


class Windows:
    """`os` as Windows has it: what another process has open can't be replaced, deleted or opened, for a while."""

    def __init__(self, refuse):
        self.refuse = dict(refuse)
        self.pending = set()

    def _may(self, what):
        if self.refuse.get(what, 0) > 0:
            self.refuse[what] -= 1
            raise PermissionError(errno.EACCES, "Access is denied")

    def move(self, source, target):
        self._may("move")
        Path(source).replace(target)

    def unlink(self, path):
        self._may("unlink")
        Path(path).unlink()

    def opens(self, path, flags):
        if Path(path).exists():
            self._may("open")
        if Path(path).name in self.pending:
            raise PermissionError(errno.EACCES, "Access is denied")
        return os.open(path, flags)


def windows_store(tmp_path, clock, msvcrt, **refuse):
    fake = Windows(refuse)
    files = WindowsFiles(clock, move=fake.move, unlink=fake.unlink, opens=fake.opens)
    store = LocalStore(
        tmp_path / "_control", clock=clock, ids=CountingIds(), files=files, locker=WindowsLocker(clock, msvcrt)
    )
    return store, fake


def test_a_windows_store_keeps_its_conditions(clock, msvcrt, tmp_path):
    store, _ = windows_store(tmp_path, clock, msvcrt)
    first = store.write("status/a.json", b"1", Absent())
    second = store.write("status/a.json", b"22", Match(first))
    with pytest.raises(Conflict):
        store.write("status/a.json", b"3", Match(first))
    assert store.read("status/a.json").body == b"22"
    assert [(e.key, e.etag) for e in store.list("status/")] == [("status/a.json", second)]
    store.delete("status/a.json", Match(second))
    assert store.read("status/a.json") is None
    assert msvcrt.held == {}


def test_windows_keeps_no_file_open_that_is_to_be_replaced(clock, tmp_path):
    (tmp_path / "a.json").write_bytes(b"1")
    fake = Windows({})
    files = WindowsFiles(clock, move=fake.move, opens=lambda path, flags: pytest.fail("opened"))
    assert files.keep(str(tmp_path / "a.json")) is None


@pytest.mark.parametrize("what", ["move", "open", "unlink"])
def test_what_windows_refuses_for_a_moment_is_tried_again(clock, msvcrt, tmp_path, what):
    store, fake = windows_store(tmp_path, clock, msvcrt)
    etag = store.write("status/a.json", b"1", Absent())
    fake.refuse[what] = 5
    if what == "unlink":
        store.delete("status/a.json", Match(etag))
        assert store.read("status/a.json") is None
    else:
        store.write("status/a.json", b"2", Match(etag))
        assert store.read("status/a.json").body == b"2"
    assert clock.slept == [POLL_SECONDS] * 5


@pytest.mark.parametrize("what", ["move", "unlink"])
def test_what_windows_goes_on_refusing_is_unavailable_and_changes_nothing(clock, msvcrt, tmp_path, what):
    store, fake = windows_store(tmp_path, clock, msvcrt)
    etag = store.write("status/a.json", b"1", Absent())
    fake.refuse[what] = 1_000_000
    change = (
        (lambda: store.write("status/a.json", b"2", Match(etag)))
        if what == "move"
        else (lambda: store.delete("status/a.json", Match(etag)))
    )
    with pytest.raises(Unavailable, match="Windows refused"):
        change()
    assert sum(clock.slept) == pytest.approx(REFUSED_SECONDS, abs=0.01)
    fake.refuse.clear()
    assert (store.read("status/a.json").body, store.read("status/a.json").etag) == (b"1", etag)
    assert list((tmp_path / "_control/.tmp").iterdir()) == []
    assert msvcrt.held == {}


def test_a_name_whose_deletion_is_pending_is_unavailable_not_a_conflict_and_hides_no_other(clock, msvcrt, tmp_path):
    store, fake = windows_store(tmp_path, clock, msvcrt)
    store.write("status/a.json", b"1", Absent())
    other = store.write("status/b.json", b"1", Absent())
    fake.pending.add("a.json")  # deleted, but its last reader is not done
    with pytest.raises(Unavailable):
        store.write("status/a.json", b"2", Absent())
    with pytest.raises(Unavailable):
        store.read("status/a.json")
    listed = {entry.key: entry.etag for entry in store.list("status/")}
    assert listed["status/b.json"] == other
    assert listed["status/a.json"].startswith("unreadable")
