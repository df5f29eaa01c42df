"""Put a small wrong version of a module in the place of the right one, inside this process, and take it back out.

How: the module's source is read, one passage is replaced (it must stand there exactly once), and the result is compiled
and run as a module of the same name. Then every function of the living module whose code differs is given the wrong
code, so whoever imported it runs that; charts, guards and constants that differ are replaced inside the living object or
module. `differences` uses the same comparison to show that a living module is what its file says.

Guarantees: leaving `applied` restores everything, also after an error. A constant that another module of ours imported
by its name is changed there too.
"""

import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from machines.chart import Chart
from models.step import Guard

MADE = "<string>"
"""The file name of functions that `dataclass` makes."""
CONSTANTS = (int, float, str, bytes, bool, tuple, frozenset)
OURS = ("fdagent", "machines", "models")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong version.

    Args:
        name: What is wrong, in words.
        module: Which module.
        old, new: The passage, and what stands there instead.
        drivers: Which drivers look for it, in this order: scope names (exhaustive), `<scope>@<seeds>` (seeded runs),
            or the name of a schedule.
        trace: The number of the known trace whose repair this takes out, if it is one.
    """

    name: str
    module: str
    old: str
    new: str
    drivers: tuple[str, ...]
    trace: str = ""


def source_of(module: str) -> tuple[str, str]:
    """The text of a module, and its file."""
    file = importlib.import_module(module).__file__
    assert file is not None
    return Path(file).read_text(encoding="utf-8"), file


def fresh(module: str, source: str, file: str) -> dict[str, Any]:
    """The names of a module made from this source, beside the living one."""
    made = types.ModuleType(module)
    made.__file__ = file
    made.__package__ = module.rpartition(".")[0]
    exec(compile(source, file, "exec"), made.__dict__)
    return made.__dict__


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Run with the wrong version in place."""
    source, file = source_of(mutant.module)
    assert source.count(mutant.old) == 1, (
        f"{mutant.name}: the passage stands {source.count(mutant.old)} times in {file}"
    )
    living = vars(importlib.import_module(mutant.module))
    changes = list(_differ(living, fresh(mutant.module, source.replace(mutant.old, mutant.new), file)))
    assert changes, f"{mutant.name} changes nothing"
    try:
        for change in changes:
            change.swap()
        yield
    finally:
        for change in changes:
            change.swap()


def differences(module: str) -> list[str]:
    """What of a living module is not as its file says."""
    living = vars(importlib.import_module(module))
    return [change.name for change in _differ(living, fresh(module, *source_of(module)))]


@dataclass(slots=True)
class _Change:
    """A place and the value that is to stand there; swapping twice restores."""

    name: str
    where: Any
    attribute: str
    value: Any

    def swap(self) -> None:
        if isinstance(self.where, dict):
            self.where[self.attribute], self.value = self.value, self.where[self.attribute]
            return
        was = getattr(self.where, self.attribute)
        setattr(self.where, self.attribute, self.value)
        self.value = was


def _differ(living: dict[str, Any], new: dict[str, Any]) -> Iterator[_Change]:
    for name, value in new.items():
        if name.startswith("__") or name not in living:
            continue
        was = living[name]
        if isinstance(value, Chart):
            if _table(was) != _table(value):
                yield _Change(name, was, "__dict__", value.__dict__)
        elif isinstance(value, CONSTANTS) or (isinstance(value, dict) and name.isupper()):
            if was != value:
                yield from (_Change(name, place, name, value) for place in _places(name, was))
        elif isinstance(value, Guard) or getattr(value, "__module__", living["__name__"]) == living["__name__"]:
            yield from _functions(name, was, value)


def _places(name: str, was: Any) -> Iterator[dict[str, Any]]:
    """The modules that know this constant by this name."""
    for module in list(sys.modules.values()):
        if module.__name__.partition(".")[0] in OURS and vars(module).get(name) is was:
            yield vars(module)


def _functions(name: str, was: Any, new: Any) -> Iterator[_Change]:
    """The differing functions inside a function, guard, property, method or class; an enumeration has none."""
    if isinstance(new, Enum) or (isinstance(new, type) and issubclass(new, Enum)):
        return
    if type(was) is not type(new):
        yield _Change(name, None, name, None)
    elif isinstance(new, types.FunctionType) and new.__code__.co_filename == MADE:
        return  # by a decorator, from the class's fields
    elif isinstance(new, types.FunctionType):
        if _code(was.__code__) != _code(new.__code__):
            yield _Change(name, was, "__code__", new.__code__)
        if _defaults(was) != _defaults(new):
            yield _Change(name, was, "__defaults__", new.__defaults__)
        if hasattr(new, "__wrapped__"):
            yield from _functions(name, was.__wrapped__, new.__wrapped__)
    elif isinstance(new, Guard):
        yield from _functions(name, was.judge, new.judge)
    elif isinstance(new, property):
        yield from _functions(name, was.fget, new.fget)
    elif isinstance(new, staticmethod | classmethod):
        yield from _functions(name, was.__func__, new.__func__)
    elif isinstance(new, type):
        for part, value in vars(new).items():
            if part in vars(was) and not isinstance(value, type):
                yield from _functions(f"{name}.{part}", vars(was)[part], value)


def _code(code: types.CodeType) -> Any:
    """What a code object does, its place in the file apart."""
    inner = tuple(_constant(part) for part in code.co_consts)
    return code.co_code, inner, code.co_names, code.co_varnames, code.co_freevars


def _defaults(function: types.FunctionType) -> list[Any]:
    """Default values, to compare; a lambda by what it does."""
    return [_code(one.__code__) if isinstance(one, types.FunctionType) else one for one in function.__defaults__ or ()]


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _code(value)
    return tuple(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _table(chart: Any) -> Any:
    """A chart's arrows, to compare."""
    return [
        (event, arrow.source, arrow.dest, tuple(guard.label for guard in arrow.guards), arrow.row.then.__name__)
        for event, arrow in chart.arrows()
    ]
