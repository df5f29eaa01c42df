"""One entity's file: `entities/<layer>/<table>.toml`, with the SQL file it names.

Guarantees: every problem of the file is reported, and an `Entity` is made as well as can be all the same, so that the
project as a whole can be judged too. Other entities and environments are not looked at here.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Any, Literal, get_args

from fdagent.project.files import Files
from fdagent.project.model import Check, Entity, EntitySource, Layer, Load, Mode, Objective, Severity
from fdagent.project.names import column_problem
from fdagent.project.problems import Findings, choices, did_you_mean, found
from fdagent.project.source import ONLY_ALIAS, read_columns, read_source
from fdagent.project.sql import is_blank, places
from fdagent.project.table import Table

Criticality = Literal["low", "normal", "high", "critical"]
OnDuplicate = Literal["newest", "quarantine", "fail"]
Kind = Literal["not_null", "unique", "accepted"]

ENTITY_KEYS = (
    "format", "description", "owner", "team", "criticality", "freshness_minutes", "objective",
    "source", "columns", "transform", "load", "checks",
)  # fmt: skip
TRANSFORM_KEYS = ("sql", "sql_file")
LOAD_KEYS = ("mode", "key", "order_by", "on_duplicate_key", "on_null_key", "on_new_column")
CHECK_KEYS = (*get_args(Kind), "severity")
OBJECTIVE_KEYS = ("success_rate", "over_runs", "duration_minutes")
KEYED_MODES = ("scd1",)
MAX_MINUTES = 10 * 366 * 24 * 60


def read_entity(files: Files, findings: Findings, file: str, layer: Layer, table: str) -> Entity | None:
    """Read one entity; None when its file can't be read as TOML of a known format."""
    values = files.toml(file)
    if values is None:
        return None
    top = Table(values, file, "", findings, ENTITY_KEYS)
    if not top.format_is_known(required=False):
        return None
    file_source, sources = read_source(top)
    columns = read_columns(top, file_source, sources)
    aliases = [source.alias for source in sources] if sources else [ONLY_ALIAS] if file_source else []
    sql, sql_file = _transform(top, files, aliases)
    load = _load(top, sources)
    checks = tuple(_checks(top))
    entity = Entity(
        name=f"{layer.name}.{table}",
        layer=layer,
        table=table,
        file=files.root / file,
        load=load,
        files=file_source,
        sources=sources,
        sql=sql,
        sql_file=files.root / sql_file if sql_file else None,
        columns=columns,
        checks=checks,
        description=top.text("description"),
        owner=top.text("owner"),
        team=top.text("team"),
        criticality=top.choice("criticality", get_args(Criticality), "normal"),
        freshness_minutes=top.number("freshness_minutes", 0, MAX_MINUTES, "minutes"),
        objective=_objective(top),
    )
    _check_columns(entity, findings, file)
    return entity


def _transform(top: Table, files: Files, aliases: list[str]) -> tuple[str, str]:
    """The SQL with line ends as on Unix and no closing semicolon, which a subquery can't have; and the file it stands in.

    Both are empty without one, the file also where the SQL stands in the entity's own.
    """
    table = top.table("transform", TRANSFORM_KEYS, shown="[transform]")
    if table is None:
        if "transform" not in top and aliases and aliases != [ONLY_ALIAS]:
            top.missing("[transform]", "`sql` or `sql_file`, which says how the aliases come together")
        return "", ""
    if ("sql" in table) == ("sql_file" in table):
        table.problem(
            "", f"has {'both' if 'sql' in table else 'neither'}, expected exactly one of `sql` and `sql_file`"
        )
        return "", ""
    key, file = "sql", ""
    if "sql" in table:
        sql = table.text("sql", expected="SQL such as 'select * from {source}'") or None
    else:
        key, file = "sql_file", _sql_file(table)
        sql = files.text(file, named_by=(table.file, f"{table.path} sql_file")) if file else None
    if sql is None:
        return "", ""
    sql = sql.replace("\r\n", "\n").replace("\r", "\n").strip().rstrip("; \n")
    _check_places(table, key, sql, aliases)
    return sql, file


def _sql_file(table: Table) -> str:
    """The file's path in the project; empty when it is none."""
    name = table.text("sql_file", expected="a file's name")
    if not name:
        return ""
    if name.startswith("/") or "\\" in name or ":" in name or not name.isprintable():
        table.wrong("sql_file", "a path beside the entity's file, with forward slashes")
        return ""
    return f"{table.file.rsplit('/', 1)[0]}/{name}"


def _check_places(table: Table, key: str, sql: str, aliases: list[str]) -> None:
    if is_blank(sql):
        table.problem(key, "has no SQL, only white space and comments")
        return
    if "\0" in sql:
        table.problem(key, "has a NUL character, which no SQL has")
    used = places(sql)
    for place in used:
        if aliases and place not in aliases:
            table.problem(key, f"`{{{place}}}` is not one of the sources{did_you_mean(place, aliases)}")
    for alias in aliases:
        if alias not in used:
            table.problem(key, f"the source `{alias}` is not used, expected `{{{alias}}}` in the SQL")


