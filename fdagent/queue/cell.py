"""One job row as a cell: every arrow of the job chart is one conditional INSERT, UPDATE or DELETE.

Guarantees: the statement names the id, state and version that were read, so a row that moved in between is a Conflict
and nothing is written. Bound to an open transaction, so that several arrows may commit together.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from fdagent.errors import Conflict, QueueUnreadable
from fdagent.queue.db import NAME
from models.errors import BadRecord
from models.job import Job, JobState
from models.step import Write

COLUMNS = tuple(field.name for field in fields(Job))
SELECT = f"select {', '.join(COLUMNS)} from job"
"""Begins every query whose rows `from_row` takes."""
_INSERT = f"insert into job ({', '.join(COLUMNS)}) values ({', '.join('?' for _ in COLUMNS)}) on conflict do nothing"
_STATE, _ENTITIES, _TABLES, *_FLAGS = map(COLUMNS.index, ("state", "entities", "tables", "cascade", "backfill"))
_values = attrgetter(*COLUMNS)
_as_json = json.JSONEncoder(separators=(",", ":")).encode


def to_row(job: Job) -> tuple[Any, ...]:
    """The job as values in the order of COLUMNS."""
    return tuple(map(_out, _values(job)))


def from_row(row: Sequence[Any]) -> Job:
    """The job of a row's values, in the order of COLUMNS.

    Raises:
        QueueUnreadable: The row holds what no job may hold.
    """
    values = list(row)
    try:
        values[_STATE] = JobState(values[_STATE])
        values[_ENTITIES] = _names(json.loads(values[_ENTITIES]))
        values[_TABLES] = _progress(json.loads(values[_TABLES]))
        for flag in _FLAGS:
            values[flag] = bool(values[flag])
        return Job(*values)
    except (ValueError, TypeError, BadRecord) as err:
        raise QueueUnreadable(
            f"Job {row[0]!r} in the queue can't be read: {str(err).rstrip('.')}.",
            fix=f"Stop the agent, then mend or delete that row of the table job in its home's {NAME}.",
        ) from err


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadRecord("its entities are no list of names")
    return tuple(value)


def _progress(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(at, dict) for at in value.values()):
        raise BadRecord("its tables are no object of objects")
    return value


def _out(value: Any) -> Any:
    """A list or map as JSON text, everything else as it is."""
    return value if value is None or isinstance(value, (str, int, float)) else _as_json(value)


class JobCell:
    """The row of one job id inside an open transaction.

    Args:
        transaction: The open transaction.
        job_id: Whose row.
        row: The row, where this transaction has read it already; spares the first read.
    """

    def __init__(self, transaction: sqlite3.Connection, job_id: str, row: Sequence[Any] | None = None) -> None:
        self._run = transaction.execute
        self._id = job_id
        self._row = row
        self._was: Job | None = None

    def read(self) -> tuple[Job | None, str]:
        """The job, and `state/version` as its tag."""
        row, self._row = self._row, None
        if row is None:
            row = self._run(f"{SELECT} where id = ?", (self._id,)).fetchone()
        self._was = None if row is None else from_row(row)
        return self._was, _tag(self._was)

    def write(self, how: Write, record: Job | None, tag: str) -> str:
        """The one conditional statement.

        Raises:
            Conflict: The row is not the version that was read, or its dedupe key is taken.
        """
        try:
            changed = self._execute(how, record, tag)
        except sqlite3.IntegrityError as err:
            raise Conflict(f"Job {self._id!r}: another unfinished job has its dedupe key.") from err
        if changed != 1:
            raise Conflict(f"Job {self._id!r} was changed by somebody else.")
        self._was = record
        return _tag(record)

    def _execute(self, how: Write, record: Job | None, tag: str) -> int:
        state, _, version = tag.partition("/")
        if record is None:
            return self._run(
                "delete from job where id = ? and state = ? and version = ?", (self._id, state, version)
            ).rowcount
        if how is Write.CREATE:
            return self._run(_INSERT, to_row(record)).rowcount
        was = (...,) * len(COLUMNS) if self._was is None else _values(self._was)
        moved = {name: now for name, old, now in zip(COLUMNS, was, _values(record), strict=True) if now != old}
        places = ", ".join(f"{name} = ?" for name in moved)
        return self._run(
            f"update job set {places} where id = ? and state = ? and version = ?",
            (*map(_out, moved.values()), self._id, state, version),
        ).rowcount


def _tag(job: Job | None) -> str:
    return "" if job is None else f"{job.state}/{job.version}"
