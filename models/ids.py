"""Ids that may be part of a path, on every file system and in every store.

Guarantees: an id that passes can't leave its folder, means the same file on Windows and Linux apart from letter case,
and survives a URL unchanged. Narrower than the published contract on purpose (rule C8).
"""

import re

from models.errors import BadId

MAX_LENGTH = 64
MAX_SHARED_SCHEDULE_LENGTH = 40

_SHAPE = re.compile(r"[A-Za-z0-9._-]+")
_DEVICES = frozenset({"con", "prn", "aux", "nul"} | {f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10)})


def check_id(text: str, what: str, *, longest: int = MAX_LENGTH) -> str:
    """Return `text` if it may be an id in a path.

    Args:
        text: The id.
        what: What it names, for the sentence: "request id".
        longest: Its greatest length in characters.

    Raises:
        BadId: Says what is wrong with it.
    """
    problem = id_problem(text, longest=longest)
    if problem:
        raise BadId(f"The {what} {shown(text)} {problem}.", fix="Use letters, digits, '.', '_' and '-' only.")
    return text


def id_problem(text: str, *, longest: int = MAX_LENGTH) -> str:
    """What keeps `text` from being an id, as the end of a sentence; empty when nothing does."""
    if not text:
        return "is empty"
    if len(text) > longest:
        return f"has {len(text)} characters, {longest} are allowed"
    if not _SHAPE.fullmatch(text):
        return "has a character that is not a letter, a digit, '.', '_' or '-'"
    if text.startswith(".") or text.endswith("."):
        return "begins or ends with a dot"
    if text.split(".", 1)[0].casefold() in _DEVICES:
        return "is a device name on Windows"
    return ""


def shown(text: str) -> str:
    """The text in quotes, shortened and with control characters escaped, safe for a terminal."""
    short = text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"
    return repr(short)
