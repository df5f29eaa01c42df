"""Each key of an entity with each kind of wrong value: one sentence that says where, what was found, what is expected."""

import string
from pathlib import Path

import duckdb
import pytest
from project_kit import BRONZE, BRONZE_FILE, GOLD, GOLD_FILE, SILVER, SILVER_FILE, problems, project

TOP = [
    ("critical = 'high'", "critical: unknown key; did you mean `criticality`?"),
    ("zzz = 1", "zzz: unknown key; known: checks, columns, criticality, description, format, freshness_minutes, load, objective, owner, source, team, transform."),
    ("Load = {}", "Load: unknown key; did you mean `load`?"),
    ("format = 2", "format: found 2, expected 1, the only format this version reads."),
    ("format = true", "format: found true, expected 1, the only format this version reads."),
    ("format = '1'", 'format: found "1", expected 1, the only format this version reads.'),
    ("owner = 3", "owner: found 3, expected a text."),
    ("team = '  '", 'team: found "  ", expected a text.'),
    ("description = ['a']", "description: found a list, expected a text."),
    ("criticality = 'hihg'", 'criticality: found "hihg", expected "low", "normal", "high" or "critical"; did you mean `high`?'),
    ("criticality = 3", 'criticality: found 3, expected "low", "normal", "high" or "critical".'),
    ("freshness_minutes = 0", "freshness_minutes: found 0, expected minutes above 0 and at most 5270400."),
    ("freshness_minutes = true", "freshness_minutes: found true, expected minutes above 0 and at most 5270400."),
    ("freshness_minutes = nan", "freshness_minutes: found nan, expected minutes above 0 and at most 5270400."),
    ("freshness_minutes = inf", "freshness_minutes: found inf, expected minutes above 0 and at most 5270400."),
    (f"freshness_minutes = 1{'0' * 400}", "freshness_minutes: found a very large number, expected minutes above 0 and at most 5270400."),
    ("freshness_minutes = 07:30:00", "freshness_minutes: found 07:30:00, expected minutes above 0 and at most 5270400."),
    ("objective = 0.9", "objective: found 0.9, expected a table."),
    ("objective = {}", "objective: expected `success_rate`, `duration_minutes`, or both."),
    ("objective = { success_rate = 95 }", "objective success_rate: found 95, expected a share above 0 and at most 1."),
    ("objective = { success_rate = 0.9, over_runs = 0 }", "objective over_runs: found 0, expected a whole number from 1 to 10000."),
    ("objective = { success_rate = 0.9, over_runs = 2.0 }", "objective over_runs: found 2.0, expected a whole number from 1 to 10000."),
    ("objective = { sucess_rate = 0.9 , duration_minutes = 1}", "objective sucess_rate: unknown key; did you mean `success_rate`?"),
    ("checks = 3", "checks: found 3, expected tables written as [[checks]]."),
    ("checks = ['not_null']", "checks: found a list, expected tables written as [[checks]]."),
    ("checks = { not_null = ['a'] }", "checks: found a table, expected tables written as [[checks]]."),
]  # fmt: skip

