"""`[source]`, `[source.csv]` and `[columns]` of an entity: where its rows come from and how their text is read.

Guarantees: a source is files or other entities, never both; nothing about a CSV file is guessed. Whether an entity or
a variable exists is not seen here: `references.py` looks at the project as a whole.
"""

import codecs
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from fdagent.project.model import Column, Csv, EntitySource, FileSource, Take
from fdagent.project.names import column_problem, equal_but_for_case, word_problem
from fdagent.project.problems import did_you_mean, found, nearest
from fdagent.project.table import Table

SOURCE_KEYS = ("files", "take", "csv", "entity", "watermark", "lag")
ALIAS_KEYS = ("entity", "watermark", "lag")
CSV_KEYS = tuple(Csv.__dataclass_fields__)
COLUMN_KEYS = ("rename", "type", "format", "zone", "null")
TYPES = ("text", "integer", "double", "boolean", "date", "timestamp", "decimal(p,s)")
ONLY_ALIAS = "source"
"""The alias of `files` and of a single `entity`."""
MAX_LAG_SECONDS = 366 * 86_400

_ENTITY = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_LAG = re.compile(r"(\d{1,9})([smhd])")
_LAG_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_TYPE_SYNONYMS = {
    "string": "text", "varchar": "text", "str": "text", "int": "integer", "bigint": "integer", "long": "integer",
    "float": "double", "real": "double", "bool": "boolean", "datetime": "timestamp", "decimal": "decimal(18,2)",
    "numeric": "decimal(18,2)",
}  # fmt: skip
_SPECIFIER = re.compile(r"%(?:-[dHIjmMSy]|[aAbBcdfgGhHIjmMnpSTuUVwWxXyYzZ%])")
"""What DuckDB's strptime takes."""
_OTHER_FORMATS = (".parquet", ".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".xml", ".avro", ".orc")
_PACKED = (".gz", ".zip", ".zst", ".bz2", ".xz", ".7z", ".tar")
_ODD_ENCODINGS = frozenset(
    {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem", "utf-7"}
)
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})
"""Files among the zones that mean something else on each machine, or nothing."""
_VARIABLE = re.compile(r"\{([^{}]*)\}")

Sources = tuple[FileSource | None, tuple[EntitySource, ...]]


def read_source(top: Table) -> Sources:
    """`[source]` as (files, entities), of which one is empty; both are when the table can't be read."""
    source = top.table("source", shown="[source]")
    if source is None:
        if "source" not in top:
            top.missing("[source]", '`files`, `entity`, or aliases such as `orders = "bronze.orders"`')
        return None, ()
    if "files" in source and "entity" in source:
        source.problem("", "has `files` and `entity`, expected one of them")
    if "files" in source:
        _refuse_others(source, "files", ("files", "take", "csv"))
        return _files(source), ()
    if "entity" in source:
        _refuse_others(source, "entity", ("entity", "watermark", "lag"))
        return None, (_entity_source(ONLY_ALIAS, source),)
    return None, _aliases(source)


def _refuse_others(source: Table, kind: str, allowed: tuple[str, ...]) -> None:
    for key in source.values:
        if key in allowed or key in ("files", "entity"):
            continue
        if key in SOURCE_KEYS:
            source.problem(key, f"does not go with `{kind}`")
        else:
            source.problem(key, f"unknown key{did_you_mean(key, allowed)}")


def _files(source: Table) -> FileSource:
    pattern = source.text("files", required=True, expected='a file pattern, such as "{landing}/orders_*.csv"')
    if pattern:
        problem = _pattern_problem(pattern)
        if problem:
            source.problem("files", problem)
            pattern = ""
    take: Take = source.choice("take", get_args(Take), "new")
    return FileSource(files=pattern, take=take, csv=_csv(source.table("csv", CSV_KEYS, shown="[source.csv]")))


def _pattern_problem(pattern: str) -> str:
    """The pattern itself is not shown: it may be an address with a signature."""
    if not pattern.isprintable():
        return "has a character that can't be seen"
    rest = _VARIABLE.sub("", pattern)
    if "{" in rest or "}" in rest:
        return "has a brace without its partner; expected variables written as {name}"
    if "://" in pattern:
        return "is an address; expected a path, with the part that differs between environments in a variable"
    ending = pattern.lower()
    if ending.endswith(_OTHER_FORMATS):
        return "names files that are not CSV; this version reads CSV files"
    return "names packed files; expected plain CSV files" if ending.endswith(_PACKED) else ""


