"""What one table run computed and wants to commit: files to add, files to remove, marks, counts.

Guarantees: values only, so a change can be sent again and again unchanged. Does not touch a file.
"""

import json
from dataclasses import dataclass
from typing import Any

from fdagent.ports import Note
from models.run import CheckResult


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file that a version refers to; `path` is as in the log, relative to the table's folder."""

    path: str
    size: int
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file that was written and is referred to by no version yet; `stats` is Delta's JSON."""

    path: str
    size: int
    rows: int
    stats: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of one change."""

    read: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one table, computed on version `base`."""

    base: int
    adds: tuple[NewFile, ...] = ()
    removes: tuple[DataFile, ...] = ()
    counts: Counts = Counts()
    marks_before: str = ""
    marks: str = ""
    checks: tuple[CheckResult, ...] = ()
    append_only: bool = False
    """It only adds files and holds on any later version with the same marks and columns."""

    @property
    def moves_data(self) -> bool:
        """Does it add or remove rows?"""
        return bool(self.adds or self.removes)


def commit_info(change: Change, note: Note) -> dict[str, Any]:
    """What a commit says beside delta-rs's own: who, for which run key, how many rows, up to where."""
    counts = change.counts
    return {
        "app_id": note.app_id,
        "attempt_id": note.attempt_id,
        "run_key": note.run_key,
        "agent": note.agent,
        "job_id": note.job_id,
        "attempt": note.attempt,
        "run_id": note.run_id,
        "rows": json.dumps({"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}),
        "marks": change.marks,
    }
