"""The root of every error a person can meet. The whole tree is drawn in `fdagent/errors.py`.

Guarantees: an error is a sentence (what happened and where) with, where there is one, a second sentence
(what to do), an exit code and a likely category; it can always be written as UTF-8. It never carries a secret:
whoever raises it sees to that.
"""

from enum import StrEnum
from typing import ClassVar


class Category(StrEnum):
    """The likely cause of a failed run: a hint to the reader, never a diagnosis."""

    ACCESS = "Access"
    THROTTLED = "Throttled or capacity"
    NETWORK = "Network"
    TABLE_BUSY = "Table busy"
    SOURCE_MISSING = "Source missing"
    CODE_OR_SCHEMA = "Code or schema"
    DATA_QUALITY = "Data quality"
    CODE = "Code"
    UNRECOGNIZED = "Unrecognized"


class FdagentError(Exception):
    """Root of the tree.

    Args:
        what: One sentence: what happened, and where.
        fix: One sentence: what to do about it. Empty when there is nothing a person can do.
    """

    exit_code: ClassVar[int] = 1
    category: ClassVar[Category] = Category.UNRECOGNIZED
    retryable: ClassVar[bool] = False

    def __init__(self, what: str, *, fix: str = "") -> None:
        self.what = _encodable(what)
        self.fix = _encodable(fix)
        super().__init__(self.what)

    def __str__(self) -> str:
        return f"{self.what} {self.fix}" if self.fix else self.what


def _encodable(sentence: str) -> str:
    """The sentence with lone surrogates escaped: Python's form of a file's name that is no text, which no file takes."""
    return sentence.encode("utf-8", "backslashreplace").decode("utf-8")


class InvalidInput(FdagentError):
    """Something a person or another program wrote is not what it must be. Nothing was changed."""

    exit_code = 2
    category = Category.CODE_OR_SCHEMA


class BadRecord(InvalidInput):
    """A shared record that can't be read as one: not JSON, too large, a wrong type, a broken invariant."""


class NewerContract(InvalidInput):
    """A shared record of a contract this version doesn't know: it is left alone and reported."""


class BadId(InvalidInput):
    """An id that may not be part of a path."""


class BadTime(InvalidInput):
    """A time that is not written as `2027-01-15T09:00:00Z`."""
