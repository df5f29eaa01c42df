"""Shared records and their JSON: one declaration a field, from which reading, writing and the contract page follow.

Guarantees (rules C6 and C7)
- A field that is wrong in kind is a `BadRecord` whose sentence names it; nothing is converted.
- A missing optional field, or one that is null, is unknown: it takes its declared default, None wherever that could
  be mistaken for an answer.
- Fields this version does not know are kept, in `extra`, and written back; in the parts of a record too.
- A record of a higher contract is a `NewerContract`, whatever else it holds: leave it alone and report it.

A field is declared as `name: Annotated[type, "what it means"]`, or with `Later("...")` where the first version of the
contract did not have it. Optional fields have a default. Does not read bytes (`codec.py`) or check ids (`ids.py`).
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, Union, cast, get_args, get_origin, get_type_hints

from models.errors import BadRecord, BadTime, NewerContract
from models.ids import shown
from models.times import seconds, stamp

CONTRACT = 1
"""The highest contract this version reads, and the one it writes."""

Time = Annotated[float, "time"]
"""Seconds since the epoch; in JSON a text such as `2027-01-15T09:00:00Z`."""


@dataclass(frozen=True, slots=True)
class Later:
    """The meaning of a field that the first version of the contract did not have."""

    meaning: str


@dataclass(frozen=True, slots=True)
class Field:
    """One declared field, as reading, writing and the contract page need it."""

    name: str
    hint: Any
    shape: "Shape"
    meaning: str
    first: bool
    required: bool
    default: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPart:
    """An object inside a record."""

    WHAT: ClassVar[str] = "part"
    """What it is called in sentences."""

    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that this version does not know."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The object as a value.

        Raises:
            BadRecord: A required field is missing, or a field is wrong in kind.
        """
        return cast("Self", _read_part(cls, value, cls.WHAT))

    def to_json(self) -> dict[str, Any]:
        """The object as JSON: what is known of it, and what it held beside."""
        written = dict(self.extra)
        for known in declared(type(self)):
            value = getattr(self, known.name)
            if known.required or value != known.default:
                written[known.name] = _write(value, known.shape)
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRecord(JsonPart):
    """A whole record: its contract is checked first and written always."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The record as a value.

        Raises:
            NewerContract: Its contract is higher than this version knows.
            BadRecord: It is not such a record.
        """
        contract = value.get("contract")
        if contract is None:
            contract = CONTRACT
        if not WHOLE.fits(contract):
            raise BadRecord(f"The {cls.WHAT} has contract as {_title(contract)}, a whole number is expected.")
        if contract < 1:
            raise BadRecord(f"The {cls.WHAT} has contract {contract}, a number from 1 is expected.")
        if contract > CONTRACT:
            raise NewerContract(
                f"The {cls.WHAT} has contract {contract}, this version knows {CONTRACT}.",
                fix="Leave it to a newer version of fdagent, or update this one.",
            )
        known = {name: inner for name, inner in value.items() if name != "contract"}
        return cast("Self", _read_part(cls, known, cls.WHAT))

    def to_json(self) -> dict[str, Any]:
        """The record as JSON."""
        # Named through JsonPart: `super()` without arguments fails in a class with slots.
        return {**JsonPart.to_json(self), "contract": CONTRACT}


def declared(cls: type[JsonPart]) -> tuple[Field, ...]:
    """The declared fields of a record's or part's class, in their order."""
    hashable: Any = cls  # mypy takes the class's own __hash__ for its instances' one
    return _declared_once(hashable)


@cache
def _declared_once(cls: Any) -> tuple[Field, ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_declared(f.name, hints[f.name], _default(f)) for f in fields(cls) if f.name != "extra")


def _default(told: Any) -> Any:
    return told.default if told.default_factory is MISSING else told.default_factory()


def _declared(name: str, hint: Any, default: Any) -> Field:
    inner, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    # Annotated[Time, "meaning"] is flattened to Annotated[float, "time", "meaning"].
    if len(notes) == 2:
        inner, notes = Annotated[inner, notes[0]], notes[1:]
    if len(notes) != 1:
        raise AssertionError(f"the field {name} is declared without its meaning")
    later = isinstance(notes[0], Later)
    meaning = notes[0].meaning if later else notes[0]
    required = default is MISSING
    return Field(name, inner, shape_of(inner), meaning, not later, required, None if required else default)


