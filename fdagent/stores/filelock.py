"""What local files need of the system: a lock that dies with its process, and a replace that is all or nothing.

Guarantees: a `FileLock` is held by one thread of one process at a time and is released by the system when its process
ends, however it ends; lock files are never deleted, so two processes never hold "the same" lock on two files. POSIX
waits in `flock`, in turn; Windows polls `msvcrt.locking` every millisecond, as its own waiting polls once a second.
Windows refuses to replace, delete or open what another process has open, so that is tried again for a bounded while.
Does not guarantee anything on network drives (`drives.py`), nor that a waiter on POSIX gets past a holder that was
stopped (SIGSTOP, a debugger) inside the lock: it waits until the holder goes on or is killed.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

from fdagent.errors import Unavailable
from fdagent.ports import Clock
from fdagent.system import SystemClock

T = TypeVar("T")

_yield_turn: Callable[[], object] = getattr(os, "sched_yield", lambda: None)

POLL_SECONDS = 0.001
LOCK_SECONDS = 30.0
"""How long Windows polls for a lock that is held for milliseconds."""

REFUSED_SECONDS = 2.0
"""How long a replace, delete or open that Windows refuses is tried again; a reader holds a file for under one."""


class Locker(Protocol):
    """The lock on one open file."""

    flags: int
    """How the file is opened."""

    def take(self, handle: int, *, wait: bool) -> bool:
        """Lock it; False when `wait` is off and another has it. Raises TimeoutError where waiting is bounded."""
        ...

    def drop(self, handle: int) -> None:
        """Unlock it."""
        ...


class PosixLocker:
    """`flock`: it belongs to the open file, so threads that each open it exclude each other too."""

    # Read-only, so that an account that may only read the lock file can still take part.
    flags = os.O_RDONLY

    def take(self, handle: int, *, wait: bool) -> bool:
        """Wait in turn, or look once."""
        if sys.platform == "win32":
            raise AssertionError("flock on Windows")
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def drop(self, handle: int) -> None:
        """Closing the file, which follows, drops it."""


class ByteLock(Protocol):
    """`msvcrt`, as far as it is used."""

    LK_NBLCK: int
    LK_UNLCK: int

    def locking(self, handle: int, mode: int, count: int, /) -> None:
        """Lock or unlock `count` bytes from the current position; OSError when another has them."""
        ...


class WindowsLocker:
    """The file's first byte, polled.

    Args:
        clock: For the bounded wait.
        locks: `msvcrt`; another in tests.
    """

    flags = os.O_RDWR

    def __init__(self, clock: Clock, locks: ByteLock) -> None:
        self._clock = clock
        self._locks = locks

    def take(self, handle: int, *, wait: bool) -> bool:
        """Look once, or every POLL_SECONDS for at most LOCK_SECONDS."""
        end = self._clock.elapsed() + LOCK_SECONDS
        while not self._look(handle):
            if not wait:
                return False
            if self._clock.elapsed() >= end:
                raise TimeoutError(f"a lock was held by another process for {LOCK_SECONDS:.0f} s")
            self._clock.sleep(POLL_SECONDS)
        return True

    def drop(self, handle: int) -> None:
        """Unlock the byte: closing alone may leave it locked for a moment."""
        os.lseek(handle, 0, os.SEEK_SET)
        self._locks.locking(handle, self._locks.LK_UNLCK, 1)

    def _look(self, handle: int) -> bool:
        os.lseek(handle, 0, os.SEEK_SET)
        try:
            self._locks.locking(handle, self._locks.LK_NBLCK, 1)
        except OSError:
            return False
        return True


class FileLock:
    """One lock file. An object serves one thread at a time; it is not reentrant.

    Args:
        path: The lock file; made when it isn't there, never deleted.
        locker: The system's way to lock.
    """

    def __init__(self, path: Path | str, locker: Locker | None = None) -> None:
        self._path = str(path)
        self._locker = locker or system_locker()
        self._handle: int | None = None

    def acquire(self) -> None:
        """Wait for it. Raises OSError when the file can't be opened, TimeoutError on Windows after LOCK_SECONDS."""
        self._take(wait=True)

    def try_acquire(self) -> bool:
        """Take it if nobody has it."""
        return self._take(wait=False)

    def release(self) -> None:
        """Give it up."""
        handle, self._handle = self._handle, None
        if handle is None:
            raise AssertionError(f"{self._path} is not held")
        try:
            self._locker.drop(handle)
        finally:
            os.close(handle)

    def in_place(self) -> bool:
        """Is the file that is held still the one at its path, so that whoever asks for it there is kept out?"""
        if self._handle is None:
            return False
        mine = os.fstat(self._handle)
        try:
            there = os.stat(self._path)  # noqa: PTH116 - as everywhere in this file
        except OSError:
            return False
        return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _take(self, *, wait: bool) -> bool:
        if self._handle is not None:
            raise AssertionError(f"{self._path} is held already")
        handle = os.open(self._path, self._locker.flags | os.O_CREAT | getattr(os, "O_NOINHERIT", 0), 0o666)
        taken = False
        try:
            taken = self._locker.take(handle, wait=wait)
        finally:
            if not taken:
                os.close(handle)
        self._handle = handle if taken else None
        return taken


