"""Checks on a computed change, before it is committed.

Guarantees
- A row check (`not_null`, `accepted`) with severity quarantine takes its rows out of the change; with warn or fail it
  counts the rows the change brings.
- `unique` looks at the table as it would be: no value that the change brings may then stand in two rows. A row with a
  NULL in one of the columns is no duplicate, as in SQL.
- `accepted` compares values as text and lets NULL pass: that a value must be there is what `not_null` says.
- With severity fail nothing is written; every failed check is named.
"""

from collections.abc import Sequence

from fdagent.engine.duck import Duck, ident, idents, text
from fdagent.errors import CheckFailed
from fdagent.project.model import Check
from models.run import CheckResult


def violated(check: Check) -> str:
    """The SQL condition under which a row breaks a row check."""
    if check.kind == "not_null":
        return "(" + " OR ".join(f"{ident(column)} IS NULL" for column in check.columns) + ")"
    column = ident(check.columns[0])
    accepted = ", ".join(map(text, check.values))
    return f"({column} IS NOT NULL AND CAST({column} AS VARCHAR) NOT IN ({accepted}))"


def judge(duck: Duck, checks: Sequence[Check], changed: str, after: str) -> tuple[CheckResult, ...]:
    """Count what the checks with severity warn or fail find.

    Args:
        duck: Runs the queries.
        checks: All of the entity's checks.
        changed: The relation of new and changed rows.
        after: The relation of all rows the table would have.
    """
    rows = [check for check in checks if check.kind != "unique" and check.severity != "quarantine"]
    results = []
    if rows:
        counts = ", ".join(f"count(*) FILTER (WHERE {violated(check)})" for check in rows)
        found = duck.row(f"SELECT {counts} FROM {changed}")
        results = [CheckResult(check.label, check.severity, count) for check, count in zip(rows, found, strict=True)]
    for check in checks:
        if check.kind == "unique":
            count = duck.number(_repeated(check.columns, changed, after))
            results.append(CheckResult(check.label, check.severity, count))
    return tuple(results)


def require(entity: str, results: Sequence[CheckResult]) -> None:
    """Refuse a change that a check with severity fail found rows in.

    Raises:
        CheckFailed: Names each such check and its rows.
    """
    failed = [f"{found.check} found {found.rows} rows" for found in results if found.severity == "fail" and found.rows]
    if failed:
        raise CheckFailed(f"{entity}: {', '.join(failed)}.", fix="Nothing was written.")


def _repeated(columns: Sequence[str], changed: str, after: str) -> str:
    """How many rows share a value that the change brings."""
    names = idents(columns)
    present = " AND ".join(f"{ident(column)} IS NOT NULL" for column in columns)
    return (
        f"SELECT sum(n) FROM (SELECT count(*) AS n FROM (SELECT {names} FROM {after}) a "
        f"SEMI JOIN (SELECT DISTINCT {names} FROM {changed} WHERE {present}) c USING ({names}) "
        f"GROUP BY {names} HAVING count(*) > 1)"
    )
