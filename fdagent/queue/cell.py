"""One job row as a cell: every arrow of the job chart is one conditional INSERT, UPDATE or DELETE.

Guarantees: the statement names the id, state and version that were read, so a row that moved in between is a Conflict
and nothing is written. Bound to an open transaction, so that several arrows may commit together.
"""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fdagent.errors import Conflict, QueueUnreadable
from models.errors import BadRecord
from models.job import Job, JobState
from models.step import Write

COLUMNS = tuple(field.name for field in fields(Job))
_JSON = frozenset({"entities", "tables"})
_INSERT = f"insert into job ({', '.join(COLUMNS)}) values ({', '.join('?' for _ in COLUMNS)}) on conflict do nothing"


def to_row(job: Job) -> dict[str, Any]:
    """The job as column values."""
    return {name: _out(name, getattr(job, name)) for name in COLUMNS}


def from_row(row: Mapping[str, Any] | sqlite3.Row) -> Job:
    """The job of a row.

    Raises:
        QueueUnreadable: The row holds what no job may hold.
    """
    values = {name: row[name] for name in COLUMNS}
    try:
        values["state"] = JobState(values["state"])
        values["entities"] = tuple(json.loads(values["entities"]))
        values["tables"] = json.loads(values["tables"])
        values["cascade"], values["backfill"] = bool(values["cascade"]), bool(values["backfill"])
        return Job(**values)
    except (ValueError, TypeError, BadRecord) as err:
        raise QueueUnreadable(f"Job {row['id']!r} in the queue can't be read: {err}.") from err


def _out(name: str, value: Any) -> Any:
    if name in _JSON:
        return json.dumps(value, separators=(",", ":"))
    return int(value) if isinstance(value, bool) else value


class JobCell:
    """The row of one job id inside an open transaction."""

    def __init__(self, transaction: sqlite3.Connection, job_id: str) -> None:
        self._run = transaction.execute
        self._id = job_id
        self._was: Job | None = None

    def read(self) -> tuple[Job | None, str]:
        """The job, and `state/version` as its tag."""
        row = self._run("select * from job where id = ?", (self._id,)).fetchone()
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
        values = to_row(record)
        if how is Write.CREATE:
            return self._run(_INSERT, tuple(values.values())).rowcount
        before = {} if self._was is None else to_row(self._was)
        moved = {name: value for name, value in values.items() if before.get(name, ...) != value}
        places = ", ".join(f"{name} = ?" for name in moved)
        return self._run(
            f"update job set {places} where id = ? and state = ? and version = ?",
            (*moved.values(), self._id, state, version),
        ).rowcount


def _tag(job: Job | None) -> str:
    return "" if job is None else f"{job.state}/{job.version}"