SOURCE = [
    ("", '[source]: is empty, expected `files`, `entity`, or aliases such as `orders = "bronze.orders"`.'),
    ('entity = "bronze"', '[source] entity: found "bronze", expected an entity such as "bronze.orders".'),
    ('entity = "bronze.orders.x"', '[source] entity: found "bronze.orders.x", expected an entity such as "bronze.orders".'),
    ("entity = 3", '[source] entity: found 3, expected an entity such as "bronze.orders".'),
    ('entity = "bronze.orders"\nwatermrk = "at"', "[source] watermrk: unknown key; did you mean `watermark`?"),
    ('entity = "bronze.orders"\ntake = "all"', "[source] take: does not go with `entity`."),
    ('entity = "bronze.orders"\n[source.csv]', "[source] csv: does not go with `entity`."),
    ('entity = "bronze.orders"\nfiles = "x.csv"', "[source]: has `files` and `entity`, expected one of them."),
    ('entity = "bronze.orders"\nlag = "10m"', "[source] lag: needs a `watermark`, which it goes back from."),
    ('entity = "bronze.orders"\nwatermark = "a b"', "[source] watermark: the column name \"a b\" has ' ', which Fabric refuses in a column's name."),
    ('entity = "bronze.orders"\nwatermark = ["at"]', "[source] watermark: found a list, expected a column name."),
    *[
        (f'entity = "bronze.orders"\nwatermark = "at"\nlag = {lag}', f'[source] lag: found {shown}, expected seconds, or a text such as "10m", "2h" or "1d", up to 366 days.')
        for lag, shown in [
            ('"10"', '"10"'), ('"10 m"', '"10 m"'), ('"1w"', '"1w"'), ("-1", "-1"), ("true", "true"), ("nan", "nan"),
            ('"367d"', '"367d"'), ('"999999999d"', '"999999999d"'), ("[]", "an empty list"),
        ]
    ],
    ('files = ""', '[source] files: found "", expected a file pattern, such as "{landing}/orders_*.csv".'),
    ('files = ["a.csv"]', '[source] files: found a list, expected a file pattern, such as "{landing}/orders_*.csv".'),
    ('files = "a\\u0000.csv"', '[source] files: found "a\\u0000.csv", expected a file pattern, such as "{landing}/orders_*.csv".'),
    ('files = "a\\n.csv"', "[source] files: has a character that can't be seen."),
    ('files = "{landing/a.csv"', "[source] files: has a brace without its partner; expected variables written as {name}."),
    ('files = "landing}/a.csv"', "[source] files: has a brace without its partner; expected variables written as {name}."),
    ('files = "{{landing}}/a.csv"', "[source] files: has a brace without its partner; expected variables written as {name}."),
    ('files = "{landing}/a.parquet"', "[source] files: names files that are not CSV; this version reads CSV files."),
    ('files = "{landing}/a.csv.GZ"', "[source] files: names packed files; expected plain CSV files."),
    ('files = "https://x/?sig=abc"', "[source] files: is an address; expected a path, with the part that differs between environments in a variable."),
    ('files = "{landng}/a.csv"', "[source] files: `{landng}` is not one of the vars of environment dev; did you mean `landing`?"),
    ('files = "{}/a.csv"', "[source] files: `{}` is not one of the vars of environment dev; known: landing."),
    ('files = "a.csv"\ntake = "newst"', '[source] take: found "newst", expected "new", "all" or "newest"; did you mean `newest`?'),
    ('files = "a.csv"\nwatermark = "at"', "[source] watermark: does not go with `files`."),
    ('files = "a.csv"\nsnapshot = true', "[source] snapshot: unknown key; known: csv, files, take."),
    ('files = "a.csv"\ncsv = ";"', '[source] csv: found ";", expected a table.'),
]  # fmt: skip

CSV = [
    ('delimter = ";"', "delimter: unknown key; did you mean `delimiter`?"),
    *[(f"delimiter = {value}", f"delimiter: found {shown}, expected one character that is not a letter or digit.")
      for value, shown in [('";;"', '";;"'), ('""', '""'), ('"a"', '"a"'), ('"\\n"', '"\\n"'), ("1", "1")]],
    ('quote = "xx"', 'quote: found "xx", expected one character that is not a letter or digit, or "" for none.'),
    ('quote = ","', 'quote: found ",", which is the delimiter too.'),
    *[(f"encoding = {value}", f'encoding: found {value}, expected a text encoding such as "utf-8", "utf-16", "cp1252" or "latin-1".')
      for value in ['"utf-9"', '"base64"', '"rot13"', '"idna"', '"unicode_escape"', '"mbcs"', '"undefined"', '"../x"']],
    ("encoding = 8", 'encoding: found 8, expected an encoding such as "utf-8".'),
    ('decimal = ";"', 'decimal: found ";", expected "." or ",".'),
    ('thousands = "."', 'thousands: found ".", which is the decimal sign too.'),
    ('thousands = "x"', 'thousands: found "x", expected "", ".", ",", "\'", " ", "_", "\\u00a0" or "\\u202f".'),
    ("null = 3", 'null: found 3, expected a text, or a list of texts such as ["", "NA"].'),
    ('null = ["", 0]', 'null: found a list, expected a text, or a list of texts such as ["", "NA"].'),
    ('header = "yes"', 'header: found "yes", expected true or false.'),
    ("header = 1", "header: found 1, expected true or false."),
    ('on_bad_row = "skip"', 'on_bad_row: found "skip", expected "quarantine" or "fail".'),
    ('on_empty = "warn"', 'on_empty: found "warn", expected "fail" or "ignore".'),
]  # fmt: skip