def variables(pattern: str) -> tuple[str, ...]:
    """The names between braces in a file pattern, each once."""
    return tuple(dict.fromkeys(_VARIABLE.findall(pattern)))


def expand(pattern: str, values: Mapping[str, str]) -> str:
    """The pattern with each variable's value in place; a value's own braces are left alone."""
    return _VARIABLE.sub(lambda match: values[match[1]], pattern)


def _aliases(source: Table) -> tuple[EntitySource, ...]:
    if not source.values:
        source.problem("", 'is empty, expected `files`, `entity`, or aliases such as `orders = "bronze.orders"`')
    names = list(source.values)
    for one, other in equal_but_for_case(names):
        source.problem("", f"the aliases {found(one)} and {found(other)} differ only in letter case")
    return tuple(made for name in names if (made := _alias(source, name)))


def _alias(source: Table, name: str) -> EntitySource | None:
    value = source.values[name]
    if name in SOURCE_KEYS:
        advice = "; an alias has its own: `o = { entity = …, watermark = … }`" if name in ALIAS_KEYS else ""
        source.problem(name, f"goes with `{'entity' if advice else 'files'}`{advice}")
        return None
    problem = word_problem(name)
    if problem:
        source.problem("", f"the alias {found(name)} {problem}")
        return None
    if isinstance(value, dict):
        table = Table(value, source.file, f"{source.path} {name}", source.findings, ALIAS_KEYS)
        return _entity_source(name, table)
    if isinstance(value, str) and _ENTITY.fullmatch(value):
        return EntitySource(alias=name, entity=value)
    meant = nearest(name, SOURCE_KEYS)
    hint = f"; did you mean `{meant}`?" if meant else ""
    source.problem(name, f'found {found(value)}, expected an entity such as "bronze.orders"{hint}')
    return None


def _entity_source(alias: str, table: Table) -> EntitySource:
    entity = table.text("entity", required=True, expected='an entity such as "bronze.orders"')
    if entity and not _ENTITY.fullmatch(entity):
        table.wrong("entity", 'an entity such as "bronze.orders"')
        entity = ""
    watermark = table.column("watermark")
    lag = _lag(table)
    if lag and "watermark" not in table:
        table.problem("lag", "needs a `watermark`, which it goes back from")
    return EntitySource(alias=alias, entity=entity, watermark=watermark, lag_seconds=lag)


def _lag(table: Table) -> float:
    value = table.values.get("lag", 0)
    if isinstance(value, str) and (match := _LAG.fullmatch(value)):
        value = int(match[1]) * _LAG_UNITS[match[2]]
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_LAG_SECONDS:
        return float(value)
    table.wrong("lag", 'seconds, or a text such as "10m", "2h" or "1d", up to 366 days')
    return 0.0


def _csv(table: Table | None) -> Csv:
    if table is None:
        return Csv()
    default = Csv()
    read = Csv(
        delimiter=_sign(table, "delimiter", default.delimiter),
        encoding=_encoding(table, default.encoding),
        decimal=table.choice("decimal", (".", ","), default.decimal),
        thousands=table.choice("thousands", ("", ".", ",", "'", " ", "_", "\u00a0", "\u202f"), default.thousands),
        null=_nulls(table, default.null),
        quote=_sign(table, "quote", default.quote, may_be_empty=True),
        header=table.flag("header", default=default.header),
        on_bad_row=table.choice("on_bad_row", ("quarantine", "fail"), default.on_bad_row),
        on_empty=table.choice("on_empty", ("fail", "ignore"), default.on_empty),
    )
    if read.delimiter == read.quote:
        table.problem("quote", f"found {found(read.quote)}, which is the delimiter too")
    if read.thousands == read.decimal:
        table.problem("thousands", f"found {found(read.thousands)}, which is the decimal sign too")
    return read


def _sign(table: Table, key: str, default: str, *, may_be_empty: bool = False) -> str:
    """One character that can't be part of a value's plain text by accident."""
    value = table.values.get(key, default)
    if isinstance(value, str):
        if value == "" and may_be_empty:
            return value
        if len(value) == 1 and not value.isalnum() and (value.isprintable() or value == "\t"):
            return value
    expected = "one character that is not a letter or digit" + (', or "" for none' if may_be_empty else "")
    table.wrong(key, expected)
    return default