def _read_part(cls: type[Any], value: Mapping[str, Any], what: str, path: str = "") -> Any:
    """One object of the record `what`; `path` leads to it and ends in a dot, or is empty."""
    known: dict[str, Any] = {}
    extra = dict(value)
    for told in declared(cls):
        found = extra.pop(told.name, None)
        if found is not None:
            known[told.name] = _read(found, told.shape, what, path + told.name)
        elif told.required:
            raise BadRecord(f"The {what} has no {path}{told.name}.")
    return cls(**known, extra=extra)


def _read(value: Any, shape: "Shape", what: str, path: str) -> Any:
    kind, inner = shape.kind, shape.inner
    # Asked by the very type first, which nearly always answers.
    if type(value) not in kind.types and not kind.fits(value):
        raise BadRecord(f"The {what} has {path} as {_title(value)}, {kind.title} is expected.")
    if kind.as_it_is:
        return value
    if kind is TIME:
        try:
            return seconds(value)
        except BadTime as err:
            raise BadRecord(f"The {what} has a {path} that is no time: {err}") from err
    if kind is CHOICE:
        try:
            return inner(value)
        except ValueError as err:
            names = ", ".join(inner)
            raise BadRecord(f"The {what} has {path} {shown(value)}, one of {names} is expected.") from err
    if kind is LIST:
        holds = shape.holds
        return tuple([_read(one, holds, what, f"{path}[{n}]") for n, one in enumerate(value)])
    if kind is MAP:
        holds = shape.holds
        return {name: _read(one, holds, what, f"{path}.{name}") for name, one in value.items()}
    return _read_part(inner, value, what, f"{path}.")


def _write(value: Any, shape: "Shape") -> Any:
    kind = shape.kind
    if value is None or kind.as_it_is:
        return value
    if kind is TIME:
        return stamp(value)
    if kind is CHOICE:
        return str(value)
    if kind is LIST:
        holds = shape.holds
        return [_write(one, holds) for one in value]
    return value.to_json() if kind is PART else {name: _write(one, shape.holds) for name, one in value.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of JSON value: what a sentence calls it, and the Python types that carry it."""

    title: str
    types: tuple[type, ...]
    as_it_is: bool = False
    """The value is the same in JSON and in a record."""

    def fits(self, value: Any) -> bool:
        """Is this value of the kind? True and False are flags, never numbers."""
        return bool in self.types or self is ANY if isinstance(value, bool) else isinstance(value, self.types)


TEXT = Kind("a text", (str,), as_it_is=True)
CHOICE = Kind("a text", (str,))
TIME = Kind("a time such as 2027-01-15T09:00:00Z", (str,))
WHOLE = Kind("a whole number", (int,), as_it_is=True)
NUMBER = Kind("a number", (int, float), as_it_is=True)
FLAG = Kind("true or false", (bool,), as_it_is=True)
LIST = Kind("a list", (list, tuple))
MAP = Kind("an object", (dict, Mapping))
PART = Kind("an object", (dict, Mapping))
ANY = Kind("anything", (object,), as_it_is=True)

_PLAIN: dict[Any, Kind] = {str: TEXT, int: WHOLE, float: NUMBER, bool: FLAG, Any: ANY}


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A declared type taken apart: its kind, the type without its `| None`, and what a list or map of it holds."""

    kind: Kind
    inner: Any
    inside: "Shape | None" = None

    @property
    def holds(self) -> "Shape":
        """What it holds, where it is a list or a map."""
        if self.inside is None:
            raise AssertionError(f"{self.kind.title} holds nothing")
        return self.inside


def shape_of(hint: Any) -> Shape:
    """The declared type, taken apart."""
    kind = kind_of(hint)
    return Shape(kind, bare(hint), shape_of(inside(hint)) if kind in (LIST, MAP) else None)


@cache
def kind_of(hint: Any) -> Kind:
    """The kind of JSON value that a declared type stands for."""
    inner = bare(hint)
    if get_origin(inner) is Annotated:
        return TIME
    if inner in _PLAIN:
        return _PLAIN[inner]
    if get_origin(inner) is not None:
        return LIST if get_origin(inner) is tuple else MAP
    return CHOICE if issubclass(inner, StrEnum) else PART


@cache
def inside(hint: Any) -> Any:
    """The declared type of what a list, or the values of a map, hold."""
    return get_args(bare(hint))[-1 if kind_of(hint) is MAP else 0]


@cache
def bare(hint: Any) -> Any:
    """The declared type without its `| None`."""
    if get_origin(hint) in (Union, UnionType):
        return next(inner for inner in get_args(hint) if inner is not type(None))
    return hint


def _title(value: Any) -> str:
    """What a value is, for a sentence; never the value itself, which may be long or secret."""
    return next((kind.title for kind in (FLAG, WHOLE, NUMBER, TEXT, LIST, MAP) if kind.fits(value)), "null")
