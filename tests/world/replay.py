"""The one line that brings a run back: `python -m tests.soak --replay "<scope>: <choices>"`, or `"<scope>@<seed>"`.

Guarantees: `parse(line(...))` gives back what was written; a word that repeats is written once with its count.
"""

from collections.abc import Sequence
from itertools import groupby

PREFIX = "python -m tests.soak --replay "


def line(scope: str, run: Sequence[str] | int) -> str:
    """The line that replays a list of choices, or a seed."""
    if isinstance(run, int):
        return f'{PREFIX}"{scope}@{run}"'
    words = [(word, len(list(same))) for word, same in groupby(run)]
    return f'{PREFIX}"{scope}: {" ".join(word if count == 1 else f"{word}*{count}" for word, count in words)}"'


def parse(text: str) -> tuple[str, list[str] | int]:
    """A scope's name, and its choices or seed.

    Raises:
        ValueError: It is neither.
    """
    text = text.removeprefix(PREFIX).strip().strip('"')
    name, colon, rest = text.partition(": ")
    if not colon:
        name, at, seed = text.partition("@")
        if not at:
            raise ValueError(f"{text!r} is not a run: write <scope>: <choices>, or <scope>@<seed>")
        return name.strip(), int(seed)
    words: list[str] = []
    for word in rest.split():
        choice, _, count = word.partition("*")
        words += [choice] * int(count or 1)
    return name.strip(), words
