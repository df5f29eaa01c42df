r"""How a declared column's text becomes a typed value, and what is said of a text that can't.

Guarantees: a text is read whole or not at all. `2.7` is no integer, ` 12`, `1_000`, `1e3` and `0x1F` are none either
(DuckDB's own casts take them all); a decimal with more digits than its scale is refused, not rounded; `nan` and `inf`
are no doubles unless declared as NULL; a date must exist. A local time that its zone skips or repeats is refused, with
that reason. What can't be read makes a reason that names the column and the text; nothing becomes NULL by accident.

| type | taken |
|---|---|
| integer | `-?\d+`, with the declared thousands sign in groups of three |
| decimal(p,s) | the same with the declared decimal sign; digits beyond the scale only if they are zeros |
| double | the same, and an exponent |
| boolean | true, false, 1, 0, in any letter case |
| date | `2027-01-15`, or the declared strptime format |
| timestamp | `2027-01-15[T ]09:00[:00[.123456]]`, with `Z` or an offset, or else in the declared zone (UTC when there is none); or the declared format. Digits beyond the microsecond are cut off |

Does not read files.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fdagent.engine.duck import ident, text
from fdagent.engine.schema import TIMESTAMP, duck_type
from fdagent.errors import SchemaRefused
from fdagent.project.model import Column, Csv

BAD, ROW = "__bad", "__row"
"""Columns of a staged relation: why a row can't be read (NULL: it can), and the row as JSON text then."""
SHOWN_CHARACTERS = 100
FIRST_YEAR = 1000
"""An earlier year means that two digits were read where `%Y` stands for four."""
ZONE_STEPS = ("30 minutes", "1 hour", "2 hours")
"""By how much clocks are changed anywhere."""

_DAY = r"\d{4}-\d{2}-\d{2}"
_LOCAL = _DAY + r"([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?"
_OFFSET = _DAY + r"[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)"


@dataclass(frozen=True, slots=True)
class Input:
    """A source column: the SQL that gives it, its DuckDB type, its name there, and what is declared of it."""

    sql: str
    type: str
    name: str
    column: Column | None = None

    @property
    def output(self) -> str:
        """The name it gets."""
        return self.column.name if self.column else self.name


def staged(inputs: Sequence[Input], source: str, *, csv: Csv, carried: Sequence[str] = (), end: str = "false") -> str:
    """A query of typed rows: the columns under their names, `carried` expressions, and `BAD` and `ROW`.

    Args:
        inputs: The source's columns.
        source: SQL of the relation they are read from.
        csv: Signs of numbers.
        carried: More expressions over the source, with their aliases.
        end: The condition of rows that are no rows: their `BAD` is an empty text.

    Raises:
        SchemaRefused: A column that is not text has another type than is declared.
    """
    typed = {n: column for n, item in enumerate(inputs) if (column := item.column) and column.type != "text"}
    raws, values, missing, reasons = [], [], [], []
    for n, item in enumerate(inputs):
        raws.append(f"{_nulled(item)} AS r{n}")
        if n in typed:
            value, reason = _reading(item, typed[n], f"r{n}", csv)
            values.append(f"{value} AS v{n}")
            missing.append(f"(r{n} IS NOT NULL AND v{n} IS NULL)")
            reasons.append(f"CASE WHEN {missing[-1]} THEN {reason} END")
    inner = f"SELECT *, {', '.join(raws)} FROM {source}"
    middle = f"SELECT *, {', '.join(values)} FROM ({inner})" if values else inner
    outputs = [f"{'v' if n in typed else 'r'}{n} AS {ident(item.output)}" for n, item in enumerate(inputs)]
    whole = ", ".join(f"{text(item.name)}: {item.sql}" for item in inputs)
    # Whether a row is bad is cheap to say; why, is said of bad rows only.
    said = f" WHEN {' OR '.join(missing)} THEN concat_ws('; ', {', '.join(reasons)})" if missing else ""
    why = f"CASE WHEN {end} THEN ''{said} END AS {ident(BAD)}"
    row = f"CASE WHEN {ident(BAD)} <> '' THEN CAST(to_json({{{whole}}}) AS VARCHAR) END AS {ident(ROW)}"
    return f"SELECT {', '.join([*outputs, *carried, why, row])} FROM ({middle})"