class Files(Protocol):
    """The few other calls in which POSIX and Windows differ. Paths are strings: they lie on the path of every write."""

    def replace(self, source: str, target: str) -> None:
        """Put `source` in the place of `target`, all or nothing."""
        ...

    def remove(self, path: str) -> None:
        """Delete one file."""
        ...

    def open(self, path: str) -> int:
        """A descriptor to read `path` by; never waits for a pipe, never follows a link in its last part."""
        ...

    def keep(self, path: str) -> int | None:
        """A descriptor that keeps the file now at `path` alive while another is put in its place; None if none can.

        The last one to let go of a replaced file waits until it is freed. Without this that is `replace`, which holds
        the lock: a fifth of all changes a second on ext4.
        """
        ...

    def sync_folder(self, path: str) -> None:
        """Make what `replace` and `remove` did in this folder survive a loss of power."""
        ...


class PosixFiles:
    """Linux and macOS. A PermissionError here is about rights and passed on at once."""

    def replace(self, source: str, target: str) -> None:
        """rename(2)."""
        os.replace(source, target)  # noqa: PTH105 - making a Path costs as much as the call

    def remove(self, path: str) -> None:
        """unlink(2)."""
        os.unlink(path)  # noqa: PTH108 - the same

    def open(self, path: str) -> int:
        """Not through a link, and without waiting for the other end of a pipe someone put there."""
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)

    def keep(self, path: str) -> int | None:
        """What can't be opened is not kept: it is for speed only."""
        try:
            return self.open(path)
        except OSError:
            return None

    def sync_folder(self, path: str) -> None:
        """fsync(2) of the folder.

        The next in turn may run first, where processors are short: the file it makes is then part of the journal commit
        that this waits for, where it would wait for this one and then for its own (a fifth more changes a second on ext4).
        """
        _yield_turn()
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class WindowsFiles:
    """Windows.

    Args:
        clock: For the bounded waits.
        move: Replaces a file and returns once that is on disk; another in tests.
        unlink: Deletes a file; another in tests.
        opens: Opens a file; another in tests.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        move: Callable[[str, str], object],
        unlink: Callable[[str], None] = os.unlink,
        opens: Callable[[str, int], int] = os.open,
    ) -> None:
        self._clock = clock
        self._move = move
        self._unlink = unlink
        self._opens = opens

    def replace(self, source: str, target: str) -> None:
        """Refused while another has `target` open without sharing: tried again."""
        self._patiently(target, lambda: self._move(source, target))

    def remove(self, path: str) -> None:
        """The same."""
        self._patiently(path, lambda: self._unlink(path))

    def open(self, path: str) -> int:
        """A name whose deletion is pending answers "permission denied" until its last reader is done: tried again."""
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
        return self._patiently(path, lambda: self._opens(path, flags))

    def keep(self, path: str) -> int | None:
        """None: Windows would refuse to replace a file that is open."""

    def sync_folder(self, path: str) -> None:
        """Nothing to do: `move` came back only when it was on disk, and NTFS logs a deletion."""

    def _patiently(self, path: str, action: Callable[[], T]) -> T:
        """Try again while Windows refuses, for at most REFUSED_SECONDS: which of the reasons it is can't be told."""
        end = self._clock.elapsed() + REFUSED_SECONDS
        while True:
            try:
                return action()
            except PermissionError as error:
                if self._clock.elapsed() >= end:
                    raise Unavailable(
                        f"Windows refused to touch {path} for {REFUSED_SECONDS:.0f} s.",
                        fix="Another program has it open, it is being deleted, or this account has no right to it.",
                    ) from error
                self._clock.sleep(POLL_SECONDS)


def system_locker(clock: Clock | None = None) -> Locker:
    """The lock of this system."""
    if sys.platform == "win32":
        import msvcrt

        return WindowsLocker(clock or SystemClock(), msvcrt)
    return PosixLocker()


def system_files(clock: Clock | None = None) -> Files:
    """The file calls of this system."""
    if sys.platform == "win32":
        return WindowsFiles(clock or SystemClock(), move=_move_through)
    return PosixFiles()


def _move_through(source: str, target: str) -> None:
    """MoveFileEx, replacing, back only when the move is on disk: `os.replace` doesn't ask for the latter."""
    if sys.platform == "win32":
        import ctypes

        replace_existing, write_through = 0x1, 0x8
        move = ctypes.WinDLL("kernel32", use_last_error=True).MoveFileExW
        if not move(ctypes.c_wchar_p(source), ctypes.c_wchar_p(target), replace_existing | write_through):
            raise ctypes.WinError(ctypes.get_last_error())
