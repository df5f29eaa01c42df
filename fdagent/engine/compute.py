"""Computes one table's change on a pinned version: sources, shape, rows, load mode, checks, quarantine, files.

Guarantees: a change is computed whole or not at all; when anything is refused, no data file stays behind. Quarantine
rows are written here, before the change is handed to the landing, under the attempt's id. Where nothing that the table
reads has moved since our own newest commit, nothing is computed. Commits no data.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fdagent.engine import checks, scd1
from fdagent.engine.append import append
from fdagent.engine.change import Change, Counts
from fdagent.engine.columns import BAD
from fdagent.engine.duck import Duck, explained, ident, idents, text
from fdagent.engine.landing import Prepare
from fdagent.engine.marks import Known, Marks, read_marks
from fdagent.engine.overwrite import changes_nothing, overwrite
from fdagent.engine.quarantine import Quarantine
from fdagent.engine.schema import Shape, fit
from fdagent.engine.sources.csv import FILE, LOADED_AT
from fdagent.engine.sources.read import KEYED, Read, Reader, is_volatile
from fdagent.engine.sources.tables import parquet
from fdagent.engine.tables.delta import DeltaTablePort, Snapshot
from fdagent.engine.target import Moved, Target
from fdagent.engine.write import stats_property
from fdagent.errors import CheckFailed, SchemaRefused, TransformFailed
from fdagent.ports import Note
from fdagent.project.model import Check, Entity
from models.run import CheckResult


@dataclass(slots=True)
class Computing:
    """One table run's computing.

    Args:
        duck: The run's DuckDB.
        port: The entity's table.
        entity: What is declared.
        reader: Its sources.
        quarantine: Where refused rows go.
        note: What a commit of an attempt carries.
        still_mine: Raises StoodDown when this run is no longer ours.
        logged_marks: The marks of the run log, asked where the table's own log has none.
        backfill: Rebuild from all source rows.
        read_so_far: Told how many rows were read.
    """

    duck: Duck
    port: DeltaTablePort
    entity: Entity
    reader: Reader
    quarantine: Quarantine
    note: Callable[[str], Note]
    still_mine: Callable[[], None]
    logged_marks: Callable[[], str | None]
    backfill: bool = False
    read_so_far: Callable[[int], None] = lambda _rows: None
    base: int = -1
    """The version computed on last."""
    known: Known = field(default_factory=Known)
    """The marks found there."""
    last_read: Read | None = None
    _read_for: Marks | None = None

    def compute(self, snapshot: Snapshot, attempt_id: str) -> Change | Prepare | None:
        """The change on this version; None when nothing moved.

        An attempt of this run key that was lost may have left rows in quarantine, and may still land while its version
        is free. Where nothing moved, the run key is then committed alone: that takes the version, and the rows can go.

        Raises:
            RunError: Any of them.
        """
        change = self._computed(snapshot, attempt_id)
        if change is not None or snapshot.handle is None or not self.quarantine.has_rows():
            return change
        return Change(snapshot.version, marks_before=self.known.text, marks=self.known.text)

    def _computed(self, snapshot: Snapshot, attempt_id: str) -> Change | Prepare | None:
        self.base = snapshot.version
        snapshot.require_writable(self.entity.name)
        self.known = Known() if self.backfill else self._marks(snapshot)
        if self._nothing_new():
            return None
        read = self._read(self.known.marks)
        if read.relation is None:
            marks = read.marks.to_text()
            if snapshot.handle is None or marks == self.known.text:
                return None
            return Change(snapshot.version, marks_before=self.known.text, marks=marks)
        shape = self._shape(snapshot, read.relation)
        prepare = self._prepared(snapshot, shape)
        return prepare or self._changed(snapshot, attempt_id, read, shape)

    def keeps(self, snapshot: Snapshot, change: Change) -> Change | None:
        """A pure append after a lost race: the same files, if marks and columns are what they were."""
        if (
            self._marks(snapshot).text != change.marks_before
            or self.last_read is None
            or self.last_read.relation is None
        ):
            return None
        if self._prepared(snapshot, self._shape(snapshot, self.last_read.relation)):
            return None
        self.base = snapshot.version
        return replace(change, base=snapshot.version)

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that always have statistics: a merge looks for keys, a reader for what is new."""
        return (*self.entity.load.key, self.entity.load.order_by, LOADED_AT)

    @property
    def overwrites(self) -> bool:
        """Does the change replace all rows?"""
        return self.backfill or self.entity.load.mode == "overwrite"

    @property
    def incremental(self) -> bool:
        """Does it read only what is new: files not taken yet, or rows after a watermark?"""
        if self.entity.files is not None:
            return self.entity.files.take != "all"
        return any(source.watermark for source in self.entity.sources)

    def _marks(self, snapshot: Snapshot) -> Known:
        needed = self.incremental and self.entity.load.mode != "overwrite"
        return read_marks(snapshot, self.logged_marks, entity=self.entity.name, needed=needed)

    def _read(self, marks: Marks) -> Read:
        if self.last_read is None or self._read_for != marks:
            self.last_read, self._read_for = self.reader.read(marks), marks
            self.read_so_far(self.last_read.rows)
        return self.last_read

    def _nothing_new(self) -> bool:
        """Is the newest version our own commit of exactly these sources, so that a load of them would change nothing?"""
        if self.backfill or not self.known.newest or not self.reader.unmoved(self.known.marks):
            return False
        if self.entity.load.mode == "append":
            # Without marks of its own an append adds its sources' rows each time it runs, as declared.
            return self.incremental
        return not is_volatile(self.duck, self.entity.sql)

    def _shape(self, snapshot: Snapshot, relation: str) -> Shape:
        with explained(TransformFailed, f"The rows of {self.entity.name} can't be computed"):
            columns = self.duck.columns(relation)
        self._require_named([name for name, _ in columns])
        new = self.entity.load.on_new_column
        # A load that failed before its first commit left the table, and must not decide its columns' types.
        there = None if snapshot.never_loaded else snapshot.fields
        return fit(columns, there, entity=self.entity.name, on_new_column=new)

    def _require_named(self, there: list[str]) -> None:
        """Refuse a key, an order or a check on a column that the rows don't have."""
        load = self.entity.load
        used = {"[load] key": load.key, "[load] order_by": (load.order_by,) if load.order_by else ()}
        used |= {f"The check {check.label}": check.columns for check in self.entity.checks}
        for where, names in used.items():
            lacking = [name for name in names if name not in there]
            if lacking:
                raise SchemaRefused(
                    f"{where} of {self.entity.name} names `{lacking[0]}`, which its rows don't have; they have: "
                    f"{', '.join(there)}.",
                    fix="Nothing was written.",
                )

    def _prepared(self, snapshot: Snapshot, shape: Shape) -> Prepare | None:
        if snapshot.handle is None:
            properties = stats_property(shape.fields, self.keys)
            return Prepare("create the table", lambda: self.port.create(shape.fields, properties))
        if snapshot.never_loaded:
            same = shape.fields == snapshot.fields
            return (
                None if same else Prepare("shape the table", lambda: self.port.replace_columns(snapshot, shape.fields))
            )
        if shape.new:
            return Prepare("add columns", lambda: self.port.add_columns(snapshot, shape.new))
        return None

    def _changed(self, snapshot: Snapshot, attempt_id: str, read: Read, shape: Shape) -> Change | None:
        target = Target(self.duck, snapshot, self.entity.name, shape, attempt_id, self.keys)
        refused = self.duck.name("refused rows")
        self.duck.rows(f'CREATE TEMP TABLE {refused} (file VARCHAR, line BIGINT, reason VARCHAR, "row" VARCHAR)')
        rows, found = self._rows(read, shape, refused)
        moved = self._load(target, rows, refused)
        try:
            results = found + self._judged(target, moved)
            checks.require(self.entity.name, results)
            moved = self._unless_same(target, moved)
            marks = read.marks.to_text()
            note = self.note(attempt_id)
            quarantined = self.quarantine.write([read.refused, refused], note, self.still_mine)
        except BaseException:
            target.discard(moved.adds)
            raise
        if not (moved.adds or moved.removes or quarantined or marks != self.known.text):
            return None
        unique = any(check.kind == "unique" for check in self.entity.checks)
        warned = tuple(CheckResult(warning, "warn", 0) for warning in read.warnings)
        return Change(
            base=snapshot.version,
            adds=moved.adds,
            removes=moved.removes,
            counts=Counts(read.rows, moved.inserted, moved.updated, moved.deleted, quarantined),
            marks_before=self.known.text,
            marks=marks,
            checks=(*results, *warned),
            append_only=self.entity.load.mode == "append" and not self.overwrites and not unique,
        )

    def _rows(self, read: Read, shape: Shape, refused: str) -> tuple[str, tuple[CheckResult, ...]]:
        """The batch without the rows a check puts into quarantine, and what those checks found."""
        load = self.entity.load
        sorting = [check for check in self.entity.checks if check.severity == "quarantine"]
        reasons = [f"CASE WHEN {checks.violated(check)} THEN {text(check.label)} END" for check in sorting]
        if load.mode in KEYED:
            reasons += [f"CASE WHEN {ident(key)} IS NULL THEN {text(f'key {key} is NULL')} END" for key in load.key]
        plain = f"(SELECT {shape.sql} FROM {read.relation})"
        if not reasons:
            return plain, ()
        judged = f"SELECT *, nullif(concat_ws('; ', {', '.join(reasons)}), '') AS {ident(BAD)} FROM {plain}"
        if read.stored and load.mode not in KEYED:
            table = f"({judged})"
        else:
            table = self.duck.name("judged")
            with explained(TransformFailed, f"The rows of {self.entity.name} can't be computed"):
                self.duck.rows(f"CREATE TEMP TABLE {table} AS {judged}")
        self._set_aside(table, shape, refused)
        return f"(SELECT {idents(shape.names)} FROM {table} WHERE {ident(BAD)} IS NULL)", self._found(table, sorting)

    def _found(self, table: str, sorting: list[Check]) -> tuple[CheckResult, ...]:
        if not sorting:
            return ()
        counts = self.duck.row(
            f"SELECT {', '.join(f'count(*) FILTER (WHERE {checks.violated(check)})' for check in sorting)} FROM {table}"
        )
        return tuple(CheckResult(check.label, check.severity, n) for check, n in zip(sorting, counts, strict=True))

    def _set_aside(self, table: str, shape: Shape, refused: str) -> None:
        file = ident(FILE) if FILE in shape.names else "NULL"
        row = ", ".join(f"{text(name)}: {ident(name)}" for name in shape.names)
        self.duck.rows(
            f"INSERT INTO {refused} SELECT {file}, NULL, {ident(BAD)}, CAST(to_json({{{row}}}) AS VARCHAR) "
            f"FROM {table} WHERE {ident(BAD)} IS NOT NULL"
        )
        load = self.entity.load
        if load.mode in KEYED and load.on_null_key == "fail":
            missing = " OR ".join(f"{ident(key)} IS NULL" for key in load.key)
            count = self.duck.number(f"SELECT count(*) FROM {table} WHERE {missing}")
            if count:
                raise CheckFailed(
                    f"{self.entity.name}: {count} rows have no key ({', '.join(load.key)}), and on_null_key is fail.",
                    fix="Nothing was written.",
                )

    def _load(self, target: Target, rows: str, refused: str) -> Moved:
        load = self.entity.load
        if load.mode in KEYED:
            rows = scd1.distinct_keys(self.duck, rows, load, target.shape.names, refused)
        if self.overwrites:
            return overwrite(target, rows)
        return append(target, rows) if load.mode == "append" else scd1.merge(target, rows, load)

    def _unless_same(self, target: Target, moved: Moved) -> Moved:
        """An overwrite by the rows that are there is none: its files go again."""
        if not self.overwrites or not changes_nothing(target, moved):
            return moved
        target.discard(moved.adds)
        return Moved((), (), moved.changed)

    def _judged(self, target: Target, moved: Moved) -> tuple[CheckResult, ...]:
        """What the checks with severity warn or fail find in the change."""
        snapshot = target.snapshot
        gone = {file.path for file in moved.removes}
        kept = [snapshot.path(file) for file in snapshot.files if file.path not in gone]
        after = parquet(target.shape.fields, [*kept, *(str(snapshot.folder / file.path) for file in moved.adds)])
        return checks.judge(self.duck, self.entity.checks, moved.changed, after)
