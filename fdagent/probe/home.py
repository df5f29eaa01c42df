"""The agent's own folder: is it there, may this user write to it, has it room, and can its queue be read?

Guarantees: writes nothing but the lock file that reading a queue needs.
"""

import os
import shutil
from pathlib import Path

from fdagent.errors import FdagentError
from fdagent.ports import Clock, Ids
from fdagent.probe.findings import Finding, error, errors_of, ok, warning
from fdagent.queue.db import NAME, Database
from fdagent.queue.jobs import Jobs
from fdagent.stores.drives import network_drive

LOW_BYTES, FULL_BYTES = 1024**3, 100 * 1024**2
"""Free space below which a drive is worth a warning, and below which work is about to stop."""
READ = 20
"""Finished jobs that are read to see whether rows can be."""
FIX_EMPTY = (
    "Start the agent, which makes a new one, and ask again for what waited; tables that are done are not loaded twice."
)
FIX_RIGHTS = "Give this user rights to it, check as the agent's own user, or name another with FABRIC_DESKTOP_HOME."


def home(folder: Path, clock: Clock, ids: Ids) -> list[Finding]:
    """Look at a home and at what is in it."""
    try:
        return [_folder(folder), _drive(folder), space("disk of the home", folder), _queue(folder, clock, ids)]
    except OSError as err:
        return [error("home", f"{folder} can't be looked at: {_said(err)}.", FIX_RIGHTS)]


def _folder(folder: Path) -> Finding:
    there = nearest(folder)
    if not there.is_dir():
        return error("home", f"{there} is a file, so {folder} is no folder.", "Name another home folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        return error("home", f"{folder} can't be written by this user: no rights on {there}.", FIX_RIGHTS)
    return ok("home", f"{folder} can be written." if there == folder else f"{folder} will be made at the first start.")


def _drive(folder: Path) -> Finding:
    kind = network_drive(folder)
    if kind is None:
        return ok("drive of the home", "The home is not on a network drive.")
    return error(
        "drive of the home",
        f"{folder} is on a network drive ({kind}), where neither locks nor SQLite can be trusted.",
        "Name a home folder on a drive of this machine.",
    )


def space(what: str, folder: Path) -> Finding:
    """Is there room on the drive of a folder?

    Raises:
        OSError: That can't be told.
    """
    free = shutil.disk_usage(nearest(folder)).free
    shown = f"{free / 1024**3:.1f} GiB are free for {folder}."
    if free >= LOW_BYTES:
        return ok(what, shown)
    return (error if free < FULL_BYTES else warning)(what, shown, "Make room; work stops when nothing can be written.")


def _queue(folder: Path, clock: Clock, ids: Ids) -> Finding:
    """Read the whole queue file, and some of its jobs."""
    if not (folder / NAME).exists():
        return ok("queue", "There is no queue yet: the first job makes it.")
    if not (folder / NAME).stat().st_size:
        # Opening it would make a new queue of it, and the agent could no longer say that one was lost.
        return error("queue", f"{folder / NAME} has no content: what waited in it is lost.", FIX_EMPTY)
    try:
        database = Database(folder)
        try:
            database.check()
            jobs = Jobs(database, clock=clock, ids=ids)
            jobs.unfinished()
            jobs.finished(READ)
            counts = jobs.counts()
        finally:
            database.close()
    except FdagentError as err:
        return errors_of("queue", err)[0]
    shown = ", ".join(f"{number} {state}" for state, number in counts.items()) or "no jobs"
    return ok("queue", f"{folder / NAME} is whole: {shown}.")


def nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path(folder.anchor))


def _said(err: OSError) -> str:
    return (err.strerror or type(err).__name__).lower()
