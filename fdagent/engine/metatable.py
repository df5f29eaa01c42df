"""Appends to the agent's own Delta tables in LH_Meta: run log, check log, quarantine.

Guarantees: the same landing as for any table, so that an append repeated under one `app_id` doubles nothing. A table is
created, and gets columns a newer version has, before its first row. Each file holds the rows of one append.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fdagent.engine.change import Change, Counts
from fdagent.engine.duck import Duck, ident
from fdagent.engine.landing import Landing, Prepare, land
from fdagent.engine.schema import Field, duck_type
from fdagent.engine.sources.tables import parquet
from fdagent.engine.tables.delta import DeltaTablePort, Snapshot
from fdagent.engine.write import write
from fdagent.ports import Clock, Ids, Note


def append(
    duck: Duck,
    port: DeltaTablePort,
    fields: Sequence[Field],
    rows: str,
    *,
    app_id: str,
    note: Callable[[str], Note],
    still_mine: Callable[[], None],
    clock: Clock,
    ids: Ids,
    keys: Sequence[str] = (),
) -> Landing[Change]:
    """Append the rows of a relation.

    Args:
        duck: Has the relation.
        port: The table.
        fields: The table's columns, which the relation has under these names.
        rows: The relation.
        app_id: What makes a repeated append the same one.
        note: What the commit carries.
        still_mine: Asked before each commit.
        clock: The landing's clock.
        ids: The landing's ids.
        keys: Columns that always have statistics.

    Raises:
        TableBusy, Unknown, Denied, DiskFull, NotATable, StoodDown: See `landing.land` and the port.
    """

    def compute(snapshot: Snapshot, attempt_id: str) -> Change | Prepare:
        prepare = _prepared(port, snapshot, fields)
        if prepare:
            return prepare
        there = snapshot.fields or ()
        columns = ", ".join(_column(field, fields) for field in there)
        query = f"SELECT {columns} FROM {rows}"
        adds = write(duck, query, port.folder, f"part-{attempt_id}-0", fields=there, keys=keys)
        inserted = sum(file.rows for file in adds)
        return Change(snapshot.version, adds=adds, counts=Counts(inserted=inserted), append_only=True)

    def keeps(snapshot: Snapshot, change: Change) -> Change | None:
        return None if _prepared(port, snapshot, fields) else replace(change, base=snapshot.version)

    return land(
        port, app_id=app_id, note=note, compute=compute, keeps=keeps, still_mine=still_mine, clock=clock, ids=ids
    )


def _prepared(port: DeltaTablePort, snapshot: Snapshot, fields: Sequence[Field]) -> Prepare | None:
    if snapshot.fields is None:
        return Prepare("create the table", lambda: port.create(fields))
    there = {field.name for field in snapshot.fields}
    new = [field for field in fields if field.name not in there]
    return Prepare("add columns", lambda: port.add_columns(snapshot, new)) if new else None


def _column(field: Field, fields: Sequence[Field]) -> str:
    """A column of ours, or one that a newer version of this program added to the table."""
    known = field in fields
    return ident(field.name) if known else f"NULL::{duck_type(field.type)} AS {ident(field.name)}"


def rows_of(snapshot: Snapshot) -> str:
    """All rows of a version as a relation."""
    return parquet(snapshot.fields or (), [snapshot.path(file) for file in snapshot.files])
