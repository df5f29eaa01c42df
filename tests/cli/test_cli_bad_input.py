"""Each kind of bad input, through the commands: a sentence that says what to do, the exit code, and nothing half-written."""

import json
import sqlite3

import pytest
from cli_kit import LANDING, Said, tree

from fdagent.queue.db import Database

HEADER = "order_id,customer,status,amount,updated_at\n"
GOOD = "7,Elm,new,10.00,2027-01-16T08:00:00Z\n"
TYPED = """
description = "Orders, typed as they are read"
[source]
files = "{landing}/orders_*.csv"
[columns]
order_id = { type = "integer" }
amount = { type = "decimal(18,2)" }
updated_at = { type = "timestamp" }
[load]
mode = "append"
"""


# The project


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (
            "entities/silver/orders.toml",
            "[load]",
            "[load",
            "entities/silver/orders.toml, line 10, column 6: not valid TOML",
        ),
        ("layers.toml", "rank = 2", "rank = ", "layers.toml, line 9, column 8: not valid TOML"),
        (
            "environments.toml",
            "format = 1",
            "format = 1\nformat = 1",
            "environments.toml, line 2, column 11: not valid TOML",
        ),
        (
            "entities/silver/orders.toml",
            "[transform]",
            "[tranform]",
            "tranform: unknown key; did you mean `transform`?",
        ),
        ("entities/silver/orders.toml", "order_by", "orderby", "[load] orderby: unknown key; did you mean `order_by`?"),
        ("layers.toml", "rank = 2", "rnak = 2", "[silver] rnak: unknown key; did you mean `rank`?"),
        (
            "entities/silver/orders.toml",
            "bronze.orders",
            "bronze.order",
            '[source] entity: there is no entity "bronze.order"; did you mean `bronze.orders`?',
        ),
        (
            "entities/bronze/orders.toml",
            'files = "{landing}/orders_*.csv"',
            'entity = "bronze.orders"',
            "[source] entity: `bronze.orders` reads itself.",
        ),
        ("entities/bronze/orders.toml", "append", "apend", '[load] mode: found "apend", expected'),
        ("entities/bronze/orders.toml", '"append"', "7", "[load] mode: found 7, expected"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "",
)
def test_a_mistake_in_the_project_is_named_with_its_place_and_nothing_is_changed(person, file, old, new, says):
    person.edit(file, old, new)
    for words in (["promote", "dev", "--yes"], ["enqueue", "dev"]):
        said = person.changes_nothing(lambda words=words: person(*words, code=2))
        assert "The metadata project in" in said.err
        assert says in said.err


def test_a_cycle_of_two_is_named_whole(person):
    person.write("entities/silver/x.toml", '[source]\nentity = "silver.orders"\n[load]\nmode = "overwrite"\n')
    person.edit("entities/silver/orders.toml", 'entity = "bronze.orders"', 'entity = "silver.x"')
    said = person.changes_nothing(lambda: person("promote", "dev", "--yes", code=2))
    assert "each reads the next: silver.orders -> silver.x -> silver.orders." in said.err


def test_all_mistakes_are_named_at_once(person):
    person.edit("layers.toml", "rank = 2", "rnak = 2")
    person.edit("entities/silver/orders.toml", "[transform]", "[tranform]")
    person.edit("entities/bronze/orders.toml", "append", "apend")
    said = person("promote", "dev", "--yes", code=2)
    assert all(word in said.err for word in ("rnak", "tranform", "apend"))


@pytest.mark.parametrize("name", ["or ders", "CON", "_orders", "or'ders", "or.ders"])
def test_a_table_name_that_fabric_or_windows_refuses_is_refused(person, name):
    person.write(f"entities/gold/{name}.toml", '[source]\nentity = "silver.orders"\n[load]\nmode = "overwrite"\n')
    said = person.changes_nothing(lambda: person("promote", "dev", "--yes", code=2))
    assert f'the table name "{name}"' in said.err


def test_two_tables_equal_but_for_case_are_refused(person):
    person.write("entities/silver/Orders.toml", '[source]\nentity = "bronze.orders"\n[load]\nmode = "overwrite"\n')
    said = person.changes_nothing(lambda: person("promote", "dev", "--yes", code=2))
    assert '"Orders" and "orders" differ only in letter case' in said.err


def test_a_project_that_broke_after_it_was_queued_fails_the_job_in_words(person):
    person("enqueue", "dev")
    person.edit("entities/silver/orders.toml", "[load]", "[load")
    said = person("run", "--until-idle", code=1)
    assert "entities/silver/orders.toml, line 10" in said.out
    assert not person.table("LH_Bronze", "orders").exists()


