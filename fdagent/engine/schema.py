"""Which columns a table may have, and how a computed batch fits the table that is there.

Guarantees
- A name or type that Fabric, or Delta without column mapping, would not take is refused before anything is written,
  and so are two names equal but for case.
- A batch is compared with the table exactly. Nothing is cast silently: only a type whose every value the table's type
  holds (integer into long, decimal into a wider decimal) goes in; anything else is refused, naming column and both
  types. A column the batch lacks is refused; one the table lacks is added or refused, as declared.
- Types DuckDB has and Delta lacks become the Delta type that holds their values: HUGEINT (of `sum`) and unsigned
  integers a signed one, failing on a value that does not fit; UUID, ENUM and JSON text; TIMESTAMP without a zone is UTC.

Does not look at values.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fdagent.engine.duck import ident
from fdagent.errors import SchemaRefused
from fdagent.project.names import column_problem, equal_but_for_case

TIMESTAMP = "TIMESTAMP WITH TIME ZONE"
DELTA_OF = {
    "BIGINT": "long",
    "INTEGER": "integer",
    "SMALLINT": "short",
    "TINYINT": "byte",
    "VARCHAR": "string",
    "DOUBLE": "double",
    "FLOAT": "float",
    "BOOLEAN": "boolean",
    "DATE": "date",
    TIMESTAMP: "timestamp",
    "BLOB": "binary",
}
DUCK_OF = {delta: duck for duck, delta in DELTA_OF.items()} | {"timestamp_ntz": "TIMESTAMP"}
HELD_BY = {
    "HUGEINT": "BIGINT",
    "UHUGEINT": "BIGINT",
    "UBIGINT": "BIGINT",
    "UINTEGER": "BIGINT",
    "USMALLINT": "INTEGER",
    "UTINYINT": "SMALLINT",
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_S": TIMESTAMP,
    "TIMESTAMP_MS": TIMESTAMP,
    "UUID": "VARCHAR",
    "JSON": "VARCHAR",
}
STATS_PROPERTY = "delta.dataSkippingStatsColumns"
"""Delta's table property that names the columns with statistics."""
WHOLE_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
WIDER = {
    "short": ("byte",),
    "integer": ("byte", "short"),
    "long": ("byte", "short", "integer"),
    "float": ("byte", "short"),
    "double": ("byte", "short", "integer", "float"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its name, its Delta type such as `long` or `decimal(18,2)`, and whether it may be NULL."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Shape:
    """How a batch becomes rows of the table.

    `fields` are the table's columns once `new` are added; `select` has one SQL expression for each of them.
    """

    fields: tuple[Field, ...]
    select: tuple[str, ...]
    new: tuple[Field, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(field.name for field in self.fields)

    @property
    def sql(self) -> str:
        """The select list."""
        return ", ".join(self.select)


def duck_type(delta: str) -> str:
    """The DuckDB type of a Delta type; a nested or unknown type has none.

    Raises:
        KeyError: The type is none this version reads.
    """
    return delta.upper() if _DECIMAL.fullmatch(delta) else DUCK_OF[delta]


def fit(
    columns: Sequence[tuple[str, str]],
    existing: Sequence[Field] | None,
    *,
    entity: str,
    on_new_column: Literal["add", "fail"] = "add",
) -> Shape:
    """Fit a computed batch to its table.

    Args:
        columns: The batch's column names and DuckDB types.
        existing: The table's columns; None: there is no table yet.
        entity: For sentences.
        on_new_column: Whether a column the table lacks is added.

    Raises:
        SchemaRefused: Names every column that can't be, with both types where types differ.
    """
    batch = {name: (_held(kind), kind) for name, kind in columns}
    problems = _name_problems([name for name, _ in columns], existing or ())
    problems += [
        f"`{name}` has the type {kind}, which Fabric does not read; cast it in [transform] sql"
        for name, (held, kind) in batch.items()
        if not held
    ]
    new = tuple(Field(name, _delta(held)) for name, (held, _) in batch.items() if held and _is_new(name, existing))
    if existing is not None:
        problems += _differences(batch, existing)
        if new and on_new_column == "fail":
            problems += [
                f"`{field.name}` ({field.type}) is not in the table, and on_new_column is fail" for field in new
            ]
    if problems:
        raise SchemaRefused(f"{entity} can't be written: {'; '.join(problems)}.", fix="Nothing was written.")
    fields = (*(existing or ()), *new)
    return Shape(fields, tuple(_expression(field, batch[field.name][1]) for field in fields), new)


def _held(kind: str) -> str:
    """The DuckDB type that is written for a batch's type; empty when there is none."""
    if kind.startswith("ENUM("):
        return "VARCHAR"
    kind = HELD_BY.get(kind, kind)
    return kind if kind in DELTA_OF or _DECIMAL.fullmatch(kind) else ""


def _delta(held: str) -> str:
    match = _DECIMAL.fullmatch(held)
    return f"decimal({match[1]},{match[2]})" if match else DELTA_OF[held]


def _is_new(name: str, existing: Sequence[Field] | None) -> bool:
    return existing is None or all(field.name.casefold() != name.casefold() for field in existing)


def _name_problems(names: list[str], existing: Sequence[Field]) -> list[str]:
    problems = [f"the column name {name!r} {what}" for name in names if (what := column_problem(name))]
    pairs = equal_but_for_case(names) or equal_but_for_case([*(field.name for field in existing), *names])
    problems += [f"`{one}` and `{other}` differ only in letter case" for one, other in pairs]
    return [f"{problem}; rename it in [columns] or [transform] sql" for problem in problems]


def _differences(batch: dict[str, tuple[str, str]], existing: Sequence[Field]) -> list[str]:
    problems = []
    folded = {name.casefold() for name in batch}
    for field in existing:
        if field.name.casefold() not in folded:
            problems.append(
                f"`{field.name}` ({field.type}) is in the table and no longer in its source; "
                "deliver it, or select it as NULL of that type"
            )
        held, kind = batch.get(field.name, ("", ""))
        if held and not _takes(field.type, _delta(held)):
            problems.append(
                f"`{field.name}` is {field.type} in the table and became {_delta(held)} ({kind}); cast it to {field.type} "
                "in [transform] sql, or load the table anew (Changing a column's type in docs/project.md)"
            )
    return problems


def _takes(wide: str, narrow: str) -> bool:
    """Does every value of type `narrow` have its exact place in type `wide`?"""
    if wide == narrow or narrow in WIDER.get(wide, ()):
        return True
    target = _DECIMAL.fullmatch(wide)
    if target is None:
        return False
    whole, scale = int(target[1]) - int(target[2]), int(target[2])
    if narrow in WHOLE_DIGITS:
        return whole >= WHOLE_DIGITS[narrow]
    source = _DECIMAL.fullmatch(narrow)
    return source is not None and whole >= int(source[1]) - int(source[2]) and scale >= int(source[2])


def _expression(field: Field, kind: str) -> str:
    target = duck_type(field.type)
    name = ident(field.name)
    return name if kind == target else f"CAST({name} AS {target}) AS {name}"
