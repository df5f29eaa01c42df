"""The rows a run refused, kept in `quarantine_<layer>_<table>`: the row as text, why, from where, by which run.

Guarantees
- Rows are written before the data commit, under the run key and the attempt's own id: a crash between the two loses no
  row, and leaves at most rows of an attempt that never landed.
- Whoever finishes a table (also one that finds it done, or nothing to do) removes its run key's rows of other attempts,
  never those of the attempt that landed; where the log no longer says which that was, none are removed.
- `read` answers only rows whose run key has landed in the entity's table.

Does not guarantee that an append held back for long can't bring rows of a lost attempt back after that: the next one
who finishes the run key removes them. Rows of a run key that nobody finishes stay, since an attempt under it may still
land: a reader of the table takes the run keys that the run log has as finished.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fdagent.engine.change import Change, DataFile
from fdagent.engine.duck import Duck, text
from fdagent.engine.landing import land
from fdagent.engine.metatable import MetaTable, rows_of
from fdagent.engine.schema import TIMESTAMP, Field
from fdagent.engine.sources.tables import PLACE, parquet
from fdagent.engine.tables.delta import DeltaTablePort, Snapshot
from fdagent.engine.write import write
from fdagent.ports import Clock, Ids, Note
from fdagent.project.model import Entity
from fdagent.project.places import Places

FIELDS = (
    Field("run_id", "string"),
    Field("run_key", "string"),
    Field("attempt_id", "string"),
    Field("quarantined_at", "timestamp"),
    Field("entity", "string"),
    Field("file", "string"),
    Field("line", "long"),
    Field("reason", "string"),
    Field("row", "string"),
)
KEYS = ("run_key", "attempt_id", "quarantined_at")


@dataclass(frozen=True, slots=True)
class Quarantine:
    """One entity's quarantine, for one run."""

    duck: Duck
    port: DeltaTablePort
    entity: str
    run_id: str
    run_key: str
    at: str
    """The run's time, as DuckDB reads it."""
    clock: Clock
    ids: Ids

    def write(self, refused: Sequence[str], note: Note, still_mine: Callable[[], None]) -> int:
        """Append refused rows under an attempt's id; how many there are.

        Args:
            refused: Tables (file, line, reason, row).
            note: The data commit's note, which names the attempt.
            still_mine: Asked before the commit.
        """
        rows = " UNION ALL ".join(f'SELECT file, line, reason, "row" FROM {table}' for table in refused)
        count = self.duck.number(f"SELECT count(*) FROM ({rows})")
        if not count:
            return 0
        named = (
            f"(SELECT {text(self.run_id)} AS run_id, {text(self.run_key)} AS run_key, {text(note.attempt_id)} AS attempt_id, "
            f"{TIMESTAMP} {text(self.at)} AS quarantined_at, {text(self.entity)} AS entity, * FROM ({rows}))"
        )
        app_id = f"fdagent/{self.run_key}/quarantine/{note.attempt_id}"
        table = MetaTable(self.port, FIELDS, KEYS, self.clock, self.ids)
        table.append(
            self.duck,
            named,
            app_id=app_id,
            note=lambda own: replace(note, app_id=app_id, attempt_id=own),
            still_mine=still_mine,
        )
        return count

    def has_rows(self) -> bool:
        """Are there rows of the run key? DuckDB is not started to see that no file can have any."""
        if not self.port.folder.exists():
            return False
        snapshot = self.port.open()
        paths = [snapshot.path(file) for file in self._files(snapshot)]
        rows = parquet(snapshot.fields or (), paths)
        return bool(paths) and bool(
            self.duck.rows(f"SELECT 1 FROM {rows} WHERE run_key = {text(self.run_key)} LIMIT 1")
        )

    def settle(self, landed: str) -> None:
        """Remove the run key's rows of attempts other than the one that landed."""
        if not self.port.folder.exists():
            return
        app_id = f"fdagent/{self.run_key}/settle/{self.ids.new()}"
        land(
            self.port,
            app_id=app_id,
            note=lambda own: Note(app_id, own, self.run_key, "", "", 0, self.run_id),
            compute=lambda snapshot, own: self._without(snapshot, own, landed),
            keeps=lambda _snapshot, _change: None,
            still_mine=lambda: None,
            clock=self.clock,
            ids=self.ids,
        )

    def _without(self, snapshot: Snapshot, own: str, landed: str) -> Change | None:
        """The table without those rows; None when there are none."""
        files = self._files(snapshot)
        fields = snapshot.fields or ()
        lost = f"(run_key = {text(self.run_key)} AND attempt_id <> {text(landed)})"
        located = parquet(fields, [snapshot.path(file) for file in files], located=True)
        numbers = self.duck.rows(f"SELECT {PLACE} FROM {located} GROUP BY ALL HAVING bool_or({lost})")
        removes: list[DataFile] = [files[n] for (n,) in numbers]
        if not removes:
            return None
        rest = f"SELECT * FROM {parquet(fields, [snapshot.path(file) for file in removes])} WHERE NOT {lost}"
        adds = write(self.duck, rest, self.port.folder, f"part-{own}-0", fields=fields, keys=KEYS)
        return Change(snapshot.version, adds=adds, removes=tuple(removes))

    def _files(self, snapshot: Snapshot) -> list[DataFile]:
        """Those that may have rows of the run key, by their statistics."""
        lows, highs = snapshot.stats("min", "run_key"), snapshot.stats("max", "run_key")
        return [
            file
            for file in snapshot.files
            if lows.get(file.path, self.run_key) <= self.run_key <= highs.get(file.path, self.run_key)
        ]


def read(places: Places, entity: Entity, *, last: int, clock: Clock) -> list[dict[str, Any]]:
    """The newest quarantined rows of an entity, of runs that landed; each a dict of the table's columns."""
    snapshot = DeltaTablePort(places.quarantine(entity), clock).open()
    if snapshot.handle is None:
        return []
    port = DeltaTablePort(places.table(entity), clock)
    table = port.open()
    with Duck() as duck:
        rows = rows_of(snapshot)
        keys = [key for (key,) in duck.rows(f"SELECT DISTINCT run_key FROM {rows} ORDER BY ALL")]
        landed = ", ".join(text(key) for key in keys if port.has_txn(table, f"fdagent/{key}"))
        if not landed:
            return []
        order = 'ORDER BY quarantined_at DESC, file, line, reason, "row"'
        return duck.dicts(f"SELECT * FROM {rows} WHERE run_key IN ({landed}) {order} LIMIT {int(last)}")