# What a run reads


def failed_run(person, table: str, sentence: str, *, category: str) -> Said:
    """A run whose table fails with a sentence; what it would have written is not there, nor anything that reads it."""
    said = person.runs(code=1)
    assert sentence in said.out
    job = person.last_job()
    assert (job["state"], job["category"]) == ("failed", category)
    assert job["tables"][table]["state"] == "failed"
    assert person.rows("LH_Gold", "revenue_by_customer") == []
    return said


def test_a_missing_source_file_is_named_and_taken_once_it_is_delivered(person):
    text = (person.project / LANDING).read_text()
    (person.project / LANDING).unlink()
    said = failed_run(person, "bronze.orders", "No file matches", category="Source missing")
    assert "landing/orders_*.csv" in said.out
    assert "Deliver it, or correct [source] files" in said.out
    assert "bronze.orders failed, so silver.orders was not run" in said.out
    assert not person.table("LH_Bronze", "orders").exists()
    person.write(LANDING, text)
    person.runs()
    assert len(person.rows("LH_Silver", "orders")) == 3


def test_a_file_with_only_a_header_is_no_error_and_has_no_rows(person):
    person.write(LANDING, HEADER)
    assert "no_change" in person.runs().out
    assert person.rows("LH_Bronze", "orders") == []
    person.write("landing/orders_2027-01-16.csv", HEADER + GOOD)
    person.runs()
    assert len(person.rows("LH_Silver", "orders")) == 1


def test_an_empty_file_is_refused_and_taken_once_it_is_whole(person):
    person.write(LANDING, "")
    said = failed_run(person, "bronze.orders", f"{LANDING} is empty", category="Data quality")
    assert 'Deliver it again, or set on_empty = "ignore"' in said.out
    assert person.rows("LH_Bronze", "orders") == []
    person.write(LANDING, HEADER + GOOD)
    person.runs()
    assert len(person.rows("LH_Silver", "orders")) == 1


def test_ragged_rows_are_quarantined_with_file_line_and_reason_and_the_others_loaded(person):
    person.write(LANDING, f"{HEADER}{GOOD}8,Elm,new\n9,Elm,new,1.00,2027-01-16T08:00:00Z,more\n")
    assert "3 read, 1 inserted, 2 quarantined" in person.runs().out
    refused = person.rows("LH_Meta", "quarantine_bronze_orders")
    assert sorted((row["file"], row["line"]) for row in refused) == [(LANDING, 3), (LANDING, 4)]
    assert all(row["reason"] and row["row"] for row in refused)
    assert len(person.rows("LH_Bronze", "orders")) == 1


def test_a_value_of_another_type_is_quarantined_where_types_are_declared(person):
    person.write("entities/bronze/orders.toml", TYPED)
    person.write(LANDING, f"{HEADER}{GOOD}8,Elm,new,lots,2027-01-16T08:00:00Z\n")
    assert "2 read, 1 inserted, 1 quarantined" in person.runs().out
    (refused,) = person.rows("LH_Meta", "quarantine_bronze_orders")
    assert (refused["line"], "lots" in refused["row"], "amount" in refused["reason"]) == (3, True, True)


def test_a_value_that_the_sql_can_not_cast_fails_its_table_and_nothing_of_it_is_written(person):
    person.edit("entities/silver/orders.sql", "try_cast(amount", "cast(amount")
    person.write(LANDING, f"{HEADER}{GOOD}8,Elm,new,lots,2027-01-16T08:00:00Z\n")
    failed_run(person, "silver.orders", 'Could not convert string "lots"', category="Code")
    assert person.rows("LH_Silver", "orders") == []
    assert not list(person.table("LH_Silver", "orders").glob("*.parquet"))
    assert person.rows("LH_Meta", "quarantine_silver_orders") == []


def test_a_text_into_a_number_column_of_the_table_is_never_cast(person):
    person.runs()
    person.edit("entities/silver/orders.sql", "try_cast(order_id as bigint) as order_id", "order_id")
    person("promote", "dev", "--yes")
    person("enqueue", "dev")
    before = tree(person.table("LH_Silver", "orders"))
    said = person("run", "--until-idle", code=1)
    assert "`order_id` is long in the table and became string (VARCHAR)" in said.out
    assert tree(person.table("LH_Silver", "orders")) == before