COLUMNS = [
    ("a = 'text'", '[columns] a: found "text", expected a table.'),
    ("a = { typ = 'text' }", "[columns] a typ: unknown key; did you mean `type`?"),
    *[(f"a = {{ type = '{written}' }}", f'[columns] a type: found "{written}", expected one of text, integer, double, boolean, date, timestamp, decimal(p,s){hint}')
      for written, hint in [
          ("string", "; did you mean `text`?"), ("int", "; did you mean `integer`?"), ("Integer", "; did you mean `integer`?"),
          ("FLOAT", "; did you mean `double`?"), ("datetime", "; did you mean `timestamp`?"), ("timestmp", "; did you mean `timestamp`?"),
          ("decimal", "; did you mean `decimal(18,2)`?"), ("decimal(p,s)", "."), ("json", "."),
      ]],
    ("a = { type = 'decimal(39,2)' }", '[columns] a type: found "decimal(39,2)", expected decimal(p,s) with p from 1 to 38 and s from 0 to p.'),
    ("a = { type = 'decimal(4,5)' }", '[columns] a type: found "decimal(4,5)", expected decimal(p,s) with p from 1 to 38 and s from 0 to p.'),
    ("a = { type = 3 }", "[columns] a type: found 3, expected one of text, integer, double, boolean, date, timestamp, decimal(p,s)."),
    ("a = { type = 'integer', format = '%d' }", '[columns] a format: is for `type = "date"` and `type = "timestamp"`.'),
    *[(f"a = {{ type = 'date', format = '{written}' }}", f'[columns] a format: found "{written}", expected a strptime format such as %d.%m.%Y.')
      for written in ["dd.mm.yyyy", "%d.%m.%", "%Q", "%-Y", "100%"]],
    ("a = { type = 'date', zone = 'UTC' }", '[columns] a zone: is for `type = "timestamp"`.'),
    *[(f"a = {{ type = 'timestamp', zone = '{zone}' }}", f'[columns] a zone: found "{zone}", expected a time zone such as "Europe/Zurich"{hint}')
      for zone, hint in [
          ("Europe/Zurch", "; did you mean `Europe/Zurich`?"), ("Europe", "; did you mean `Europe/Rome`?"), ("../etc/passwd", "."), ("localtime", "."), ("+01:00", "."),
      ]],
    ("a = { rename = 'b c' }", "[columns] a rename: the column name \"b c\" has ' ', which Fabric refuses in a column's name."),
    ("a = { rename = '' }", '[columns] a rename: found "", expected a column name.'),
    ('"" = {}', '[columns]  rename: the column name "" is empty; expected a `rename = "…"`.'),
    ('"Order ID" = {}', "[columns] Order ID rename: the column name \"Order ID\" has ' ', which Fabric refuses in a column's name; expected a `rename = \"…\"`."),
    ('"a\\u200b" = {}', "[columns] a\\u200b rename: the column name \"a\\u200b\" has '\\u200b', which can't be seen; expected a `rename = \"…\"`."),
    (f"a = {{ rename = '{'b' * 129}' }}", f'[columns] a rename: the column name "{"b" * 59}…" has 129 characters; 128 are allowed.'),
    ("id = {}\nID = {}", '[columns]: the columns "id" and "ID" differ only in letter case.'),
    ("id = {}\nx = { rename = 'id' }", '[columns]: two columns get the name "id".'),
    ("a = { null = 0 }", '[columns] a null: found 0, expected a text, or a list of texts such as ["", "NA"].'),
]  # fmt: skip

