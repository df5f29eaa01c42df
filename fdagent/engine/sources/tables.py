"""Another entity's Delta table as a source: all of it, or what it gained since the mark.

Guarantees
- A pinned version is read, by its Parquet paths; a table with deletion vectors, partitions or renamed columns is read
  through delta-rs, so that deleted rows never come back.
- With a watermark, what is new is told from the files: those the table gained since the version of the mark, less the
  rows that stood in files it lost. Of these, rows count whose watermark lies at or after the mark minus `lag`, or is
  NULL. A row equal to the mark is read once however often runs meet it, one that arrives late within `lag` is not
  missed, and rows that were only written to another file (a merge, a compaction) are not read again.
- Where that version can't be read any more (its log or files were cleaned), or the table was made anew, the watermark
  alone must do: rows after the mark, never one twice; for a load by key from the mark minus `lag`, since there a row
  that comes twice changes nothing. The run says so.

Does not see a row that changes without its watermark, beyond `lag`; and not one that arrives later than `lag` with a
watermark below the mark.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fdagent.engine.duck import Duck, explained, ident, idents, text, texts
from fdagent.engine.marks import SourceMark
from fdagent.engine.schema import Field, duck_type
from fdagent.engine.sources.csv import META
from fdagent.engine.tables.delta import DeltaTablePort, Snapshot
from fdagent.errors import BadSource, SourceMissing
from fdagent.project.model import EntitySource

PLACE = "__file"
"""Column of `parquet`: the number of the file a row is in."""
LAGGING = ("TIMESTAMP", "DATE")


@dataclass(frozen=True, slots=True)
class TableRows:
    """What is read of one source: a relation, its rows, the mark after it, and what a person should know of it."""

    relation: str
    read: int
    mark: SourceMark
    warning: str = ""


def relation(duck: Duck, snapshot: Snapshot) -> str:
    """A version's rows as a relation, its columns in their types whatever its files have."""
    if not snapshot.raw_parquet and snapshot.handle is not None:
        name = duck.name("scan")
        stream = snapshot.handle.scan()  # found by DuckDB under its name here
        with explained(BadSource, f"The table {snapshot.folder} can't be read"):
            duck.connection.register("fdagent_scan", stream)
            duck.rows(f"CREATE TEMP TABLE {name} AS SELECT * FROM fdagent_scan")
            duck.connection.unregister("fdagent_scan")
        return name
    return parquet(snapshot.fields or (), [snapshot.path(file) for file in snapshot.files])


def parquet(fields: Iterable[Field], paths: list[str], *, located: bool = False) -> str:
    """Parquet files as a subquery with exactly these columns; one that a file lacks is NULL there.

    Args:
        fields: The table's columns.
        paths: The files.
        located: Also `PLACE`.
    """
    types = {field.name: _duck_type(field) for field in fields}
    if not paths:
        types |= {PLACE: "INTEGER"} if located else {}
        columns = ", ".join(f"NULL::{kind} AS {ident(name)}" for name, kind in types.items())
        return f"(SELECT {columns} WHERE false)"
    entries = ", ".join(
        f"{text(name)}: {{name: {text(name)}, type: {text(kind)}, default_value: NULL}}" for name, kind in types.items()
    )
    place = f", list_position({texts(paths)}, __path) - 1 AS {PLACE}" if located else ""
    option = ", filename = '__path'" if located else ""
    files = f"read_parquet({texts(paths)}, schema = MAP {{{entries}}}, hive_partitioning = false{option})"
    return f"(SELECT {idents(list(types))}{place} FROM {files})"


def _duck_type(field: Field) -> str:
    try:
        return duck_type(field.type)
    except KeyError as err:
        raise BadSource(
            f"Column `{field.name}` has the type {field.type}, which this version does not read.",
            fix="Let its writer store it as text or in columns of its own.",
        ) from err


def read(duck: Duck, port: DeltaTablePort, source: EntitySource, mark: SourceMark | None, *, keyed: bool) -> TableRows:
    """Read what a source has, or gained.

    Args:
        duck: Where the relation is made.
        port: The source's table.
        source: What is declared of it.
        mark: Up to where it was read; None: not at all.
        keyed: Does the load match rows by key, so that a row that comes twice changes nothing?

    Raises:
        SourceMissing: The table is not there.
        BadSource: It has no such watermark, or can't be read.
    """
    snapshot = port.open()
    if snapshot.handle is None:
        raise SourceMissing(
            f"The table of {source.entity} is not there yet ({port.folder}).", fix=f"Run {source.entity}."
        )
    if not source.watermark:
        rows = relation(duck, snapshot)
        return _answer(duck, source, snapshot, rows)
    _check_watermark(source, snapshot)
    if mark is None or mark.entity != source.entity:
        return _answer(duck, source, snapshot, relation(duck, snapshot))
    if mark.table_id == snapshot.id and mark.version == snapshot.version:
        return TableRows(parquet(snapshot.fields or (), []), 0, mark)
    before = port.at(mark.version) if mark.table_id == snapshot.id and mark.version < snapshot.version else None
    gained = _gained(duck, source, snapshot, before, mark) if before else None
    if gained is not None:
        return _answer(duck, source, snapshot, gained, mark=mark)
    rows = _by_watermark(duck, source, snapshot, mark, keyed=keyed)
    warning = (
        f"{source.entity} was read by its watermark alone, since what it was at version {mark.version} can't be read"
    )
    return _answer(duck, source, snapshot, rows, mark=mark, warning=warning)


