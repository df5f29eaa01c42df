"""What a table of agent.toml holds, read by its declarations.

Guarantees: a key that is not known, a value of a wrong type or out of its range, and a required key that is not there
are each one problem; the default stands in for what is wrong, so that the reading goes on and finds the rest. Rules
across keys are in `rules.py`, which asks here what was given and what was already reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fdagent.config.incidents import Route
from fdagent.config.keys import declared
from fdagent.config.schedules import Schedule
from fdagent.config.secrets import WITHHELD, described, shown_key
from fdagent.config.settings import TABLES, Settings, TableOf
from fdagent.project.problems import Findings, did_you_mean

T = TypeVar("T")

MAX_UNKNOWN = 20
"""Unknown keys that are named in one table."""
MAX_TABLES = 1_000
"""Tables under one `[[name]]`."""


class Report:
    """Where problems go, and which keys have one already.

    Args:
        file: The file's name, as sentences show it.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings = Findings()
        self._bad: set[tuple[str, str]] = set()

    def __call__(self, place: str, key: str, what: str) -> None:
        """A problem of a key (empty: of the table) in a table such as `[agent]`."""
        self._bad.add((place, key))
        self.findings.add(self.file, f"{place} {shown_key(key)}".strip() if key else place, what)

    def has(self, place: str, *keys: str) -> bool:
        """Was a problem of one of these keys reported?"""
        return any((place, key) in self._bad for key in keys)


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that was read, for the rules across keys. `given`: place -> the keys that stand there, even wrong."""

    settings: Settings
    report: Report
    given: Mapping[str, frozenset[str]]

    def schedules(self) -> list[tuple[str, Schedule]]:
        """Each schedule with its place."""
        return list(zip(places(self.given, Schedule), self.settings.schedules, strict=True))

    def routes(self) -> list[tuple[str, Route]]:
        """Each route with its place."""
        return list(zip(places(self.given, Route), self.settings.routes, strict=True))


def places(among: Iterable[str], of: type) -> list[str]:
    """Those places that are tables of a settings class, in the order of the file."""
    header = next(at.header for at in TABLES if at.settings is of)
    return [place for place in among if place.startswith(header)]


def known_keys(table: str) -> tuple[str, ...]:
    """The keys and tables that may stand directly in a table; `""` is the top of the file."""
    keys = [key.name for at in TABLES if at.name == table for key in declared(at.settings)]
    prefix = f"{table}." if table else ""
    inner = [at.name.removeprefix(prefix) for at in TABLES if at.name.startswith(prefix)]
    return (*keys, *(name for name in inner if "." not in name))


def read_table(of: type[T], values: Mapping[str, Any], place: str, base: Path, report: Report) -> T:
    """The settings of one table; `base` is the folder that relative paths are meant from."""
    kept: dict[str, Any] = {}
    for at in declared(of):  # type: ignore[arg-type]  # a class is hashable, which mypy doesn't see of type[T]
        value = values.get(at.name)
        if value is None:
            if at.key.required and not report.has("", place[1:-1]):
                report(place, at.name, f"missing, expected {at.key.kind.expected}, such as {at.key.example}")
        elif value is not WITHHELD:
            read = at.key.kind.read(value, lambda what, key=at.name: report(place, key, what))  # type: ignore[misc]
            if read is not None:
                kept[at.name] = base / read if isinstance(read, Path) else read
    return of(**kept)


def report_unknown(values: Mapping[str, Any], table: str, place: str, report: Report) -> None:
    """Report the keys of a table that it can't have."""
    known = known_keys(table)
    unknown = [key for key, value in values.items() if key not in known and value is not WITHHELD]
    for key in unknown[:MAX_UNKNOWN]:
        hint = did_you_mean(key, known)
        homes = [at.header for at in TABLES if at.name != table and key in known_keys(at.name)]
        if homes and not hint.endswith("?"):
            hint = f"; it is a key of {' and of '.join(homes)}"
        report(place, key, f"unknown key{hint}")
    if len(unknown) > MAX_UNKNOWN:
        report(place, "", f"has {len(unknown) - MAX_UNKNOWN} more unknown keys")


def one_table(values: Mapping[str, Any], of: TableOf, report: Report) -> Mapping[str, Any]:
    """What stands under `[name]`; empty when nothing does, or something else."""
    name = of.name.rsplit(".", 1)[-1]
    value = values.get(name, {})
    if isinstance(value, dict):
        report_unknown(value, of.name, of.header, report)
        return value
    if value is not WITHHELD:
        report("", name, f"found {described(value)}, expected a table, written as {of.header}")
    return {}


def many_tables(values: Mapping[str, Any], of: TableOf, report: Report) -> dict[str, Mapping[str, Any]]:
    """Place -> what stands there, for each `[[name]]`; the place shows the table's number and id."""
    parent, _, name = of.name.rpartition(".")
    value = values.get(name, [])
    if value is WITHHELD:
        return {}
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        report(
            f"[{parent}]" if parent else "", name, f"found {described(value)}, expected tables written as {of.header}"
        )
        return {}
    if len(value) > MAX_TABLES:
        report(of.header, "", f"stands there {len(value)} times; {MAX_TABLES} are allowed")
    tables = {}
    for number, item in enumerate(value[:MAX_TABLES], start=1):
        place = f"{of.header} {number}"
        ident = item.get("id", item.get("name"))
        if isinstance(ident, str) and ident and described(ident) == f'"{ident}"':
            place += f" ({ident})"
        report_unknown(item, of.name, place, report)
        tables[place] = item
    return tables