TRANSFORM = [
    ("", "[transform]: has neither, expected exactly one of `sql` and `sql_file`."),
    ('sql = "select 1 from {source}"\nsql_file = "a.sql"', "[transform]: has both, expected exactly one of `sql` and `sql_file`."),
    ("sql = ''", "[transform] sql: found \"\", expected SQL such as 'select * from {source}'."),
    ("sql = ['select 1']", "[transform] sql: found a list, expected SQL such as 'select * from {source}'."),
    ("sql = '-- {source}'", "[transform] sql: has no SQL, only white space and comments."),
    ("sql = 'select 1'", "[transform] sql: the source `source` is not used, expected `{source}` in the SQL."),
    ("sql = 'select * from {source}, {sauce}'", "[transform] sql: `{sauce}` is not one of the sources; did you mean `source`?"),
    ("sql = 'select * from {source}, {Source}'", "[transform] sql: `{Source}` is not one of the sources; did you mean `source`?"),
    ("sql = '''select '{source}' from x'''", "[transform] sql: the source `source` is not used, expected `{source}` in the SQL."),
    ("sql = 'select 1 from {source}'\npython = 'a.py'", "[transform] python: unknown key; known: sql, sql_file."),
]  # fmt: skip

LOAD = [
    ("mode = 'scd9'\nkey = ['a']", '[load] mode: found "scd9", expected "overwrite", "append" or "scd1"; did you mean `scd1`?'),
    ("mode = 'SCD1'\nkey = ['a']", '[load] mode: found "SCD1", expected "overwrite", "append" or "scd1"; did you mean `scd1`?'),
    ("mode = 'scd2'\nkey = ['a']", '[load] mode: found "scd2", expected "overwrite", "append" or "scd1"; did you mean `scd1`?'),
    ("mode = 1", '[load] mode: found 1, expected "overwrite", "append" or "scd1".'),
    ("key = ['a']", '[load] mode: missing, expected "overwrite", "append" or "scd1".'),
    ("mode = 'scd1'", '[load] key: missing, expected the columns that tell rows apart, which `mode = "scd1"` needs.'),
    ("mode = 'scd1'\nkey = 'a'", '[load] key: found "a", expected a list of column names, such as ["order_id"].'),
    ("mode = 'scd1'\nkey = []", '[load] key: found an empty list, expected a list of column names, such as ["order_id"].'),
    ("mode = 'scd1'\nkey = ['a', 1]", '[load] key: found a list, expected a list of column names, such as ["order_id"].'),
    ("mode = 'scd1'\nkey = ['']", '[load] key: the column name "" is empty.'),
    ("mode = 'scd1'\nkey = ['a', 'b', 'a']", '[load] key: names "a" twice.'),
    ("mode = 'scd1'\nkey = ['a', 'A']", '[load] key: "a" and "A" differ only in letter case.'),
    ("mode = 'scd1'\nkey = ['a']\norder_by = 'A'", '[load] order_by: "A" is part of the key, so it can\'t order rows of one key.'),
    ("mode = 'scd1'\nkey = ['a']\non_duplicate_key = 'newest'", '[load] order_by: missing, expected the column that says which row is newest, for `on_duplicate_key = "newest"`.'),
    ("mode = 'scd1'\nkey = ['a']\non_duplicate_key = 'newst'", '[load] on_duplicate_key: found "newst", expected "newest", "quarantine" or "fail"; did you mean `newest`?'),
    ("mode = 'scd1'\nkey = ['a']\non_null_key = 'newest'", '[load] on_null_key: found "newest", expected "quarantine" or "fail".'),
    ("mode = 'append'\non_new_column = 'ignore'", '[load] on_new_column: found "ignore", expected "add" or "fail".'),
    ("mode = 'append'\nkey = ['a']", '[load] key: is for `mode = "scd1"`; append does not match rows by key; expected a check `unique`.'),
    ("mode = 'overwrite'\norder_by = 'a'", '[load] order_by: is for `mode = "scd1"`; overwrite does not match rows by key.'),
    ("mode = 'append'\non_null_key = 'fail'", '[load] on_null_key: is for `mode = "scd1"`; append does not match rows by key.'),
    ("mode = 'append'\npartition_by = []", "[load] partition_by: unknown key; known: key, mode, on_duplicate_key, on_new_column, on_null_key, order_by."),
]  # fmt: skip