def _nulled(item: Input) -> str:
    """The column with the declared texts for NULL taken out; text where text is declared."""
    sql = item.sql
    if item.column and item.column.type == "text" and item.type != "VARCHAR":
        sql = f"CAST({sql} AS VARCHAR)"
    if not item.column or not item.column.null:
        return sql
    nulls = ", ".join(map(text, item.column.null))
    return f"CASE WHEN CAST({sql} AS VARCHAR) NOT IN ({nulls}) THEN {sql} END"


def _reading(item: Input, column: Column, raw: str, csv: Csv) -> tuple[str, str]:
    """SQL of the typed value, NULL where the text can't be read; and SQL of the reason then."""
    target = duck_type(_delta_type(column.type))
    if item.type != "VARCHAR":
        if item.type == target or (target == "BIGINT" and item.type in ("INTEGER", "SMALLINT", "TINYINT")):
            return f"CAST({raw} AS {target})", "''"
        raise SchemaRefused(
            f"Column {item.name!r} is declared as {column.type} and has the type {item.type} in its source.",
            fix="Only text is read as another type; cast it in [transform] sql.",
        )
    shown = f"{text(column.name + ': ')} || chr(39) || left({raw}, {SHOWN_CHARACTERS}) || chr(39) || "
    reason = shown + text(f" is not {_called(column)}")
    if column.type == "timestamp":
        return _timestamp(raw, column, shown, reason)
    simple = {
        "integer": lambda: _integer(raw, csv),
        "boolean": lambda: _boolean(raw),
        "date": lambda: _date(raw, column.format),
    }
    return simple.get(column.type, lambda: _fraction(raw, target, csv))(), reason


def _delta_type(declared: str) -> str:
    return {"integer": "long"}.get(declared, declared)


def _called(column: Column) -> str:
    article = "an" if column.type == "integer" else "a"
    called = f"{article} {column.type}"
    return f"{called} of the format {column.format}" if column.format else called


def _integer(raw: str, csv: Csv) -> str:
    value = f"TRY_CAST({raw} AS BIGINT)"
    if csv.thousands:
        grouped = rf"[+-]?(\d+|\d{{1,3}}({re.escape(csv.thousands)}\d{{3}})+)"
        plain = f"replace({raw}, {text(csv.thousands)}, '')"
        return f"CASE WHEN regexp_full_match({raw}, {text(grouped)}) THEN TRY_CAST({plain} AS BIGINT) END"
    # Printing the value back is several times faster than the pattern, and right for nearly every row.
    return f"CASE WHEN CAST({value} AS VARCHAR) = {raw} OR regexp_full_match({raw}, '[+-]?\\d+') THEN {value} END"


def _boolean(raw: str) -> str:
    truths = "WHEN 'true' THEN true WHEN '1' THEN true WHEN 'false' THEN false WHEN '0' THEN false"
    return f"CASE lower({raw}) {truths} END"


def _fraction(raw: str, target: str, csv: Csv) -> str:
    point, thousands = re.escape(csv.decimal), re.escape(csv.thousands)
    whole = rf"\d+|\d{{1,3}}({thousands}\d{{3}})+" if csv.thousands else r"\d+"
    plain = raw
    if csv.thousands:
        plain = f"replace({plain}, {text(csv.thousands)}, '')"
    if csv.decimal != ".":
        plain = f"replace({plain}, {text(csv.decimal)}, '.')"
    value = f"TRY_CAST({plain} AS {target})"
    if target == "DOUBLE":
        pattern = rf"[+-]?(({whole})({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
        finite = f"isfinite({value}) AND "
    else:
        scale = int(target.rstrip(")").split(",")[1])
        bare = rf"{point}\d{{1,{scale}}}0*" if scale else rf"{point}0+"
        pattern = rf"[+-]?(({whole})({point}\d{{0,{scale}}}0*)?|{bare})"
        finite = ""
    # As for integers; but printing a double takes longer than matching it.
    same = f"CAST({value} AS VARCHAR) = {plain} OR " if plain == raw and target != "DOUBLE" else ""
    return f"CASE WHEN {finite}({same}regexp_full_match({raw}, {text(pattern)})) THEN {value} END"


