"""What a key of agent.toml is: its kind, its range, its meaning, declared once and read from there by everybody.

Guarantees: the loader, the example file and the reference page take a key's type, default, range and meaning from its
one declaration, `name: Annotated[type, Key(kind, meaning)] = default`. A kind reports what is wrong with a value and
never raises. Rules that look at several keys are in `rules.py`.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Protocol, get_origin, get_type_hints

from fdagent.config.secrets import described
from fdagent.config.shapes import line_problem
from fdagent.project.problems import choices, did_you_mean
from models.ids import MAX_LENGTH, id_problem

Say = Callable[[str], None]
"""Takes what is wrong with one value."""

MAX_ITEMS = 1_000
"""Items of a list."""


class Kind(Protocol):
    """What a value must be."""

    @property
    def expected(self) -> str:
        """The value in words, with its range: `a whole number from 1 to 64`."""
        ...

    def read(self, value: Any, say: Say) -> Any:
        """The value to keep; None when it is wrong, which was said."""
        ...


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    expected = "true or false"

    def read(self, value: Any, say: Say) -> bool | None:
        """As `Kind.read`."""
        if isinstance(value, bool):
            return value
        _wrong(value, self, say)
        return None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `low` to `high`; `true` and `5.0` are none."""

    low: int
    high: int

    @property
    def expected(self) -> str:
        """As `Kind.expected`."""
        return f"a whole number from {self.low} to {self.high}"

    def read(self, value: Any, say: Say) -> int | None:
        """As `Kind.read`."""
        if type(value) is int and self.low <= value <= self.high:
            return value
        _wrong(value, self, say)
        return None


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `low` to `high`, fractions allowed; NaN and infinity are none."""

    low: float
    high: float

    @property
    def expected(self) -> str:
        """As `Kind.expected`."""
        return f"a number from {self.low:g} to {self.high:g}"

    def read(self, value: Any, say: Say) -> float | None:
        """As `Kind.read`."""
        if isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high:
            return float(value)
        _wrong(value, self, say)
        return None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        """As `Kind.expected`."""
        return choices(self.words)

    def read(self, value: Any, say: Say) -> str | None:
        """As `Kind.read`."""
        if isinstance(value, str) and value in self.words:
            return value
        hint = did_you_mean(value, self.words) if isinstance(value, str) else ""
        _wrong(value, self, say, hint if hint.endswith("?") else "")
        return None


@dataclass(frozen=True, slots=True)
class Text:
    """A text, in words (`a time of day`), that `problem` has nothing against.

    `private`: an error never shows it, since people put a secret there by mistake. `tidy` makes one form of many.
    """

    expected: str
    problem: Callable[[str], str] = line_problem
    private: bool = False
    tidy: Callable[[str], str] = str

    def read(self, value: Any, say: Say) -> str | None:
        """As `Kind.read`."""
        if not isinstance(value, str):
            _wrong(value, self, say)
            return None
        problem = self.problem(value)
        if not problem:
            return self.tidy(value)
        say(f"{'what was found' if self.private else described(value)} {problem}")
        return None


@dataclass(frozen=True, slots=True)
class Location:
    """A path. A relative one is meant from the folder of agent.toml, which is the loader's to add."""

    expected: str
    problem: Callable[[str], str]

    def read(self, value: Any, say: Say) -> Path | None:
        """As `Kind.read`."""
        text = Text(self.expected, self.problem).read(value, say)
        return None if text is None else Path(text)


@dataclass(frozen=True, slots=True)
class Many:
    """A list of one kind of text, none twice (letter case aside). `least` is 1 where an empty list could mislead."""

    item: Text | Choice
    such_as: str
    least: int = 0

    @property
    def expected(self) -> str:
        """As `Kind.expected`."""
        if isinstance(self.item, Choice):
            return f"a list of {self.item.expected}"
        return f"a list such as {self.such_as}"

    def read(self, value: Any, say: Say) -> tuple[str, ...] | None:
        """As `Kind.read`."""
        if not isinstance(value, list):
            _wrong(value, self, say)
            return None
        if len(value) < self.least:
            say("found an empty list, which would mean nothing: name at least one, or leave the key out")
            return None
        if len(value) > MAX_ITEMS:
            say(f"found {len(value)} items; {MAX_ITEMS} are allowed")
            return None
        kept: dict[str, str] = {}
        right = True
        for number, item in enumerate(value, start=1):
            text = self.item.read(item, _of_item(number, len(value), say))
            if text is None:
                right = False
            elif text.casefold() in kept:
                right = False
                say(f"names {described(text)} twice")
            else:
                kept[text.casefold()] = text
        return tuple(kept.values()) if right else None


def identifier(what: str) -> Text:
    """An id that may be part of a path (rule C8)."""
    return Text(f"{what}: 1 to {MAX_LENGTH} letters, digits, `.`, `_` and `-`", id_problem)


@dataclass(frozen=True, slots=True)
class Key:
    """One key's declaration, beside its type and default.

    Args:
        kind: What its value must be.
        meaning: One or two sentences for the reference page and the example.
        required: It has no default.
        unset: What counts when the key is not there, in words, where the default doesn't say it.
        example: A value as it is written in TOML, where the default is none to show.
    """

    kind: Kind
    meaning: str
    required: bool = False
    unset: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """A key as it was declared: its name, its default (also the placeholder of a required one) and the rest."""

    name: str
    default: Any
    key: Key


@cache
def declared(table: type) -> tuple[Declared, ...]:
    """The keys of a settings class, in the order of their declaration."""
    hints = get_type_hints(table, include_extras=True)
    keys = []
    for field in fields(table):
        hint = hints[field.name]
        if get_origin(hint) is Annotated:
            if field.default is MISSING:
                raise TypeError(f"{table.__name__}.{field.name} has no default or placeholder")
            keys.append(Declared(field.name, field.default, hint.__metadata__[0]))
    return tuple(keys)


def _of_item(number: int, of: int, say: Say) -> Say:
    """Says which item it is, where there is a choice."""
    return say if of == 1 else lambda what: say(f"item {number}: {what}")


def _wrong(value: Any, kind: Kind, say: Say, hint: str = "") -> None:
    say(f"found {described(value)}, expected {kind.expected}{hint}")