CHECKS = [
    ("", '1: has no rule, expected exactly one of "not_null", "unique" or "accepted".'),
    ("not_null = ['a']\nunique = ['a']", '1: has `not_null` and `unique`, expected exactly one of "not_null", "unique" or "accepted".'),
    ("not_null = ['a']\nseverty = 'warn'", "1 severty: unknown key; did you mean `severity`?"),
    ("not_null = 'a'", '1 not_null: found "a", expected a list of column names, such as ["order_id"].'),
    ("not_null = []", '1 not_null: found an empty list, expected a list of column names, such as ["order_id"].'),
    ("not_null = ['a;b']", "1 not_null: the column name \"a;b\" has ';', which Fabric refuses in a column's name."),
    ("unique = ['a']\nseverity = 'quarantine'", '1 severity: found "quarantine", but `unique` judges all rows at once; expected "warn" or "fail".'),
    ("unique = ['a']\nseverity = 'error'", '1 severity: found "error", expected "quarantine", "warn" or "fail".'),
    ("accepted = ['a']", "1 accepted: found a list, expected a table."),
    ("accepted = {}", '1 accepted: has 0 columns, expected one column and its values, such as { status = ["NEW", "PAID"] }.'),
    ("accepted = { a = ['x'], b = ['y'] }", '1 accepted: has 2 columns, expected one column and its values, such as { status = ["NEW", "PAID"] }.'),
    ("accepted = { a = 'x' }", '1 accepted: found "x", expected one column and its values, such as { status = ["NEW", "PAID"] }.'),
    ("accepted = { a = [] }", '1 accepted: found an empty list, expected one column and its values, such as { status = ["NEW", "PAID"] }.'),
    ("accepted = { a = [1.5] }", "1 accepted: found 1.5 among the values, expected texts, whole numbers, booleans or dates."),
    ("accepted = { a = [2027-01-15T09:00:00Z] }", "1 accepted: found 2027-01-15 09:00:00+00:00 among the values, expected texts, whole numbers, booleans or dates."),
    ('accepted = { "a b" = ["x"] }', "1 accepted a b: the column name \"a b\" has ' ', which Fabric refuses in a column's name."),
    ("not_null = ['a']\n[[checks]]\nnot_null = ['A']", "2 not_null: stands in [[checks]] 1 already."),
]  # fmt: skip


def names(cases: list[tuple[str, str]]) -> list[str]:
    return [f"{text}"[:60] for text, _ in cases]


@pytest.mark.parametrize(("text", "sentence"), TOP, ids=names(TOP))
def test_a_wrong_key_at_the_top_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    assert problems(project(tmp_path, silver=f"{text}\n{SILVER}")) == (f"{SILVER_FILE}, {sentence}",)


@pytest.mark.parametrize(("text", "sentence"), SOURCE, ids=names(SOURCE))
def test_a_wrong_source_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    silver = f'[source]\n{text}\n[load]\nmode = "append"\n'
    assert problems(project(tmp_path, silver=silver)) == (f"{SILVER_FILE}, {sentence}",)


