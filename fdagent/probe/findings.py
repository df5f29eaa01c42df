"""What a look at one thing found: fine, worth knowing, or in the way; in a sentence, and with what to do.

Guarantees: a finding holds no secret, for whoever makes it is given none: variables are named, never read out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fdagent.errors import FdagentError


class Level(StrEnum):
    """`warning`: it works, but somebody should know. `error`: something an agent needs does not work."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, what was found, and what to do about it (empty: nothing)."""

    level: Level
    what: str
    sentence: str
    fix: str = ""


def ok(what: str, sentence: str) -> Finding:
    """It is as it should be."""
    return Finding(Level.OK, what, sentence)


def warning(what: str, sentence: str, fix: str) -> Finding:
    """It works, but somebody should know."""
    return Finding(Level.WARNING, what, sentence, fix)


def error(what: str, sentence: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(Level.ERROR, what, sentence, fix)


def errors_of(what: str, err: FdagentError) -> list[Finding]:
    """An error that was met while looking: one finding for each problem it names, or one for itself."""
    problems: tuple[str, ...] = getattr(err, "problems", ())
    return [error(what, sentence, err.fix) for sentence in problems or (err.what,)]


def has_errors(findings: Iterable[Finding]) -> bool:
    """Does any of them stand in the way?"""
    return any(finding.level is Level.ERROR for finding in findings)