def _date(raw: str, pattern: str) -> str:
    if pattern:
        value = f"CAST(try_strptime({raw}, {text(pattern)}) AS DATE)"
        return f"CASE WHEN year({value}) BETWEEN {FIRST_YEAR} AND 9999 THEN {value} END"
    value = f"TRY_CAST({raw} AS DATE)"
    return f"CASE WHEN length({raw}) = 10 AND CAST({value} AS VARCHAR) = {raw} THEN {value} END"


def _names_zone(pattern: str) -> bool:
    """Does the format itself read an offset or a zone's name?"""
    return "%z" in pattern.replace("%%", "") or "%Z" in pattern.replace("%%", "")


def _local(raw: str, pattern: str) -> str:
    """The text as a time without zone; NULL when it is none, or has a zone of its own."""
    if pattern:
        value = f"try_strptime({raw}, {text(pattern)})"
        return f"CASE WHEN year({value}) BETWEEN {FIRST_YEAR} AND 9999 THEN {value} END"
    value = f"TRY_CAST({raw} AS TIMESTAMP)"
    same = f"(length({raw}) = 19 AND CAST({value} AS VARCHAR) = {raw})"
    return f"CASE WHEN {same} OR regexp_full_match({raw}, {text(_LOCAL)}) THEN {value} END"


def _timestamp(raw: str, column: Column, shown: str, reason: str) -> tuple[str, str]:
    """The value, and the reason when there is none: a time may be well written and still not exist in its zone."""
    if _names_zone(column.format):
        return f"try_strptime({raw}, {text(column.format)})", reason
    local = _local(raw, column.format)
    utc = _utc(local, column.zone)
    if not column.format:
        zoned = f"CASE WHEN regexp_full_match({raw}, {text(_OFFSET)}) THEN TRY_CAST({raw} AS {TIMESTAMP}) END"
        utc = f"coalesce({utc}, {zoned})"
    return utc, _zone_reason(local, column.zone, shown, reason)


def _utc(local: str, zone: str) -> str:
    """A local time as a point in time; NULL where the zone skips or repeats it."""
    if zone in ("", "UTC"):
        # The same as timezone('UTC', ...) without asking the time zone data, at half its cost.
        return f"make_timestamptz(epoch_us({local}))"
    point = f"timezone({text(zone)}, {local})"
    return f"CASE WHEN NOT {_skipped(local, zone)} AND NOT {_repeated(local, zone)} THEN {point} END"


def _skipped(local: str, zone: str) -> str:
    return f"timezone({text(zone)}, timezone({text(zone)}, {local})) <> {local}"


def _repeated(local: str, zone: str) -> str:
    """Is there another point in time with this local time?"""
    point = f"timezone({text(zone)}, {local})"
    others = [f"timezone({text(zone)}, {point} {sign} INTERVAL '{step}')" for step in ZONE_STEPS for sign in "+-"]
    return f"{local} IN ({', '.join(others)})"


def _zone_reason(local: str, zone: str, shown: str, reason: str) -> str:
    if zone in ("", "UTC"):
        return reason
    skipped = f"WHEN {_skipped(local, zone)} THEN {shown}{text(f' does not exist in {zone}')}"
    repeated = f"WHEN {_repeated(local, zone)} THEN {shown}{text(f' comes twice in {zone}')}"
    return f"CASE {skipped} {repeated} ELSE {reason} END"
