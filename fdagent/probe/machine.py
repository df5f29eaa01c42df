"""What an agent needs of its machine: Python, SQLite, the table libraries, and time zones.

Guarantees: no table library is loaded: their versions are read from what was installed.
"""

import sqlite3
import sys
from collections.abc import Mapping
from datetime import datetime
from importlib import metadata
from pathlib import Path
from zoneinfo import available_timezones

from fdagent.config.settings import Settings
from fdagent.config.zones import zone_problem
from fdagent.ports import Clock
from fdagent.probe.findings import Finding, error, ok, warning
from fdagent.project.problems import printable

PYTHON_FROM, PYTHON_TO = (3, 11), (3, 13)
"""What the tests run on."""
LIBRARIES = ("deltalake", "duckdb", "pyarrow")
SQLITE_FROM = (3, 37, 0)
"""The first with strict tables."""
WAL_RESET_FROM, WAL_RESET_FIXED = (3, 7, 0), (3, 51, 3)
"""The versions in which two checkpoints at once may damage a file (sqlite.org/wal.html, "the WAL-reset bug")."""
WAL_RESET_MENDED = {(3, 44): 6, (3, 50): 7}
"""Older branches that were mended: the branch and its first good release."""
LOCALTIME = Path("/etc/localtime")

Version = tuple[int, int, int]


def tools() -> list[Finding]:
    """Python, SQLite and the libraries that read and write tables."""
    return [
        python(sys.version_info[:3]),
        sqlite(sqlite3.sqlite_version_info),
        *(library(name) for name in LIBRARIES),
    ]


def python(version: Version) -> Finding:
    """Is it one that is tested?"""
    text = ".".join(map(str, version))
    if PYTHON_FROM <= version[:2] <= PYTHON_TO:
        return ok("Python", f"{text} at {sys.executable}.")
    tested = f"{'.'.join(map(str, PYTHON_FROM))} to {'.'.join(map(str, PYTHON_TO))}"
    make = error if version[:2] < PYTHON_FROM else warning
    return make("Python", f"{text} is not among those this version was tested on.", f"Use Python {tested}.")


def sqlite(version: Version) -> Finding:
    """Can it hold the queue, and has it the bug of overlapping checkpoints?"""
    text = ".".join(map(str, version))
    if version < SQLITE_FROM:
        return error("SQLite", f"{text} has no strict tables.", "Use a Python with SQLite 3.37 or newer.")
    mended = version[2] >= WAL_RESET_MENDED.get((version[0], version[1]), sys.maxsize)
    if WAL_RESET_FROM <= version < WAL_RESET_FIXED and not mended:
        return ok(
            "SQLite",
            f"{text} has the WAL-reset bug (until 3.51.2), which takes a checkpoint beside another writer. The "
            "queue's checkpoints and commits exclude each other, so it is not met; let no other program write to the file.",
        )
    return ok("SQLite", f"{text}.")


def library(name: str) -> Finding:
    """Is it installed?"""
    try:
        return ok(name, f"{metadata.version(name)}.")
    except metadata.PackageNotFoundError:
        return error(name, "It is not installed.", "Install fdagent anew, with what it requires.")


def time_zone(
    settings: Settings | None,
    environ: Mapping[str, str],
    clock: Clock,
    *,
    known: frozenset[str] | None = None,
    localtime: Path = LOCALTIME,
) -> list[Finding]:
    """By which zone schedules run, and whether zones can be looked up.

    Args:
        settings: agent.toml's; None: there is none.
        environ: The environment variables.
        clock: The machine's.
        known: The zones that can be looked up; None: ask the system.
        localtime: Where the machine keeps its zone.
    """
    found = []
    zones = available_timezones() if known is None else known
    if not zones:
        found.append(
            error(
                "tz data",
                "This machine has no tz database: no time zone can be looked up.",
                "Install the operating system's package `tzdata`, or the Python package of that name.",
            )
        )
    named = settings.agent.time_zone if settings else ""
    if named:
        return [*found, ok("time zone", f"Schedules run by {named}, unless they name another.")]
    return [*found, _machines_zone(environ, clock, localtime)]


def _machines_zone(environ: Mapping[str, str], clock: Clock, localtime: Path) -> Finding:
    """The machine's own zone, which the system takes for UTC when it can't tell."""
    here = datetime.fromtimestamp(clock.wall()).astimezone()
    shown = f"{here.tzname()}, UTC{here:%z}"
    variable = environ.get("TZ", "").removeprefix(":")
    fix = "Name one in agent.toml: [agent] time_zone."
    if "/" in variable and not variable.startswith("/") and zone_problem(variable):
        return warning("time zone", f"The variable TZ names {printable(variable)}, which is no time zone here.", fix)
    if not variable and sys.platform == "linux" and not localtime.exists():
        return warning("time zone", f"This machine names no time zone, so it is taken for UTC ({shown}).", fix)
    return ok("time zone", f"Schedules run by the machine's zone ({shown}), unless they name another.")
