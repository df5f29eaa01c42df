"""CSV files as one staged relation of typed rows, with everything that could not be read kept beside it.

Guarantees
- DuckDB reads every value as text and guesses nothing; types come from `[columns]` only (`columns.py`).
- A ragged row, bytes that are not UTF-8 and a value of the wrong type go to quarantine one row each, with file, line,
  reason and text; the others load. A quote that is never closed fails the file: what follows it can't be told.
- Files of different columns go together by name; a column that a file lacks is NULL there. Whether it may lack it is
  for the reader to say (`read.py`), which knows what older files had.

A field too many at a row's end that is empty is no error (many writers end each line with a delimiter). Rows carry
`_file` and `_loaded_at`, the run's own time in UTC.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from fdagent.engine.columns import BAD, ROW, Input, staged
from fdagent.engine.duck import Duck, explained, ident, idents, text, texts
from fdagent.engine.marks import FoundFile
from fdagent.engine.schema import TIMESTAMP
from fdagent.engine.sources.lines import MAX_LOCATED, at_offsets, of_rows
from fdagent.engine.sources.text import END, TextFile, open_text
from fdagent.errors import BadSource
from fdagent.project.model import Column, Csv

FILE, LOADED_AT = "_file", "_loaded_at"
META = (FILE, LOADED_AT)
"""Columns that say where a row came from and when: not part of what the row says."""
LINE_BYTES = 2 * 1024 * 1024
"""The longest line; a longer one is refused with its first part."""
_REASONS = {
    "MISSING COLUMNS": "too few fields",
    "TOO MANY COLUMNS": "too many fields",
    "INVALID ENCODING": "bytes that are not UTF-8",
    "UNQUOTED VALUE": "a quote is not closed where its field ends",
    "LINE SIZE OVER MAXIMUM": f"a line longer than {LINE_BYTES} bytes",
}


@dataclass(frozen=True, slots=True)
class CsvRows:
    """Staged rows: a relation of those that could be read, how many rows the files have, refused ones included.

    `headers`: each file's columns under the table's names, oldest file first.
    """

    relation: str
    read: int
    headers: tuple[tuple[FoundFile, tuple[str, ...]], ...]


def stage(
    duck: Duck, files: Sequence[FoundFile], csv: Csv, columns: tuple[Column, ...], *, loaded_at: str, refused: str
) -> CsvRows | None:
    """Read files.

    Args:
        duck: Where the relation is made.
        files: Oldest first.
        csv: How they are written.
        columns: What is declared of their columns.
        loaded_at: The run's time, as DuckDB reads it.
        refused: A table (file, line, reason, row) that gets the rows that can't be read.

    Returns:
        None when every file is empty, which has to be allowed.

    Raises:
        BadSource: A file is not as it is declared, or has a bad row and `on_bad_row = "fail"`.
        SourceMissing, Denied, Unavailable: A file can't be read.
    """
    opened = [open_text(file, csv, columns, duck.spill / f"{n}.csv") for n, file in enumerate(files)]
    texts_ = [file for file in opened if file is not None]
    if not texts_:
        return None
    _check_columns(texts_, columns)
    queries = [_query(duck, group, csv, {column.source: column for column in columns}) for group in _groups(texts_)]
    table = duck.name("csv")
    with explained(BadSource, f"{texts_[0].file.name} can't be read as CSV"):
        duck.rows(f"CREATE TEMP TABLE {table} AS " + " UNION ALL BY NAME ".join(queries))
    _check_ends(duck, table, texts_)
    rejected = _keep_rejected(duck, texts_, csv, refused) + _keep_unreadable(duck, table, texts_, csv, refused)
    names = [name for name, _ in duck.columns(table) if name not in (*META, BAD, ROW)]
    view = duck.name("csv rows")
    duck.rows(
        f"CREATE TEMP VIEW {view} AS SELECT {idents([*names, FILE])}, {TIMESTAMP} {text(loaded_at)} AS {ident(LOADED_AT)} "
        f"FROM {table} WHERE {ident(BAD)} IS NULL"
    )
    renamed = {column.source: column.name for column in columns}
    headers = tuple((file.file, tuple(renamed.get(name, name) for name in file.header)) for file in texts_)
    return CsvRows(view, duck.number(f"SELECT count(*) FROM {view}") + rejected, headers)


def _check_columns(files: Sequence[TextFile], columns: tuple[Column, ...]) -> None:
    """Refuse a file that lacks a declared column, or has one that is taken."""
    renamed = {column.source: column.name for column in columns}
    for file in files:
        lacking = [column.source for column in columns if column.source not in file.header]
        if lacking:
            raise BadSource(
                f"{file.file.name} has no column {lacking[0]!r}, which [columns] declares; it has: {', '.join(file.header)}."
            )
        outputs = [renamed.get(name, name).casefold() for name in file.header]
        twice = [name for name in outputs if outputs.count(name) > 1 or name in (*META, BAD, ROW)]
        if twice:
            raise BadSource(
                f"{file.file.name}: the column name {twice[0]!r} is taken.", fix="Rename the column in [columns]."
            )


def _groups(files: Sequence[TextFile]) -> list[list[TextFile]]:
    """Files that one read_csv can read: the same header, and copies apart from files read as they are."""
    groups: dict[tuple[tuple[str, ...], bool], list[TextFile]] = {}
    for file in files:
        groups.setdefault((file.header, file.copied), []).append(file)
    return list(groups.values())


def _query(duck: Duck, group: list[TextFile], csv: Csv, declared: dict[str, Column]) -> str:
    """The typed rows of one group."""
    header = group[0].header
    inputs = [Input(f"c{n}", "VARCHAR", name, declared.get(name)) for n, name in enumerate(header)]
    source, file = _read_csv(group, csv), text(group[0].file.name)
    if len(group) > 1:
        names, file = duck.name("csv files"), "name"
        duck.rows(
            f"CREATE TEMP TABLE {names} AS SELECT unnest(?::VARCHAR[]) AS path, unnest(?::VARCHAR[]) AS name",
            [[str(one.path) for one in group], [one.file.name for one in group]],
        )
        source = f"(SELECT * FROM {source} JOIN {names} ON __path = path)"
    end = f"c0 IS NOT DISTINCT FROM {text(END)}" if group[0].copied else "false"
    return staged(inputs, source, csv=csv, carried=[f"{file} AS {ident(FILE)}"], end=end)


def _read_csv(group: list[TextFile], csv: Csv) -> str:
    first = group[0]
    columns = ", ".join(f"'c{n}': 'VARCHAR'" for n in range(len(first.header)))
    options = [
        texts([str(file.path) for file in group]),
        "auto_detect = false",
        f"columns = {{{columns}}}",
        f"delim = {text(csv.delimiter)}",
        f"quote = {text(csv.quote)}",
        f"escape = {text(csv.quote)}",
        f"header = {str(csv.header).lower()}",
        # An empty field is NULL by declaration only, and a quoted one never is.
        f"nullstr = {texts(csv.null or (END + 'null',))}",
        "allow_quoted_nulls = false",
        "encoding = 'utf-8'",
        "compression = 'none'",
        f"parallel = {str(not first.copied).lower()}",
        "store_rejects = true",
        f"max_line_size = {LINE_BYTES}",
        f"rejects_line_size_limit = {LINE_BYTES}",
        "filename = '__path'",
    ]
    return f"read_csv({', '.join(options)})"


def _check_ends(duck: Duck, table: str, files: Sequence[TextFile]) -> None:
    """Refuse a copy whose end mark was not reached."""
    copied = [file.file.name for file in files if file.copied]
    if not copied:
        return
    reached = {name for (name,) in duck.rows(f"SELECT {ident(FILE)} FROM {table} WHERE {ident(BAD)} = ''")}
    lost = [name for name in copied if name not in reached]
    if lost:
        raise BadSource(
            f"{lost[0]} has a quote that is never closed, so where its rows end can't be told.",
            fix='Correct it where it is written, or declare quote = "" in [source.csv] if quotes are plain characters.',
        )


def _keep_rejected(duck: Duck, files: Sequence[TextFile], csv: Csv, refused: str) -> int:
    """Rows that DuckDB could not cut into fields; it lists one of them once for each of its errors."""
    rejects = duck.name("rejects")
    duck.rows(
        f"CREATE TEMP TABLE {rejects} AS SELECT file_path, line_byte_position - 1 AS start, any_value(csv_line) AS line_text, "
        "arg_min(error_type, coalesce(column_idx, 0)) AS kind, arg_min(error_message, coalesce(column_idx, 0)) AS said "
        "FROM reject_errors JOIN reject_scans USING (scan_id, file_id) GROUP BY ALL"
    )
    duck.drop("reject_errors", "reject_scans")
    by_path = {str(file.path): file for file in files}
    found = duck.rows(f"SELECT file_path, list(start) FROM {rejects} GROUP BY ALL")
    total = 0
    for path, offsets in found:
        file = by_path[path]
        lines = at_offsets(file.path, offsets)
        reasons = " ".join(f"WHEN {text(kind)} THEN {text(reason)}" for kind, reason in _REASONS.items())
        kept = duck.rows(
            f"INSERT INTO {refused} SELECT ?, l.line, concat(CASE kind {reasons} ELSE kind END, ': ', said), line_text "
            f"FROM {rejects} JOIN (SELECT unnest(?::BIGINT[]) AS start, unnest(?::BIGINT[]) AS line) l USING (start) "
            "WHERE file_path = ? RETURNING line, reason",
            [file.file.name, list(lines), list(lines.values()), path],
        )
        total += len(kept)
        if csv.on_bad_row == "fail":
            raise _bad_row(file.file.name, len(kept), *min(kept))
    return total


def _keep_unreadable(duck: Duck, table: str, files: Sequence[TextFile], csv: Csv, refused: str) -> int:
    """Rows with a value that is not of its declared type."""
    bad = duck.name("unreadable")
    duck.rows(
        f"CREATE TEMP TABLE {bad} AS SELECT row_number() OVER () AS n, {ident(FILE)} AS file, {ident(BAD)} AS reason, "
        f"{ident(ROW)} AS text FROM {table} WHERE {ident(BAD)} <> ''"
    )
    for name, count in duck.rows(f"SELECT file, count(*) FROM {bad} GROUP BY ALL ORDER BY ALL"):
        file = next(file for file in files if file.file.name == name)
        found = duck.rows(f"SELECT n, reason, text FROM {bad} WHERE file = ? LIMIT {MAX_LOCATED}", [name])
        lines = of_rows(file.path, [tuple(json.loads(row).values()) for _, _, row in found], csv)
        if csv.on_bad_row == "fail":
            line, reason = min(((line or 0, row[1]) for line, row in zip(lines, found, strict=True)))
            raise _bad_row(name, count, line, reason)
        duck.rows(
            f"INSERT INTO {refused} SELECT file, line, reason, text FROM {bad} LEFT JOIN "
            "(SELECT unnest(?::BIGINT[]) AS n, unnest(?::BIGINT[]) AS line) USING (n) WHERE file = ?",
            [[n for n, _, _ in found], lines, name],
        )
    return duck.number(f"SELECT count(*) FROM {bad}")


def _bad_row(name: str, rows: int, line: int, reason: str) -> BadSource:
    others = f" ({rows} such rows)" if rows > 1 else ""
    return BadSource(
        f"{name} line {line}: {reason}{others}.",
        fix='Correct it where it is written, or set on_bad_row = "quarantine" in [source.csv].',
    )
