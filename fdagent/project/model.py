"""What a metadata project is once it is read: frozen values that the engine runs from.

Guarantees: a `Project` was checked whole (names, keys, types, references, ranks, cycles), so the engine asks nothing of
that kind again. Does not touch a file; `load.py` makes these values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Severity = Literal["quarantine", "warn", "fail"]
Mode = Literal["overwrite", "append", "scd1"]
Take = Literal["new", "all", "newest"]


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: an entity may read its own rank or a lower one. `schema` only in a schema-enabled lakehouse."""

    name: str
    rank: int
    lakehouse: str
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Where an environment's tables lie. `lakehouses` and the workspaces are GUIDs, empty for a local target."""

    name: str
    target: Literal["local", "fabric"]
    vars: Mapping[str, str] = field(default_factory=dict)
    workspace: str = ""
    keys_workspace: str = ""
    lakehouses: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Csv:
    """How a CSV file is written. Nothing is guessed: what is not declared has these defaults."""

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    null: tuple[str, ...] = ("",)
    quote: str = '"'
    header: bool = True
    on_bad_row: Literal["quarantine", "fail"] = "quarantine"
    on_empty: Literal["fail", "ignore"] = "fail"


@dataclass(frozen=True, slots=True)
class FileSource:
    """CSV files by a glob such as `{landing}/orders_*.csv`; `{name}` is one of the environment's vars."""

    files: str
    take: Take = "new"
    csv: Csv = field(default_factory=Csv)


@dataclass(frozen=True, slots=True)
class EntitySource:
    """Another entity's table. With a watermark only rows at or after the mark, minus `lag_seconds`, are read."""

    alias: str
    entity: str
    watermark: str = ""
    lag_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Column:
    """A source column's declaration: its name in the table, its type, and how its text is read.

    `type` is one of text, integer, double, boolean, date, timestamp, or decimal(p,s).
    """

    source: str
    name: str
    type: str = "text"
    format: str = ""
    zone: str = ""
    null: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """How rows reach the table."""

    mode: Mode
    key: tuple[str, ...] = ()
    order_by: str = ""
    on_duplicate_key: Literal["newest", "quarantine", "fail"] = "newest"
    on_null_key: Literal["quarantine", "fail"] = "quarantine"
    on_new_column: Literal["add", "fail"] = "add"


@dataclass(frozen=True, slots=True)
class Check:
    """A rule the computed change must keep: `not_null` and `accepted` judge rows, `unique` judges the set."""

    kind: Literal["not_null", "accepted", "unique"]
    columns: tuple[str, ...]
    severity: Severity
    values: tuple[str, ...] = ()
    """Accepted values, as text, for `accepted` (which has exactly one column)."""

    @property
    def label(self) -> str:
        """How the check is named in run_log, check_log and quarantine: `not_null(order_id, amount)`."""
        return f"{self.kind}({', '.join(self.columns)})"


@dataclass(frozen=True, slots=True)
class Objective:
    """What an entity's runs are held to."""

    success_rate: float | None = None
    over_runs: int = 20
    duration_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """One table: where its rows come from, how they are changed, checked and loaded."""

    name: str
    layer: Layer
    table: str
    file: Path
    load: Load
    files: FileSource | None = None
    sources: tuple[EntitySource, ...] = ()
    """Other entities; with `source.entity` there is one, under the alias `source`."""
    sql: str = ""
    """The transform with `{alias}` places; empty: the rows as they are."""
    sql_file: Path | None = None
    """Where the transform stands, if not in `file`."""
    columns: tuple[Column, ...] = ()
    checks: tuple[Check, ...] = ()
    description: str = ""
    owner: str = ""
    team: str = ""
    criticality: Literal["low", "normal", "high", "critical"] = "normal"
    freshness_minutes: float | None = None
    objective: Objective | None = None

    @property
    def upstream(self) -> tuple[str, ...]:
        """The entities it reads."""
        return tuple(dict.fromkeys(source.entity for source in self.sources))


@dataclass(frozen=True, slots=True)
class Project:
    """A whole metadata project. `metadata_version` is a digest of its normalised content."""

    root: Path
    layers: Mapping[str, Layer]
    environments: Mapping[str, Environment]
    entities: Mapping[str, Entity]
    metadata_version: str
