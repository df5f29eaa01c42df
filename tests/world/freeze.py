"""Any value as a hashable one, so that two states of the world can be compared.

Guarantees: what freezes equal is equal in every field; a type it does not know is an error, never skipped, so nothing
that a process remembers is left out of a comparison. (The order of a mapping is left out: what production code keeps in
order matters only where a bound drops the oldest, far beyond any scope here.) Ports, functions, classes and the queue are
skipped: they are the same for a process's whole life, and what the queue holds is the machine's.
"""

from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any

from fdagent.queue.jobs import Jobs

OURS = frozenset({"fdagent", "models", "machines", "world"})
_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})
_NAMES: dict[type, tuple[str, ...]] = {}
"""The fields of each dataclass that was met."""


class Port:
    """Base of what stands for the outside: constant, so no part of a state."""


def freeze(value: Any) -> Any:
    """`value` as nested tuples and frozensets."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (tuple, list, deque):
        return tuple(map(freeze, value))
    names = _NAMES.get(kind)
    if names is not None:
        return (kind.__name__, *(freeze(getattr(value, name)) for name in names))
    return _freeze(value)


def _freeze(value: Any) -> Any:
    if isinstance(value, Enum | PurePath):
        return str(value)
    if isinstance(value, Port | FunctionType | MethodType | type | Jobs):
        return None
    if isinstance(value, Mapping):
        return frozenset((freeze(key), freeze(inner)) for key, inner in value.items())
    if isinstance(value, AbstractSet):
        return frozenset(map(freeze, value))
    if is_dataclass(value):
        _NAMES[type(value)] = tuple(field.name for field in fields(value))
        return freeze(value)
    if type(value).__module__.removeprefix("tests.").split(".")[0] in OURS and hasattr(value, "__dict__"):
        return type(value).__name__, freeze(vars(value))
    raise TypeError(f"a process remembers a {type(value).__name__}, which can't be compared")
