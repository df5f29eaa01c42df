"""The whole error tree. Each error is a sentence and, where it helps, what to do; its class gives the exit code.

    FdagentError                        exit 1
    ├── InvalidInput                    exit 2   wrong usage, configuration or data; nothing was changed
    │   ├── BadRecord, BadId, BadTime, NewerContract (models/errors.py)
    │   ├── UsageError                           a command's words are off
    │   ├── ConfigError                          agent.toml, all its problems at once
    │   └── ProjectError                         a metadata project, all its problems at once
    ├── ChartError                               a table that is no chart, at import (machines/chart.py)
    ├── NoPicture                                no graphviz to draw with (machines/graph.py)
    ├── NotFound                        exit 3   no such job, request, environment, table
    ├── Refused                         exit 4   a guard said no, in an operator's words
    ├── GaveUp                                   the bounded loop used its tries
    ├── StoreError                               a store of records, or of a table's log
    │   ├── Conflict                             another version is there; nothing was written
    │   ├── Unknown                              no answer: it may have happened, or may still happen
    │   ├── Unavailable                          not now; `retry_after` seconds where the store said so
    │   ├── Denied                               not allowed
    │   └── BadKey                               a key no record may have
    ├── HomeError                                the agent's own folder
    │   ├── HomeDenied                           no rights there
    │   ├── HomeGone                             removed or replaced under its agent
    │   ├── DiskFull                             no room; nothing half-written
    │   └── QueueUnreadable                      the queue file is not one of ours
    │       └── QueueDamaged                     it is no whole SQLite file any more
    └── RunError                                 one table of a run can't be finished
        ├── SourceMissing, BadSource             a source is not there, or not as declared
        ├── TransformFailed                      the SQL or Python of an entity
        ├── SchemaRefused                        names or types Fabric or the table would not take
        ├── CheckFailed                          a check with severity `fail`
        ├── NotATable                            the table's folder holds something else
        ├── MarksUnknown                         rows are there, but not up to where they were loaded
        ├── TableBusy                            other writers kept winning, or hold its lease
        └── StoodDown                            this run is no longer ours to finish
            └── HandedOver                       its request is another agent's now

`retryable` says whether another attempt of the same job may end differently.
"""

import traceback
from pathlib import Path

from models.errors import BadId, BadRecord, BadTime, Category, FdagentError, InvalidInput, NewerContract

__all__ = [
    "BadId",
    "BadKey",
    "BadRecord",
    "BadSource",
    "BadTime",
    "Category",
    "CheckFailed",
    "ConfigError",
    "Conflict",
    "Denied",
    "DiskFull",
    "FdagentError",
    "GaveUp",
    "HandedOver",
    "HomeDenied",
    "HomeError",
    "HomeGone",
    "InvalidInput",
    "MarksUnknown",
    "NewerContract",
    "NotATable",
    "NotFound",
    "ProjectError",
    "QueueDamaged",
    "QueueUnreadable",
    "Refused",
    "RunError",
    "SchemaRefused",
    "SourceMissing",
    "StoodDown",
    "StoreError",
    "TableBusy",
    "TransformFailed",
    "Unavailable",
    "Unknown",
    "UsageError",
    "unforeseen",
]


class UsageError(InvalidInput):
    """A command's words are off."""


class Problems(InvalidInput):
    """Several problems found in one reading, so that they can be mended in one go.

    Args:
        what: One sentence that says what was read.
        problems: One sentence each: file, table, key, what was found, what is expected.
    """

    def __init__(self, what: str, problems: tuple[str, ...] = (), *, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  - {problem}" for problem in self.problems)])


class ConfigError(Problems):
    """agent.toml can't be used; every problem it has is named."""


class ProjectError(Problems):
    """A metadata project can't be used; every problem it has is named."""


class NotFound(FdagentError):
    """What was named does not exist."""

    exit_code = 3


class Refused(FdagentError):
    """A chart's guard refused what a person asked for."""

    exit_code = 4


class GaveUp(FdagentError):
    """The bounded loop used all its tries: others kept winning, or no answer came.

    Args:
        what: The sentence.
        unclear: True when the last write's outcome is still unknown.
    """

    category = Category.TABLE_BUSY
    retryable = True

    def __init__(self, what: str, *, unclear: bool = False, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.unclear = unclear


class StoreError(FdagentError):
    """A store of records, or of a table's log, did not do what was asked."""

    category = Category.NETWORK
    retryable = True


class Conflict(StoreError):
    """Another version is there: nothing was written."""

    category = Category.TABLE_BUSY


class Unknown(StoreError):
    """No answer: the write may have happened, or may still happen."""


class Unavailable(StoreError):
    """The store can't be reached or asks to wait.

    Args:
        what: The sentence.
        retry_after: Seconds the store asked to wait, or None.
    """

    def __init__(self, what: str, *, retry_after: float | None = None, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.retry_after = retry_after


class Denied(StoreError):
    """The store refuses this identity."""

    category = Category.ACCESS
    retryable = False


class BadKey(StoreError):
    """A key that no record may have; nothing outside the control root is ever touched."""

    category = Category.CODE
    retryable = False


class HomeError(FdagentError):
    """The agent's own folder can't be used."""


class HomeDenied(HomeError):
    """No rights on the home folder or a file in it."""

    exit_code = 2
    category = Category.ACCESS


class HomeGone(HomeError):
    """The folder was removed or replaced while its agent ran."""


class DiskFull(HomeError):
    """No room is left where something must be written; what was there is whole."""

    retryable = True


class QueueUnreadable(HomeError):
    """The queue file is not a queue of this version, or a row of it is none."""


class QueueDamaged(QueueUnreadable):
    """The queue file is not SQLite, or no longer whole."""


class RunError(FdagentError):
    """One table of a run can't be finished."""

    category = Category.CODE


class SourceMissing(RunError):
    """A declared source file or table is not there."""

    category = Category.SOURCE_MISSING


class BadSource(RunError):
    """A source can't be read as it is declared."""

    category = Category.DATA_QUALITY


class TransformFailed(RunError):
    """The entity's SQL or Python failed."""


class SchemaRefused(RunError):
    """A name or type that Fabric or the existing table would not take; nothing was written."""

    category = Category.CODE_OR_SCHEMA


class CheckFailed(RunError):
    """A check with severity `fail` found rows; nothing was written."""

    category = Category.DATA_QUALITY


class NotATable(RunError):
    """The table's folder exists and is not a Delta table."""

    category = Category.CODE_OR_SCHEMA


class MarksUnknown(RunError):
    """The table has rows, but up to where its sources were loaded is nowhere to be found."""

    category = Category.CODE_OR_SCHEMA


class TableBusy(RunError):
    """Other writers kept winning, or one holds the table's lease."""

    category = Category.TABLE_BUSY
    retryable = True


class StoodDown(RunError):
    """This run was taken from us: nothing further is written."""

    category = Category.TABLE_BUSY


def unforeseen(err: BaseException) -> str:
    """An error that nobody foresaw, in words: its kind and where it was raised. Not its text, which may hold anything."""
    frames = traceback.extract_tb(err.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    number = f" (errno {err.errno})" if isinstance(err, OSError) and err.errno is not None else ""
    return f"{type(err).__name__}{number}{where}."


def in_words(err: Exception) -> str:
    """Any error, for people: the sentence of one of ours, what may be said of another."""
    return str(err) if isinstance(err, FdagentError) else unforeseen(err)


class HandedOver(StoodDown):
    """The request this run belongs to is another agent's, or has ended: its status is left alone."""