def _encoding(table: Table, default: str) -> str:
    """The encoding under Python's own name for it, so that `UTF8` and `utf-8` are one."""
    text = table.text("encoding", expected='an encoding such as "utf-8"')
    if not text:
        return default
    try:
        name = codecs.lookup(text).name
        "a".encode(name)
    except (LookupError, UnicodeError, ValueError):
        name = ""
    if not name or name in _ODD_ENCODINGS:
        table.wrong("encoding", 'a text encoding such as "utf-8", "utf-16", "cp1252" or "latin-1"')
        return default
    return name


def _nulls(table: Table, default: tuple[str, ...]) -> tuple[str, ...]:
    """The texts that stand for NULL."""
    value = table.values.get("null", list(default))
    values = [value] if isinstance(value, str) else value
    if isinstance(values, list) and all(isinstance(item, str) for item in values):
        return tuple(dict.fromkeys(values))
    table.wrong("null", 'a text, or a list of texts such as ["", "NA"]')
    return default


def read_columns(top: Table, files: FileSource | None, sources: tuple[EntitySource, ...]) -> tuple[Column, ...]:
    """`[columns]`, in its order, which is the files' own when they have no header."""
    table = top.table("columns", shown="[columns]")
    if table is None:
        if files and not files.csv.header and "columns" not in top:
            top.missing("[columns]", "a name for each column, in the files' order, since `header = false`")
        return ()
    if len(sources) > 1 or (sources and sources[0].alias != ONLY_ALIAS):
        table.problem("", "goes with `files` or a single `entity`; with aliases, rename and cast in SQL")
    columns = tuple(_column(table, source) for source in table.values)
    for one, other in equal_but_for_case([column.name for column in columns]):
        table.problem("", f"the columns {found(one)} and {found(other)} differ only in letter case")
    names = [column.name for column in columns]
    for name in [name for name, times in Counter(names).items() if times > 1]:
        table.problem("", f"two columns get the name {found(name)}")
    return columns


def _column(columns: Table, source: str) -> Column:
    table = columns.table(source, COLUMN_KEYS, shown=f"[columns] {source}")
    if table is None:
        return Column(source=source, name=source)
    name = table.text("rename", expected="a column name") or source
    problem = column_problem(name)
    if problem:
        advice = "" if "rename" in table else '; expected a `rename = "…"`'
        table.problem("rename", f"the column name {found(name)} {problem}{advice}")
    column = Column(source=source, name=name, type=_type(table), null=_nulls(table, ()))
    timed = column.type in ("date", "timestamp")
    if "format" in table and not timed:
        table.problem("format", 'is for `type = "date"` and `type = "timestamp"`')
    if "zone" in table and column.type != "timestamp":
        table.problem("zone", 'is for `type = "timestamp"`')
    return replace(column, format=_format(table), zone=_zone(table))


def _type(table: Table) -> str:
    text = table.text("type", expected=f"one of {', '.join(TYPES)}") or "text"
    if text in TYPES[:-1]:
        return text
    match = _DECIMAL.fullmatch(text)
    if match:
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return f"decimal({precision},{scale})"
        table.problem("type", f"found {found(text)}, expected decimal(p,s) with p from 1 to 38 and s from 0 to p")
        return "text"
    meant = _TYPE_SYNONYMS.get(text.lower()) or nearest(text, TYPES[:-1])
    hint = f"; did you mean `{meant}`?" if meant else ""
    table.problem("type", f"found {found(text)}, expected one of {', '.join(TYPES)}{hint}")
    return "text"


def _format(table: Table) -> str:
    expected = "a strptime format such as %d.%m.%Y"
    text = table.text("format", expected=expected)
    rest = _SPECIFIER.sub("", text)
    if text and ("%" in rest or rest == text):
        table.wrong("format", expected)
    return text


def _zone(table: Table) -> str:
    text = table.text("zone", expected='a time zone such as "Europe/Zurich"')
    if text and not _is_zone(text):
        meant = nearest(text, available_timezones() - _NO_ZONES)
        hint = f"; did you mean `{meant}`?" if meant else ""
        table.problem("zone", f'found {found(text)}, expected a time zone such as "Europe/Zurich"{hint}')
    return text


def _is_zone(text: str) -> bool:
    """Does this machine's time zone data know it?"""
    if text in _NO_ZONES:
        return False
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
