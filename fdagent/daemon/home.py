"""The agent's home belongs to one daemon at a time.

Guarantees: the lock dies with its process, however it ends; a second daemon is refused with the first one's pid.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from fdagent.errors import DiskFull, HomeDenied, Refused
from fdagent.stores.filelock import FileLock

LOCK, PID = "agent.lock", "agent.pid"


@contextlib.contextmanager
def taken(home: Path) -> Iterator[None]:
    """Hold a home while a block runs.

    Raises:
        Refused: Another daemon has it.
        HomeDenied, DiskFull: It can't be written.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = FileLock(home / LOCK)
        free = lock.try_acquire()
        if free:
            (home / PID).write_text(f"{os.getpid()}\n", encoding="ascii")
    except OSError as err:
        if err.errno == errno.ENOSPC:
            raise DiskFull(f"No room is left for {home}.", fix="Free some space and try again.") from err
        raise HomeDenied(
            f"The home folder {home} can't be used: {err.strerror}.",
            fix="Give this user rights to it, or name another with FABRIC_DESKTOP_HOME.",
        ) from err
    if not free:
        raise Refused(
            f"Another agent{_whose(home)} works in {home}.", fix="Stop it first, or name another home folder."
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            (home / PID).unlink()
        lock.release()


def daemon_pid(home: Path) -> int | None:
    """The pid of the daemon that holds a home; None when none does."""
    lock = FileLock(home / LOCK)
    if not (home / LOCK).exists():
        return None
    if lock.try_acquire():
        lock.release()
        return None
    try:
        return int((home / PID).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _whose(home: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f" (pid {int((home / PID).read_text(encoding='ascii'))})"
    return ""