@pytest.mark.parametrize(("text", "sentence"), CSV, ids=names(CSV))
def test_a_wrong_csv_key_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    bronze = f"{BRONZE}[source.csv]\n{text}\n"
    assert problems(project(tmp_path, bronze=bronze)) == (f"{BRONZE_FILE}, [source.csv] {sentence}",)


@pytest.mark.parametrize(("text", "sentence"), COLUMNS, ids=names(COLUMNS))
def test_a_wrong_column_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    assert problems(project(tmp_path, bronze=f"{BRONZE}[columns]\n{text}\n")) == (f"{BRONZE_FILE}, {sentence}",)


@pytest.mark.parametrize(("text", "sentence"), TRANSFORM, ids=names(TRANSFORM))
def test_a_wrong_transform_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    silver = f'[source]\nentity = "bronze.orders"\n[load]\nmode = "append"\n[transform]\n{text}\n'
    assert problems(project(tmp_path, silver=silver)) == (f"{SILVER_FILE}, {sentence}",)


@pytest.mark.parametrize(("text", "sentence"), LOAD, ids=names(LOAD))
def test_a_wrong_load_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    silver = f'[source]\nentity = "bronze.orders"\n[load]\n{text}\n'
    assert problems(project(tmp_path, silver=silver)) == (f"{SILVER_FILE}, {sentence}",)


@pytest.mark.parametrize(("text", "sentence"), CHECKS, ids=names(CHECKS))
def test_a_wrong_check_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    assert problems(project(tmp_path, silver=f"{SILVER}[[checks]]\n{text}\n")) == (
        f"{SILVER_FILE}, [[checks]] {sentence}",
    )


@pytest.mark.parametrize("character", "\"'#%+:?`/\\ ,;{}()=\t\n\u00a0\u2028")
def test_no_column_may_have_a_character_that_fabric_refuses(tmp_path: Path, character: str) -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in f"a{character}b")
    found = problems(project(tmp_path, silver=SILVER.replace('["order_id"]', f'["{escaped}"]')))
    assert len(found) == 1
    assert "which Fabric refuses in a column's name" in found[0]


@pytest.mark.parametrize("name", ["größe", "a.b", "a-b", "_x", "1", "日付", "a$b", "a[0]", "x" * 128])
def test_other_characters_are_fine_in_a_column(tmp_path: Path, name: str) -> None:
    assert problems(project(tmp_path, silver=SILVER.replace('["order_id"]', f'["{name}"]'))) == ()


@pytest.mark.parametrize(
    ("alias", "sentence"),
    [
        ('fils = "landing/*.csv"', '[source] fils: found "landing/*.csv", expected an entity such as "bronze.orders"; did you mean `files`?'),
        ("o = true", '[source] o: found true, expected an entity such as "bronze.orders".'),
        ("o = {}", '[source] o entity: missing, expected an entity such as "bronze.orders".'),
        ('o = { entty = "a.b", entity = "silver.orders" }', "[source] o entty: unknown key; did you mean `entity`?"),
        ('"a-b" = "silver.orders"', '[source]: the alias "a-b" is not a letter or underscore followed by letters, digits and underscores.'),
        ('watermark = "at"', "[source] watermark: goes with `entity`; an alias has its own: `o = { entity = …, watermark = … }`."),
        ('take = "all"', "[source] take: goes with `files`."),
    ],
)  # fmt: skip
def test_a_wrong_alias_is_one_sentence(tmp_path: Path, alias: str, sentence: str) -> None:
    gold = f'[source]\nx = "silver.orders"\n{alias}\n[transform]\nsql = "select * from {{x}}{", {o}" if alias.startswith("o = { entty") or alias == "o = {}" else ""}"\n[load]\nmode = "append"\n'
    assert problems(project(tmp_path, gold=gold)) == (f"{GOLD_FILE}, {sentence}",)


def test_aliases_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    gold = GOLD.replace('o = "silver.orders"', 'o = "silver.orders"\nO = "bronze.orders"').replace("{o}", "{o}, {O}")
    assert problems(project(tmp_path, gold=gold)) == (
        f'{GOLD_FILE}, [source]: the aliases "o" and "O" differ only in letter case.',
    )


