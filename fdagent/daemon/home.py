"""The agent's home belongs to one daemon at a time.

Guarantees: the lock dies with its process, however it ends; a second daemon is refused with the first one's pid. A
damaged queue file is never taken for an empty one in silence: it gets another name, and that is told.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from fdagent.errors import DiskFull, HomeDenied, QueueDamaged, Refused
from fdagent.ports import Clock
from fdagent.queue.db import NAME, Database, put_aside
from fdagent.stores.filelock import FileLock

LOCK, PID = "agent.lock", "agent.pid"
DRAIN = "drain"
"""The wish in the queue file by which `fdagent drain` asks the daemon to stop; its value is anything."""
TRIES = 5
"""Somebody who only looks whether a daemon is there has its lock for a moment."""
PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def taken(home: Path, clock: Clock) -> Iterator[Callable[[], bool]]:
    """Hold a home while a block runs; it is given what tells whether the home is still there.

    Raises:
        Refused: Another daemon has it.
        HomeDenied, DiskFull: It can't be written.
    """
    with contextlib.ExitStack() as held:
        with _sentences(home):
            home.mkdir(parents=True, exist_ok=True)
            lock = FileLock(home / LOCK)
            if not _try(lock, clock):
                raise Refused(
                    f"Another agent{_whose(home)} works in {home}.", fix="Stop it first, or name another home folder."
                )
            held.callback(lock.release)
            held.callback(_remove, home / PID)
            (home / PID).write_text(f"{os.getpid()}\n", encoding="ascii")
        yield lock.in_place


def daemon_pid(home: Path) -> int | None:
    """The pid of the daemon that holds a home; None when none does, 0 when it can't be told."""
    lock = FileLock(home / LOCK)
    if not (home / LOCK).exists():
        return None
    if lock.try_acquire():
        lock.release()
        return None
    return _pid(home) or 0


def open_queue(home: Path, clock: Clock, tell: Callable[[str, str, str], None]) -> Database:
    """The queue of a home that the caller holds; a damaged file is put aside for an empty queue.

    Args:
        home: The home.
        clock: Names what is put aside.
        tell: Told of it: level, event, sentence.

    Raises:
        QueueUnreadable: The file belongs to another program or version; it is left alone.
        HomeError: The home can't be used.
    """
    try:
        emptied = (home / NAME).exists() and not (home / NAME).stat().st_size
        database = _sound(home)
    except QueueDamaged as err:
        kept = put_aside(home, f"damaged-{datetime.fromtimestamp(clock.wall(), UTC):%Y%m%dT%H%M%S%fZ}")
        tell("error", "queue_put_aside", f"{err.what} It is {kept} now, and the queue is empty: {LOST}")
        return Database(home)
    if emptied:
        tell("error", "queue_was_empty", f"{home / NAME} had no content: {LOST}")
    return database


LOST = "what waited in it must be asked for again; what it had run is not run again."


def _sound(home: Path) -> Database:
    """The queue, looked through."""
    database = Database(home)
    try:
        database.check()
    except QueueDamaged:
        # Closing writes the log into the file, which a damaged one may refuse.
        with contextlib.suppress(QueueDamaged):
            database.close()
        raise
    return database


@contextlib.contextmanager
def _sentences(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as err:
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"No room is left for {home}.", fix="Free some space and try again.") from err
        raise HomeDenied(
            f"The home folder {home} can't be used: {err.strerror}.",
            fix="Give this user rights to it, or name another with FABRIC_DESKTOP_HOME.",
        ) from err


def _try(lock: FileLock, clock: Clock) -> bool:
    for _ in range(TRIES):
        if lock.try_acquire():
            return True
        clock.sleep(PAUSE_SECONDS)
    return False


def _remove(path: Path) -> None:
    # Left there it does no harm: the lock alone says whether a daemon is there.
    with contextlib.suppress(OSError):
        path.unlink()


def _pid(home: Path) -> int | None:
    try:
        return int((home / PID).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _whose(home: Path) -> str:
    pid = _pid(home)
    return f" (pid {pid})" if pid else ""
