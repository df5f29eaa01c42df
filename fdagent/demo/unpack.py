"""Puts the demo project and its landing files into a folder.

Guarantees: a folder that holds anything else is refused before a byte is written; a file that is there is left alone,
so what somebody changed stays changed; a file is never there by half, and an unpacking that broke off is completed by
the next one. A landing file's modified time is the time of its delivery and does not depend on when it was unpacked:
sources take a file once by path, size and modified time, so a file that was deleted and unpacked again stays taken.

Does not guard against two unpackings of one folder at the same time (both write the same bytes), and does not bring an
older demo up to date.
"""

import errno
import os
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fdagent.errors import DiskFull, HomeDenied, UsageError

HERE = Path(__file__).parent
MARKER = ".fdagent-demo"
DELIVERED_SNAPSHOTS = datetime(2013, 1, 1, tzinfo=UTC)
DELIVERED_AFTER_DAY = timedelta(hours=30)
"""A day's file comes at 06:00 UTC of the next day."""


def unpack(folder: Path) -> None:
    """Make `folder` a runnable project: `layers.toml`, `environments.toml`, `entities/`, and data in `landing/`.

    Raises:
        UsageError: `folder` is a file, or holds something that is not an unpacked demo.
        HomeDenied: no rights there.
        DiskFull: no room; call again once there is.
    """
    try:
        _claim(folder)
        for source, target in _files():
            if not (folder / target).exists():
                _put(source, folder / target)
    except PermissionError as error:
        raise HomeDenied(
            f"The demo can't be written to {folder}: no rights on {error.filename}.",
            fix="Name a folder you may write to.",
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"The demo can't be written to {folder}: {error.filename} is a file, not a folder.",
            fix="Name a folder that is empty or not there yet.",
        ) from error
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise DiskFull(
            f"No room is left for the demo in {folder}.", fix="Make room (4 MB) and give the command again."
        ) from error


def is_demo(folder: Path) -> bool:
    """Was the demo unpacked there?"""
    return (folder / MARKER).is_file()


def _claim(folder: Path) -> None:
    """Mark the folder as a demo before anything else, so that one that broke off is known as one."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / MARKER
    if marker.exists():
        return
    if any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty and is not a demo that was unpacked before; nothing was written.",
            fix="Name a folder that is empty or not there yet.",
        )
    marker.write_text("The demo project was unpacked here. Delete the whole folder to start anew.\n", encoding="utf-8")


def _files() -> list[tuple[Path, Path]]:
    """Each packaged file and its place in the folder."""
    project, data = HERE / "project", HERE / "data"
    return [
        *((path, path.relative_to(project)) for path in sorted(project.rglob("*")) if path.suffix in {".toml", ".sql"}),
        *(
            (path, "landing" / path.relative_to(data))
            for path in sorted(data.rglob("*"))
            if path.suffix in {".csv", ".md"}
        ),
    ]


def _put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    shutil.copyfile(source, part)
    if target.suffix == ".csv":
        seconds = delivered(target.name).timestamp()
        os.utime(part, (seconds, seconds))
    part.replace(target)


def delivered(name: str) -> datetime:
    """When the feed delivered the file of this name: `flights_2013-01-05.csv` came at 06:00 UTC on the 6th."""
    day = re.search(r"\d{4}-\d{2}-\d{2}", name)
    return datetime.fromisoformat(day[0]).replace(tzinfo=UTC) + DELIVERED_AFTER_DAY if day else DELIVERED_SNAPSHOTS