def test_a_column_name_that_fabric_refuses_is_refused_and_no_table_is_made(person):
    person.edit("entities/gold/revenue_by_customer.toml", "count(*) as orders", 'count(*) as \\"or ders\\"')
    failed_run(person, "gold.revenue_by_customer", "which Fabric refuses in a column's name", category="Code or schema")
    assert not person.table("LH_Gold", "revenue_by_customer").exists()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("orders/note.txt", "mine", "it has 'note.txt' and no Delta log"),
        ("orders/part-0.parquet", "mine", "it has 'part-0.parquet' and no Delta log"),
        ("orders", "mine", "it is a file"),
        ("orders/_delta_log/00000000000000000000.json", "no json", "its log can't be read"),
    ],
    ids=lambda value: value,
)
def test_what_is_not_a_delta_table_is_never_written_into(person, name, content, why):
    person.write(f".local/dev/LH_Silver/Tables/{name}", content)
    before = tree(person.table("LH_Silver", "orders").parent)
    said = failed_run(person, "silver.orders", why, category="Code or schema")
    assert "is not a Delta table" in said.out
    assert "Move it away, or give the entity another name." in said.out
    assert tree(person.table("LH_Silver", "orders").parent) == before
    assert len(person.rows("LH_Bronze", "orders")) == 5, "the others go on"


def test_a_name_that_a_terminal_would_obey_is_escaped(person):
    person.write("landing/orders_\x1b[31m.csv", "")
    said = person.runs(code=1)
    assert "\x1b" not in said.out
    assert "\\x1b[31m" in said.out
    assert "\x1b" not in person("status").out


def test_a_file_name_that_is_no_text_fails_one_table_in_words(person):
    with open(str(person.project / "landing").encode() + b"/orders_\xff.csv", "w") as file:  # noqa: PTH123  # bytes
        file.write(HEADER + GOOD)
    for said in (person.runs(code=1), person("status")):
        words = " ".join(said.out.split())
        assert "orders_\\xff.csv is not UTF-8" in words
        assert "Rename it" in words
    assert person.last_job()["state"] == "failed"


# The home


@pytest.mark.parametrize("words", [["status"], ["enqueue", "dev"], ["run", "--until-idle"], ["job", "x"]])
def test_a_queue_file_that_is_not_sqlite_is_left_as_it_is(person, words):
    person.write(".local/agent/queue.sqlite3", "this is a letter to my aunt, and it is long enough " * 50)
    (person.project / ".local/agent/queue.lock").touch()
    said = person.changes_nothing(lambda: person(*words, code=1))
    assert "can't be read as a queue: file is not a database. It was left as it is." in said.err
    assert "Move it away" in said.err


def test_the_sqlite_file_of_another_program_is_left_as_it_is(person):
    home = person.project / ".local/agent"
    home.mkdir(parents=True, exist_ok=True)
    (home / "queue.lock").touch()
    connection = sqlite3.connect(home / "queue.sqlite3")
    connection.execute("create table recipes (name text)")
    connection.commit()
    connection.close()
    said = person.changes_nothing(lambda: person("enqueue", "dev", code=1))
    assert "is a SQLite file, but not a queue of this version of fdagent" in said.err
    assert "Move it away, or name another home folder." in said.err


def test_a_row_that_no_job_may_have_is_a_sentence(person):
    job = person("enqueue", "dev", "--json").json["id"]
    database = Database(person.project / ".local/agent")
    with database.write(durable=True) as transaction:
        transaction.execute("update job set entities = '{broken'")
    database.close()
    for words in (["status"], ["job", job], ["run", "--until-idle"]):
        said = person(*words, code=1)
        assert f"Job '{job}' in the queue can't be read" in said.err


@pytest.mark.parametrize("words", [["status"], ["enqueue", "dev"], ["run", "--until-idle"]])
def test_a_home_below_a_file_is_no_empty_queue(person, monkeypatch, words):
    monkeypatch.setenv("FABRIC_DESKTOP_HOME", str(person.project / "README.md" / "home"))
    said = person.changes_nothing(lambda: person(*words, code=2))
    assert "README.md/home can't be used: Not a directory." in said.err
    assert "name another with FABRIC_DESKTOP_HOME" in said.err


def test_a_run_log_that_can_not_be_written_keeps_its_rows_until_it_can(person):
    blocked = person.write(".local/dev/LH_Meta/Tables/run_log", "in the way")
    said = person.runs()
    assert "The run log of dev could not be written; its rows are kept." in said.out
    blocked.unlink()
    person("run", "--until-idle")
    log = person.rows("LH_Meta", "run_log")
    assert sorted(row["entity"] for row in log) == ["bronze.orders", "gold.revenue_by_customer", "silver.orders"]
    assert {json.loads(row["checks"])[0]["rows"] for row in log if row["entity"] == "silver.orders"} == {1}
