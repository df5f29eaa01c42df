"""A row of the run log: what one run did to one table.

Guarantees: a `RunRow` is frozen and has exactly the columns of the `run_log` table; `from_json` gives back what
`to_json` wrote and refuses everything else in a sentence. Does not decide anything.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from models.errors import BadRecord


class RunStatus(StrEnum):
    """How a table's run ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    """A table it reads did not get ready."""
    NO_CHANGE = "no_change"
    """No data changed; a mark, a taken file or a quarantined row may have been noted."""
    ALREADY_DONE = "already_done"
    """The run key's effect was in the table; this attempt wrote nothing."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check's answer: how many rows it found."""

    check: str
    severity: str
    rows: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """One table of one run. Times are UTC as text; row and file counts are this run's own change."""

    run_id: str
    job_id: str
    request_id: str
    run_key: str
    env: str
    entity: str
    layer: str
    mode: str
    status: RunStatus
    started_at: str
    finished_at: str
    duration_ms: int
    attempt: int
    worker: str
    host: str
    agent: str
    source: str
    rows_read: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_quarantined: int = 0
    files_added: int = 0
    files_removed: int = 0
    version_before: int = -1
    """The table's version before and after; -1: no table."""
    version_after: int = -1
    watermark_before: str = ""
    """Up to where the sources were loaded, as JSON; empty when that is not known or there is nothing to know."""
    watermark_after: str = ""
    metadata_version: str = ""
    git_commit: str = ""
    category: str = ""
    error: str = ""
    checks: tuple[CheckResult, ...] = ()

    @property
    def rows_written(self) -> int:
        """New and changed rows."""
        return self.rows_inserted + self.rows_updated

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object."""
        values = asdict(self)
        values["status"] = str(self.status)
        values["checks"] = [asdict(check) for check in self.checks]
        return values

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RunRow":
        """The row that `to_json` wrote.

        Raises:
            BadRecord: It is not such a row.
        """
        try:
            checks = tuple(CheckResult(**_typed(CheckResult, check)) for check in value["checks"])
            return cls(**{**_typed(cls, value), "status": RunStatus(value["status"]), "checks": checks})
        except (KeyError, TypeError, ValueError) as err:
            raise BadRecord(f"A stored run-log row can't be read: {err}.") from err

    @classmethod
    def from_text(cls, text: str) -> "RunRow":
        """The row from its JSON text.

        Raises:
            BadRecord: It is not such a row.
        """
        try:
            value = json.loads(text)
        except ValueError as err:
            raise BadRecord(f"A stored run-log row is not JSON: {err}.") from err
        if not isinstance(value, dict):
            raise BadRecord("A stored run-log row is not a JSON object.")
        return cls.from_json(value)


def _typed(cls: type[Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `value`, each of its declared plain type.

    Raises:
        TypeError: A field is unknown or of another type; one without default is found missing by the constructor.
    """
    plain = {f.name: f.type for f in fields(cls)}
    for name, found in value.items():
        if name not in plain:
            raise TypeError(f"there is no field {name!r}")
        expected = int if plain[name] is int else list if name == "checks" else str
        if not isinstance(found, expected) or isinstance(found, bool):
            raise TypeError(f"{name} is {type(found).__name__}")
    return dict(value)
