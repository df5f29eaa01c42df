"""The DuckDB of one table run: a database in memory that spills to a folder, and the quoting of names and values.

Guarantees: the session's time zone is UTC, no extension is fetched or loaded from outside, memory is bounded by
`memory_limit` where it is given, the spill folder is gone after `close`. A memory or disk limit that was met is a
sentence. Does not know tables or entities.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

from fdagent.errors import Denied, DiskFull, RunError, Unavailable

AT_SOURCE = (
    "To correct the value at its source is enough only where its table is overwritten; in one that is appended to, the "
    "old row stays."
)
CONVERSION = (
    "Use try_cast(... as ...), which gives NULL where a value can't be converted, and a not_null check with severity "
    '"quarantine" on its column to put such rows aside. ' + AT_SOURCE
)
PARSING = CONVERSION.replace("try_cast(... as ...)", "try_strptime")
OUT_OF_RANGE = "Cast to a wider type before it is computed with. " + AT_SOURCE
NOT_NOW = tuple(os.strerror(number).lower() for number in (errno.EIO, errno.ESTALE, errno.ETIMEDOUT))
NO_ROOM = ("no space left", "disk full", "not enough space", "max_temp_directory_size")


def ident(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def texts(values: Sequence[str]) -> str:
    """Texts as an SQL list."""
    return "[" + ", ".join(text(value) for value in values) + "]"


def idents(names: Sequence[str], prefix: str = "") -> str:
    """Quoted names, separated by commas, each behind `prefix` such as `t.`."""
    return ", ".join(prefix + ident(name) for name in names)


class Duck:
    """One database of its own, started when it is first needed: a table with nothing new runs no SQL.

    A start takes 20 ms. Yet no two table runs share a database: its memory limit and its temporary folder are all
    its connections' (and the folder stays, once it was used), and a fatal error would end it for everybody.

    Args:
        memory_limit: Such as `512MB`; empty: DuckDB's own, 80% of the machine.
        spill: Where a folder for larger-than-memory work is made; None: the system's temporary folder.
    """

    def __init__(self, *, memory_limit: str = "", spill: Path | None = None) -> None:
        if spill is not None:
            spill.mkdir(parents=True, exist_ok=True)
        self.spill = Path(tempfile.mkdtemp(prefix="fdagent-", dir=spill))
        self._memory_limit = memory_limit
        self._names = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection.

        Raises:
            RunError: DuckDB can't be started so.
        """
        config: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": str(self.spill),
            "preserve_insertion_order": False,
            # A table name in a user's SQL never means a variable of this program.
            "python_enable_replacements": False,
        }
        if self._memory_limit:
            config["memory_limit"] = self._memory_limit
        try:
            made = duckdb.connect(config=config)
            made.execute("SET TimeZone = 'UTC'")
        except duckdb.Error as err:
            raise RunError(
                f"DuckDB could not be started with memory_limit {self._memory_limit!r}: {first_line(err)}"
            ) from err
        return made

    def close(self) -> None:
        """End the connection and remove what it spilled."""
        if "connection" in self.__dict__:
            self.connection.close()
        shutil.rmtree(self.spill, ignore_errors=True)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; its rows.

        Raises:
            DiskFull: The spill folder or the table's disk has no room.
            RunError: More memory was needed than there is.
            duckdb.Error: Anything else; `explained` makes a sentence of it where the SQL is a user's.
        """
        with limits():
            return self.connection.execute(sql, parameters or None).fetchall()

    def dicts(self, sql: str) -> list[dict[str, Any]]:
        """Run one statement; its rows by column name."""
        with limits():
            found = self.connection.execute(sql)
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def row(self, sql: str) -> tuple[Any, ...]:
        """Run one statement that has one row."""
        return self.rows(sql)[0]

    def number(self, sql: str) -> int:
        """Run one statement that answers one number; NULL counts as 0."""
        return int(self.row(sql)[0] or 0)

    def columns(self, relation: str) -> list[tuple[str, str]]:
        """Names and DuckDB types of a relation's columns."""
        return [(str(name), str(kind)) for name, kind, *_ in self.rows(f"DESCRIBE SELECT * FROM {relation}")]

    def name(self, what: str) -> str:
        """A new name, quoted, for a temporary relation."""
        self._names += 1
        return ident(f"fdagent {what} {self._names}")

    def drop(self, *tables: str) -> None:
        """Drop temporary tables that are no longer needed."""
        for table in tables:
            self.rows(f"DROP TABLE IF EXISTS {table}")


def first_line(err: Exception) -> str:
    """The sentence of a DuckDB error, without the picture of the SQL under it and without its class."""
    line = str(err).strip().split("\n", 1)[0]
    for kind in ("Binder", "Catalog", "Conversion", "Parser", "Invalid Input", "Out of Range"):
        line = line.removeprefix(f"{kind} Error: ")
    return line if line.endswith((".", "!", "?")) else line + "."


@contextmanager
def limits() -> Iterator[None]:
    """Say a memory or disk limit in a sentence.

    Raises:
        DiskFull: No room is left.
        Denied: A file may not be read or written.
        Unavailable: The system failed to read or write one.
        RunError: More memory was needed than `memory_limit` allows.
    """
    try:
        yield
    except duckdb.OutOfMemoryException as err:
        if is_no_room(err):
            raise DiskFull("No room is left for what DuckDB spills to disk.", fix="Free some and run again.") from err
        raise RunError(
            "DuckDB needed more memory than memory_limit allows.",
            fix="Raise memory_limit, or run fewer tables at once.",
        ) from err
    except duckdb.IOException as err:
        if is_no_room(err):
            raise DiskFull(
                "No room is left on the disk that the table's files go to.", fix="Free some and run again."
            ) from err
        if "permission denied" in str(err).lower():
            raise Denied(f"No rights on a file: {first_line(err)}", fix="Give this user access.") from err
        if any(words in str(err).lower() for words in NOT_NOW):
            raise Unavailable(
                f"A file can't be read or written: {first_line(err)}", fix="Run again once it can."
            ) from err
        raise


def is_no_room(err: Exception) -> bool:
    """Does the error say that a disk is full?"""
    said = str(err).lower()
    return any(words in said for words in NO_ROOM)


@contextmanager
def explained(kind: type[RunError], what: str, *, fix: str = "") -> Iterator[None]:
    """Make a sentence of a DuckDB error, where the SQL or the data is a user's.

    Args:
        kind: The error to raise.
        what: The sentence's beginning, such as "The SQL of silver.orders failed".
        fix: What to do about it.
    """
    try:
        yield
    except duckdb.Error as err:
        raise kind(f"{what}: {first_line(err)}", fix=fix or _advice(err)) from err


def _advice(err: duckdb.Error) -> str:
    """What to do about a value that the SQL can't take; empty where the sentence says it."""
    if isinstance(err, duckdb.ConversionException):
        return CONVERSION
    if "could not parse string" in str(err).lower():
        return PARSING
    return OUT_OF_RANGE if isinstance(err, duckdb.OutOfRangeException) else ""
