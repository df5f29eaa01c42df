"""Appends to the agent's own Delta tables in LH_Meta: run log, check log, quarantine.

Guarantees: the same landing as for any table, so that an append repeated under one `app_id` doubles nothing. A table is
created, and gets columns a newer version has, before its first row. Each file holds the rows of one append.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fdagent.engine.change import Change, Counts
from fdagent.engine.duck import Duck, ident
from fdagent.engine.landing import Prepare, land
from fdagent.engine.schema import Field, duck_type
from fdagent.engine.sources.tables import parquet
from fdagent.engine.tables.delta import DeltaTablePort, Snapshot
from fdagent.engine.write import write
from fdagent.ports import Clock, Ids, Note


@dataclass(frozen=True, slots=True)
class MetaTable:
    """One such table.

    Args:
        port: Where it lies.
        fields: Its columns; a newer version of this program may have given it more.
        keys: Columns that always have statistics.
        clock: For the landing.
        ids: For the landing.
    """

    port: DeltaTablePort
    fields: Sequence[Field]
    keys: Sequence[str]
    clock: Clock
    ids: Ids

    def append(
        self, duck: Duck, rows: str, *, app_id: str, note: Callable[[str], Note], still_mine: Callable[[], None]
    ) -> None:
        """Append the rows of a relation.

        Args:
            duck: Has the relation.
            rows: The relation, with the table's columns under their names.
            app_id: What makes a repeated append the same one.
            note: What the commit carries.
            still_mine: Asked before each commit.

        Raises:
            TableBusy, Unknown, Denied, DiskFull, NotATable, StoodDown: See `landing.land` and the port.
        """

        def compute(snapshot: Snapshot, attempt_id: str) -> Change | Prepare:
            return self._prepared(snapshot) or self._added(duck, rows, snapshot, attempt_id)

        def keeps(snapshot: Snapshot, change: Change) -> Change | None:
            return None if self._prepared(snapshot) else replace(change, base=snapshot.version)

        land(
            self.port,
            app_id=app_id,
            note=note,
            compute=compute,
            keeps=keeps,
            still_mine=still_mine,
            clock=self.clock,
            ids=self.ids,
        )

    def _prepared(self, snapshot: Snapshot) -> Prepare | None:
        if snapshot.fields is None:
            return Prepare("create the table", lambda: self.port.create(self.fields))
        there = {field.name for field in snapshot.fields}
        new = [field for field in self.fields if field.name not in there]
        return Prepare("add columns", lambda: self.port.add_columns(snapshot, new)) if new else None

    def _added(self, duck: Duck, rows: str, snapshot: Snapshot, attempt_id: str) -> Change:
        there = snapshot.fields or ()
        columns = ", ".join(_column(field, self.fields) for field in there)
        query = f"SELECT {columns} FROM {rows}"
        adds = write(duck, query, self.port.folder, f"part-{attempt_id}-0", fields=there, keys=self.keys)
        counts = Counts(inserted=sum(file.rows for file in adds))
        return Change(snapshot.version, adds=adds, counts=counts, append_only=True)


def _column(field: Field, fields: Sequence[Field]) -> str:
    """A column of ours, or one that a newer version of this program added to the table."""
    known = field in fields
    return ident(field.name) if known else f"NULL::{duck_type(field.type)} AS {ident(field.name)}"


def rows_of(snapshot: Snapshot) -> str:
    """All rows of a version as a relation."""
    return parquet(snapshot.fields or (), [snapshot.path(file) for file in snapshot.files])
