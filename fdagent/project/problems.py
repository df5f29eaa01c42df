"""Everything that is wrong with a project, gathered in one reading.

Guarantees: one sentence a problem, with the file relative to the project's root, the table and key, what was found and
what is expected; safe for a terminal, whatever bytes a name holds. Does not decide what is wrong.
"""

import difflib
import json
from collections.abc import Iterable
from typing import Any

MAX_SHOWN = 60
"""Characters of a found value that a sentence shows."""
MAX_NAMED = 12
"""Known names that a sentence lists when none is near."""


class Findings:
    """The problems found so far, each once, in the order in which they were found."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence a problem."""
        return tuple(self._sentences)

    def add(self, file: str, key: str, what: str) -> None:
        """Add one: `key` is such as `[load] mode`, or empty for the file as a whole; `what` lacks its full stop."""
        place = f"{file}, {key}" if key else file
        self._sentences[printable(f"{place}: {what}{'' if what.endswith('?') else '.'}")] = None


def printable(text: str) -> str:
    """The text with every character escaped that a terminal or a log could not show as itself."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def found(value: Any) -> str:
    """A TOML value as a sentence shows it: short, on one line."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        text = value if len(value) <= MAX_SHOWN else value[: MAX_SHOWN - 1] + "…"
        return printable(json.dumps(text, ensure_ascii=False))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "a very large number" if isinstance(value, int) and abs(value) >= 10**18 else str(value)


def choices(words: Iterable[str], *, last: str = "or") -> str:
    """`"a", "b" or "c"`."""
    quoted = [json.dumps(word) for word in words]
    return f" {last} ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that `word` may have been meant for, letter case aside; empty when none is near."""
    folded = {name.casefold(): name for name in known}
    match = difflib.get_close_matches(word[:MAX_SHOWN].casefold(), folded, n=1)
    return folded[match[0]] if match else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or the known ones when they are few."""
    known = tuple(known)
    match = nearest(word, known)
    if match:
        return f"; did you mean `{match}`?"
    return f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= MAX_NAMED else ""