def _answer(
    duck: Duck,
    source: EntitySource,
    snapshot: Snapshot,
    rows: str,
    *,
    mark: SourceMark | None = None,
    warning: str = "",
) -> TableRows:
    at = mark.at if mark else None
    with explained(BadSource, f"The table of {source.entity} can't be read"):
        if source.watermark:
            column = ident(source.watermark)
            count, newest, is_newer = duck.row(
                f"SELECT count(*), CAST(max({column}) AS VARCHAR), {_newer(source, snapshot, at)} FROM {rows}"
            )
            at = newest if at is None or is_newer else at
        else:
            count = duck.number(f"SELECT count(*) FROM {rows}")
    return TableRows(rows, int(count), SourceMark(source.entity, snapshot.id, snapshot.version, at), warning)


def _newer(source: EntitySource, snapshot: Snapshot, at: str | None) -> str:
    return "true" if at is None else f"max({ident(source.watermark)}) > {_value(source, snapshot, at)}"


def _value(source: EntitySource, snapshot: Snapshot, at: str) -> str:
    """The mark as a value of the watermark's type."""
    return f"CAST({text(at)} AS {_type_of(source, snapshot)})"


def _type_of(source: EntitySource, snapshot: Snapshot) -> str:
    field = next(field for field in snapshot.fields or () if field.name == source.watermark)
    return _duck_type(field)


def _check_watermark(source: EntitySource, snapshot: Snapshot) -> None:
    names = [field.name for field in snapshot.fields or ()]
    if source.watermark not in names:
        raise BadSource(
            f"{source.entity} has no column `{source.watermark}` to be its watermark; it has: {', '.join(names)}.",
            fix="Correct [source] watermark.",
        )
    if source.lag_seconds and not _type_of(source, snapshot).startswith(LAGGING):
        raise BadSource(
            f"The watermark `{source.watermark}` of {source.entity} is {_type_of(source, snapshot)}, so it has no lag.",
            fix="Use a timestamp or a date as watermark, or leave lag out.",
        )


def _from(source: EntitySource, snapshot: Snapshot, mark: SourceMark) -> str:
    """The condition that a row's watermark is at or after the mark minus the lag, or is not known."""
    column = ident(source.watermark)
    if mark.at is None:
        return "true"
    low = _value(source, snapshot, mark.at)
    if source.lag_seconds:
        low = f"{low} - INTERVAL '{source.lag_seconds:.6f} seconds'"
    return f"({column} >= {low} OR {column} IS NULL)"


def _gained(duck: Duck, source: EntitySource, snapshot: Snapshot, before: Snapshot, mark: SourceMark) -> str | None:
    """The rows of the window that are in files gained and were not in files lost; None when those can't be read."""
    if not (snapshot.raw_parquet and before.raw_parquet):
        return None
    fields = snapshot.fields or ()
    old = {file.path for file in before.files}
    now = {file.path for file in snapshot.files}
    gained = parquet(fields, [snapshot.path(file) for file in snapshot.files if file.path not in old])
    lost_paths = [before.path(file) for file in before.files if file.path not in now]
    window = _from(source, snapshot, mark)
    rows = f"(SELECT * FROM {gained} WHERE {window})"
    if not lost_paths:
        return rows
    if not all(Path(path).exists() for path in lost_paths):
        return None
    says = [field.name for field in fields if field.name not in META or field.name == source.watermark]
    lost = f"(SELECT * FROM {parquet(fields, lost_paths)} WHERE {window})"
    name = duck.name("gained")
    numbered = f"SELECT *, row_number() OVER (PARTITION BY {idents(says)}) AS __n FROM"
    same = " AND ".join(f"g.{ident(one)} IS NOT DISTINCT FROM l.{ident(one)}" for one in says)
    duck.rows(
        f"CREATE TEMP TABLE {name} AS SELECT {idents([f.name for f in fields], 'g.')} FROM ({numbered} {rows}) g "
        f"ANTI JOIN ({numbered} {lost}) l ON g.__n = l.__n AND {same}"
    )
    return name


def _by_watermark(duck: Duck, source: EntitySource, snapshot: Snapshot, mark: SourceMark, *, keyed: bool) -> str:
    rows = relation(duck, snapshot)
    if mark.at is None or keyed:
        return f"(SELECT * FROM {rows} WHERE {_from(source, snapshot, mark)})"
    return f"(SELECT * FROM {rows} WHERE {ident(source.watermark)} > {_value(source, snapshot, mark.at)})"