def test_aliases_need_a_transform_and_do_not_go_with_columns(tmp_path: Path) -> None:
    gold = '[source]\no = "silver.orders"\n[columns]\na = {}\n[load]\nmode = "append"\n'
    assert problems(project(tmp_path, gold=gold)) == (
        f"{GOLD_FILE}, [columns]: goes with `files` or a single `entity`; with aliases, rename and cast in SQL.",
        f"{GOLD_FILE}, [transform]: missing, expected `sql` or `sql_file`, which says how the aliases come together.",
    )


def test_overwrite_from_new_rows_only_is_refused_because_it_would_drop_the_others(tmp_path: Path) -> None:
    gold = GOLD.replace('"silver.orders"', '{ entity = "silver.orders", watermark = "at" }')
    assert problems(project(tmp_path, gold=gold)) == (
        (
            f"{GOLD_FILE}, [load] mode: overwrite with a watermark would drop the rows before the mark; "
            "expected append or scd1."
        ),
    )


def test_files_without_a_header_need_their_columns_named(tmp_path: Path) -> None:
    bronze = f"{BRONZE}[source.csv]\nheader = false\n"
    assert problems(project(tmp_path, bronze=bronze)) == (
        f"{BRONZE_FILE}, [columns]: missing, expected a name for each column, in the files' order, since `header = false`.",
    )


def test_a_column_that_is_sure_not_to_exist_is_found_before_any_run(tmp_path: Path) -> None:
    bronze = BRONZE.replace('"append"', '"scd1"\nkey = ["Nr"]\norder_by = "at"') + (
        '[columns]\nNr = { rename = "order_no" }\n[[checks]]\nnot_null = ["Nr", "other"]\n'
    )
    assert problems(project(tmp_path, bronze=bronze)) == (
        f'{BRONZE_FILE}, [load] key: "Nr" is renamed in [columns]; did you mean `order_no`?',
        f'{BRONZE_FILE}, [[checks]] 1 not_null: "Nr" is renamed in [columns]; did you mean `order_no`?',
    )
    no_header = f"{BRONZE}[source.csv]\nheader = false\n[columns]\norder_no = {{}}\n[[checks]]\nunique = ['order_nr']\n"
    assert problems(project(tmp_path, bronze=no_header)) == (
        f'{BRONZE_FILE}, [[checks]] 1 unique: there is no column "order_nr"; did you mean `order_no`?',
    )


@pytest.mark.parametrize("letter", string.ascii_letters + "%")
def test_a_format_is_taken_exactly_when_duckdb_takes_it(tmp_path: Path, letter: str) -> None:
    for specifier in (f"%{letter}", f"%-{letter}"):
        try:
            duckdb.connect().execute("select try_strptime('x', ?)", [specifier]).fetchall()
            taken = True
        except duckdb.Error:
            taken = False
        columns = f'[columns]\na = {{ type = "timestamp", format = "{specifier}" }}\n'
        assert (problems(project(tmp_path, bronze=BRONZE + columns)) == ()) == taken, specifier


def test_a_sentence_shows_only_the_beginning_of_a_long_value(tmp_path: Path) -> None:
    found = problems(project(tmp_path, silver=SILVER.replace("scd1", "x" * 10_000)))
    assert len(found) == 1
    assert len(found[0]) < 250


def test_an_address_is_never_shown_because_it_may_hold_a_signature(tmp_path: Path) -> None:
    bronze = BRONZE.replace("{landing}/orders_*.csv", "https://account.blob/x?sig=SECRET")
    environments = 'format = 1\n[dev]\ntarget = "local"\nvars = { landing = "https://a/?sig=SECRET\\u0007", b = 1 }\n'
    text = "\n".join(problems(project(tmp_path, bronze=bronze, environments=environments)))
    assert text.count("\n") == 2
    assert "SECRET" not in text