def _load(top: Table, sources: tuple[EntitySource, ...]) -> Load:
    table = top.table("load", LOAD_KEYS, shown="[load]")
    if table is None:
        if "load" not in top:
            top.missing("[load]", f"`mode = …`, one of {choices(get_args(Mode))}")
        return Load(mode="overwrite")
    mode: Mode = table.choice("mode", get_args(Mode), "overwrite", required=True)
    mode_known = table.values.get("mode") == mode
    key, order_by = table.columns("key"), table.column("order_by")
    # A tie is never settled by chance: without an order there is no newest row.
    on_duplicate: OnDuplicate = "newest" if order_by or mode not in KEYED_MODES else "quarantine"
    load = Load(
        mode=mode,
        key=key,
        order_by=order_by,
        on_duplicate_key=table.choice("on_duplicate_key", get_args(OnDuplicate), on_duplicate),
        on_null_key=table.choice("on_null_key", ("quarantine", "fail"), "quarantine"),
        on_new_column=table.choice("on_new_column", ("add", "fail"), "add"),
    )
    if mode_known and mode in KEYED_MODES:
        _check_keyed(table, load)
    elif mode_known:
        for name in ("key", "order_by", "on_duplicate_key", "on_null_key"):
            if name in table:
                advice = "; expected a check `unique`" if name == "key" else ""
                table.problem(name, f'is for `mode = "scd1"`; {mode} does not match rows by key{advice}')
    if mode_known and mode == "overwrite" and any(source.watermark for source in sources):
        table.problem("mode", "overwrite with a watermark would drop the rows before the mark; expected append or scd1")
    return load


def _check_keyed(table: Table, load: Load) -> None:
    if "key" not in table:
        table.missing("key", f'the columns that tell rows apart, which `mode = "{load.mode}"` needs')
    if load.on_duplicate_key == "newest" and "order_by" not in table:
        table.missing("order_by", 'the column that says which row is newest, for `on_duplicate_key = "newest"`')
    if load.order_by and load.order_by.casefold() in {name.casefold() for name in load.key}:
        table.problem("order_by", f"{found(load.order_by)} is part of the key, so it can't order rows of one key")


def _objective(top: Table) -> Objective | None:
    table = top.table("objective", OBJECTIVE_KEYS)
    if table is None:
        return None
    if "success_rate" not in table and "duration_minutes" not in table:
        table.problem("", "expected `success_rate`, `duration_minutes`, or both")
    return Objective(
        success_rate=table.number("success_rate", 0, 1, "a share"),
        over_runs=table.whole("over_runs", 1, 10_000, Objective().over_runs),
        duration_minutes=table.number("duration_minutes", 0, MAX_MINUTES, "minutes"),
    )


def _checks(top: Table) -> Iterable[Check]:
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for table in top.tables("checks", CHECK_KEYS):
        kinds: list[Kind] = [kind for kind in get_args(Kind) if kind in table]
        if len(kinds) != 1:
            shown = " and ".join(f"`{kind}`" for kind in kinds)
            table.problem("", f"has {shown or 'no rule'}, expected exactly one of {choices(get_args(Kind))}")
            continue
        kind = kinds[0]
        columns, values = _accepted(table) if kind == "accepted" else (table.columns(kind), ())
        severity: Severity = table.choice("severity", get_args(Severity), "fail")
        if kind == "unique" and severity == "quarantine":
            table.problem(
                "severity", 'found "quarantine", but `unique` judges all rows at once; expected "warn" or "fail"'
            )
        first = seen.setdefault((kind, tuple(name.casefold() for name in columns)), table.path)
        if columns and first != table.path:
            table.problem(kind, f"stands in {first} already")
        yield Check(kind=kind, columns=columns, severity=severity, values=values)


def _accepted(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The one column and its accepted values, as text."""
    example = 'one column and its values, such as { status = ["NEW", "PAID"] }'
    inner = table.table("accepted")
    if inner is None:
        return (), ()
    if len(inner.values) != 1:
        table.problem("accepted", f"has {len(inner.values)} columns, expected {example}")
        return (), ()
    ((column, values),) = inner.values.items()
    inner.check_column(column, column)
    if not isinstance(values, list) or not values:
        table.problem("accepted", f"found {found(values)}, expected {example}")
        return (column,), ()
    texts = [_as_text(value) for value in values]
    for value, text in zip(values, texts, strict=True):
        if text is None:
            table.problem(
                "accepted", f"found {found(value)} among the values, expected texts, whole numbers, booleans or dates"
            )
    return (column,), tuple(dict.fromkeys(text for text in texts if text is not None))


def _as_text(value: Any) -> str | None:
    """A value as DuckDB casts it to text, so that both sides compare alike; None for types where that is not sure."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    is_date = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return value.isoformat() if is_date else None


def _check_columns(entity: Entity, findings: Findings, file: str) -> None:
    """Columns that are sure not to exist: only where no SQL makes new ones."""
    if entity.sql or entity.files is None:
        return
    names = [column.name for column in entity.columns]
    renamed = {column.source: column.name for column in entity.columns if column.source not in names}
    every_name_known = not entity.files.csv.header and bool(names)
    for key, column in _named_columns(entity):
        if column in renamed:
            findings.add(file, key, f"{found(column)} is renamed in [columns]; did you mean `{renamed[column]}`?")
        elif every_name_known and column not in names and not column_problem(column):
            findings.add(file, key, f"there is no column {found(column)}{did_you_mean(column, names)}")


def _named_columns(entity: Entity) -> Iterable[tuple[str, str]]:
    for column in entity.load.key:
        yield "[load] key", column
    if entity.load.order_by:
        yield "[load] order_by", entity.load.order_by
    for number, check in enumerate(entity.checks, start=1):
        for column in check.columns:
            yield f"[[checks]] {number} {check.kind}", column
