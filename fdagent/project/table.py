"""One TOML table, read key by key with its types.

Guarantees: a key that is not known is reported as soon as the table is opened; a value of a wrong type or out of range
is reported and the default returned, so that the reading goes on and finds the rest; the values are copies, checked.
Does not know what the keys mean.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

from fdagent.project.names import column_problem, equal_but_for_case
from fdagent.project.problems import Findings, choices, did_you_mean, found

C = TypeVar("C", bound=str)

FORMAT = 1


class Table:
    """A table of a project file.

    Args:
        values: What `tomllib` read.
        file: The file, relative to the project's root.
        path: Where in the file: empty at the top, else such as `[load]` or `[[checks]] 2`.
        findings: Where problems go.
        known: The keys it may have; None: the caller looks at the keys itself.
    """

    def __init__(
        self, values: dict[str, Any], file: str, path: str, findings: Findings, known: Iterable[str] | None = None
    ) -> None:
        self.values = values
        self.file = file
        self.path = path
        self.findings = findings
        if known is not None:
            known = tuple(known)
            for key in values:
                if key not in known:
                    self.problem(key, f"unknown key{did_you_mean(key, known)}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def problem(self, key: str, what: str) -> None:
        """Report a problem of one key (empty: of the table)."""
        self.findings.add(self.file, f"{self.path} {key}".strip(), what)

    def wrong(self, key: str, expected: str) -> None:
        """Report a value that is not what it must be."""
        self.problem(key, f"found {found(self.values[key])}, expected {expected}")

    def missing(self, key: str, expected: str) -> None:
        """Report a key that must be there."""
        self.problem(key, f"missing, expected {expected}")

    def format_is_known(self, *, required: bool) -> bool:
        """Is the file written in the format this version reads?"""
        if "format" not in self.values:
            if required:
                self.missing("format", f"`format = {FORMAT}`")
            return not required
        value = self.values["format"]
        if type(value) is int and value == FORMAT:
            return True
        self.wrong("format", f"{FORMAT}, the only format this version reads")
        return False

    def text(self, key: str, *, required: bool = False, expected: str = "a text") -> str:
        """A text that is not blank; empty when it is not there or wrong."""
        if key not in self.values:
            if required:
                self.missing(key, expected)
            return ""
        value = self.values[key]
        if isinstance(value, str) and value.strip() and "\0" not in value:
            return value
        self.wrong(key, expected)
        return ""

    def choice(self, key: str, allowed: tuple[C, ...], default: C, *, required: bool = False) -> C:
        """One of a few words."""
        if key not in self.values:
            if required:
                self.missing(key, choices(allowed))
            return default
        value = self.values[key]
        if isinstance(value, str):
            for word in allowed:
                if value == word:
                    return word
            hint = did_you_mean(value, allowed)
            self.problem(key, f"found {found(value)}, expected {choices(allowed)}{hint if hint.endswith('?') else ''}")
        else:
            self.wrong(key, choices(allowed))
        return default

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        self.wrong(key, "true or false")
        return default

    def number(self, key: str, above: float, at_most: float, unit: str) -> float | None:
        """A number in (above, at_most]; None when it is not there or wrong."""
        if key not in self.values:
            return None
        value = self.values[key]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and above < value <= at_most:  # which NaN is not
            return float(value)
        self.wrong(key, f"{unit} above {above:g} and at most {at_most:.15g}")
        return None

    def whole(self, key: str, low: int, high: int, default: int, *, required: bool = False) -> int:
        """A whole number from `low` to `high`."""
        if key not in self.values:
            if required:
                self.missing(key, f"a whole number from {low} to {high}")
            return default
        value = self.values[key]
        if type(value) is int and low <= value <= high:
            return value
        self.wrong(key, f"a whole number from {low} to {high}")
        return default

    def columns(self, key: str) -> tuple[str, ...]:
        """A list of at least one column name that Fabric takes, none twice."""
        if key not in self.values:
            return ()
        value = self.values[key]
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            self.wrong(key, 'a list of column names, such as ["order_id"]')
            return ()
        for name in value:
            self.check_column(key, name)
        for one in [name for name, times in Counter(value).items() if times > 1]:
            self.problem(key, f"names {found(one)} twice")
        for one, other in equal_but_for_case(value):
            self.problem(key, f"{found(one)} and {found(other)} differ only in letter case")
        return tuple(value)

    def column(self, key: str) -> str:
        """A column name that Fabric takes; empty when it is not there or wrong."""
        name = self.text(key, expected="a column name")
        if name:
            self.check_column(key, name)
        return name

    def check_column(self, key: str, name: str) -> None:
        """Report a name that no column may have."""
        problem = column_problem(name)
        if problem:
            self.problem(key, f"the column name {found(name)} {problem}")

    def table(self, key: str, known: Iterable[str] | None = None, *, shown: str = "") -> "Table | None":
        """A table under `key`; None when it is not there or something else. `shown`: its path in sentences."""
        if key not in self.values:
            return None
        value = self.values[key]
        if not isinstance(value, dict):
            self.wrong(key, "a table")
            return None
        return Table(value, self.file, shown or f"{self.path} {key}".strip(), self.findings, known)

    def tables(self, key: str, known: Iterable[str]) -> "list[Table]":
        """The tables under `[[key]]`."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(key, f"tables written as [[{key}]]")
            return []
        return [
            Table(item, self.file, f"[[{key}]] {number}", self.findings, known)
            for number, item in enumerate(value, start=1)
        ]
