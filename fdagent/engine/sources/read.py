"""What one run reads: files or other entities' tables, typed as declared, and the entity's SQL over them.

Guarantees: each source is pinned once a run and read once for the same marks, however often the change is computed
anew; the marks returned say exactly what was read. Nothing is loaded of a file that changed meanwhile. A column that a
file lacks is NULL there as long as no older file had it; a file without one that an older file had is refused, whether the
two are loaded together or a year apart, unless the SQL makes no use of the column.
"""

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb

from fdagent.engine.columns import BAD, ROW, Input, staged
from fdagent.engine.duck import Duck, explained, ident, idents
from fdagent.engine.marks import FoundFile, Marks, SourceMark, digest
from fdagent.engine.sources import csv as csv_source
from fdagent.engine.sources import files as file_source
from fdagent.engine.sources import tables as table_source
from fdagent.engine.tables.delta import DeltaTablePort
from fdagent.errors import BadSource, SchemaRefused, TransformFailed
from fdagent.ports import Clock
from fdagent.project.model import Csv, Entity, EntitySource, Project
from fdagent.project.names import equal_but_for_case
from fdagent.project.places import Places
from fdagent.project.source import ONLY_ALIAS, expand
from fdagent.project.sql import fill

NO_CSV = Csv(null=())
KEYED = ("scd1",)
"""Load modes that match rows by key."""
CLOCKS = frozenset({
    "now", "today", "age", "current_date", "current_time", "current_timestamp", "current_localtime",
    "current_localtimestamp", "localtime", "localtimestamp", "get_current_time", "get_current_timestamp",
    "transaction_timestamp",
})  # fmt: skip
_FILE = re.compile(r"\b(from|join)\s+'")


@dataclass(frozen=True, slots=True)
class Read:
    """What was read: the relation after the entity's SQL, its source rows (refused ones too), and the marks after it.

    `relation` is None when there was nothing to read: no new file, or only empty ones. `stored`: reading the relation
    twice gives the same rows, since no SQL stands between it and its files.
    """

    relation: str | None
    rows: int
    marks: Marks
    stored: bool
    refused: str
    warnings: tuple[str, ...] = ()


def definition(entity: Entity) -> str:
    """A digest of everything declared that decides which rows a table has."""
    return digest(entity.files, entity.sources, entity.columns, entity.sql, entity.load, entity.checks)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one entity's sources.

    Args:
        duck: Where relations are made.
        project, places, entity: What is read, and where it lies.
        loaded_at: The run's time, for `_loaded_at`.
    """

    duck: Duck
    project: Project
    places: Places
    entity: Entity
    loaded_at: str
    clock: Clock

    def unmoved(self, marks: Marks) -> bool:
        """Is everything it reads, and what is declared, exactly what the marks say was loaded?

        Raises:
            SourceMissing, BadSource, Denied, Unavailable: See `read`.
        """
        if marks.definition != definition(self.entity):
            return False
        source = self.entity.files
        if source is not None:
            chosen = self._chosen(marks)
            return _listing(chosen) == marks.listing if source.take == "all" else not chosen
        return all(
            (mark := marks.sources.get(source.alias)) is not None
            and mark.entity == source.entity
            and (now := self._port(source).open()).id == mark.table_id
            and now.version == mark.version
            for source in self.entity.sources
        )

    def read(self, marks: Marks) -> Read:
        """Read what the marks leave to read.

        Raises:
            SourceMissing, BadSource: A source is not there or not as declared.
            TransformFailed: The SQL can't be run on these columns.
            Denied, Unavailable: A source can't be opened.
        """
        refused = self.duck.name("refused")
        self.duck.rows(f'CREATE TEMP TABLE {refused} (file VARCHAR, line BIGINT, reason VARCHAR, "row" VARCHAR)')
        found = self._files(marks, refused) if self.entity.files else self._tables(marks, refused)
        return replace(found, marks=replace(found.marks, definition=definition(self.entity)))

    def _chosen(self, marks: Marks) -> list[FoundFile]:
        source = self.entity.files
        if source is None:
            raise AssertionError("an entity without files was asked for its files")
        pattern = self.places.source_files(self.entity)
        found = file_source.find(pattern, self.project.root)
        wild = glob.has_magic(expand(source.files, self.places.environment.vars))
        return file_source.choose(source.take, pattern, found, marks.taken, wild=wild)

    def _files(self, marks: Marks, refused: str) -> Read:
        source = self.entity.files
        chosen = self._chosen(marks)
        if source is None or not chosen:
            return Read(None, 0, Marks(taken=marks.taken, columns=marks.columns), stored=True, refused=refused)
        known = () if source.take == "all" else marks.columns
        taken = Marks(taken=marks.taken.plus(chosen), columns=known)
        after = Marks(listing=_listing(chosen)) if source.take == "all" else taken
        rows = csv_source.stage(
            self.duck, chosen, source.csv, self.entity.columns, loaded_at=self.loaded_at, refused=refused
        )
        file_source.require_unchanged(chosen)
        if rows is None:
            return Read(None, 0, after, stored=True, refused=refused)
        relation = self._transformed({ONLY_ALIAS: rows.relation})
        seen = self._kept(rows, known, relation)
        after = after if source.take == "all" else replace(after, columns=seen)
        return Read(relation, rows.read, after, stored=not self.entity.sql, refused=refused)

    def _kept(self, rows: csv_source.CsvRows, seen: tuple[str, ...], relation: str) -> tuple[str, ...]:
        """Refuse a file without a column that an older one had; all columns that were seen then."""
        spared: dict[tuple[str, ...], bool] = {}
        for file, names in rows.headers:
            self._require_same_case(file, seen, names)
            folded = {name.casefold() for name in names}
            lacking = tuple(name for name in seen if name.casefold() not in folded)
            if lacking and lacking not in spared:
                spared[lacking] = self._spares(lacking, rows.relation, relation)
            if lacking and not spared[lacking]:
                raise BadSource(
                    f"{file.name} has no column {lacking[0]!r}, which an older file has or had.",
                    fix="Deliver the column, empty if need be, or load the two through two entities.",
                )
            seen = tuple(dict.fromkeys((*seen, *names)))
        return seen

    def _require_same_case(self, file: FoundFile, seen: tuple[str, ...], names: tuple[str, ...]) -> None:
        """Refuse two names for one column; SQL gives it one name."""
        pairs = () if self.entity.sql else equal_but_for_case(dict.fromkeys((*seen, *names)))
        for one, other in pairs:
            raise BadSource(
                f"{file.name}: the columns `{one}` and `{other}` of its own and older files differ only in letter case.",
                fix="Rename it in [columns], or correct it where it is written.",
            )

    def _spares(self, lacking: Sequence[str], rows: str, relation: str) -> bool:
        """Does the entity's SQL give the same columns where these are not there?"""
        if not self.entity.sql:
            return False
        there = idents([name for name, _ in self.duck.columns(rows) if name not in lacking])
        sql = fill(self.entity.sql.rstrip().rstrip(";"), {ONLY_ALIAS: f"(SELECT {there} FROM {rows})"})
        try:
            names = [str(name) for name, *_ in self.duck.rows(f"DESCRIBE (\n{sql}\n)")]
        except duckdb.Error:
            return False
        return names == [name for name, _ in self.duck.columns(relation)]

    def _port(self, source: EntitySource) -> DeltaTablePort:
        return DeltaTablePort(self.places.table(self.project.entities[source.entity]), self.clock)

    def _tables(self, marks: Marks, refused: str) -> Read:
        relations: dict[str, str] = {}
        after: dict[str, SourceMark] = {}
        warnings = []
        total = 0
        for source in self.entity.sources:
            keyed = self.entity.load.mode in KEYED
            mark = marks.sources.get(source.alias)
            rows = table_source.read(self.duck, self._port(source), source, mark, keyed=keyed)
            relations[source.alias] = self._typed(rows.relation, refused)
            after[source.alias] = rows.mark
            total += rows.read
            warnings += [rows.warning] if rows.warning else []
        return Read(
            self._transformed(relations),
            total,
            Marks(sources=after),
            stored=not self.entity.sql,
            refused=refused,
            warnings=tuple(warnings),
        )

    def _typed(self, relation: str, refused: str) -> str:
        """The one source table's rows as [columns] declares them; those that can't be are refused."""
        if not self.entity.columns:
            return relation
        declared = {column.source: column for column in self.entity.columns}
        found = self.duck.columns(relation)
        lacking = [name for name in declared if name not in dict(found)]
        if lacking:
            has = ", ".join(name for name, _ in found)
            raise BadSource(
                f"{self.entity.sources[0].entity} has no column {lacking[0]!r}, which [columns] declares; it has: {has}."
            )
        inputs = [Input(ident(name), kind, name, declared.get(name)) for name, kind in found]
        table, view = self.duck.name("typed"), self.duck.name("typed rows")
        self.duck.rows(f"CREATE TEMP TABLE {table} AS {staged(inputs, relation, csv=NO_CSV)}")
        names = [item.output for item in inputs]
        file = ident(csv_source.FILE) if csv_source.FILE in names else "NULL"
        self.duck.rows(
            f"INSERT INTO {refused} SELECT {file}, NULL, {ident(BAD)}, {ident(ROW)} FROM {table} WHERE {ident(BAD)} <> ''"
        )
        self.duck.rows(f"CREATE TEMP VIEW {view} AS SELECT {idents(names)} FROM {table} WHERE {ident(BAD)} IS NULL")
        return view

    def _transformed(self, relations: Mapping[str, str]) -> str:
        """The entity's SQL over its sources, as a view; without SQL the one source itself."""
        if not self.entity.sql:
            return next(iter(relations.values()))
        views = {}
        for alias, relation in relations.items():
            views[alias] = ident(f"source {alias}")
            self.duck.rows(f"CREATE OR REPLACE TEMP VIEW {views[alias]} AS SELECT * FROM {relation}")
        view = self.duck.name("transform")
        sql = fill(self.entity.sql.rstrip().rstrip(";"), views)
        with explained(TransformFailed, f"The SQL of {self.entity.name} can't be run"):
            names = [str(row[0]) for row in self.duck.rows(f"DESCRIBE (\n{sql}\n)")]
            self.duck.rows(f"CREATE TEMP VIEW {view} AS SELECT * FROM (\n{sql}\n)")
        # DuckDB would rename the second one in silence.
        twice = [name for n, name in enumerate(names) if name.casefold() in {other.casefold() for other in names[:n]}]
        if twice:
            raise SchemaRefused(
                f"The SQL of {self.entity.name} gives two columns the name `{twice[0]}`, letter case aside.",
                fix="Give one of them another name with `as`.",
            )
        return view


def _listing(files: Sequence[FoundFile]) -> str:
    return digest(*(file.key for file in files))


def is_volatile(duck: Duck, sql: str) -> bool:
    """Might the SQL give other rows on the same sources: the time, a random number, files it reads by itself?

    Any word of the SQL that names such a function counts, wherever it stands: a wrong yes costs a computation. Functions
    that depend on the session's time zone only are not among them: it is always UTC.
    """
    names = {name for (name,) in duck.rows("SELECT function_name FROM duckdb_functions() WHERE stability = 'VOLATILE'")}
    lower = sql.lower()
    words = set(re.findall(r"\w+", lower))
    reads = any(word.startswith(("read_", "glob", "parquet_")) for word in words) or _FILE.search(lower)
    return bool(words & (names | CLOCKS)) or bool(reads)
