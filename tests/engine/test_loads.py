"""Overwrite, append, backfill, schema rules and checks, through whole table runs."""

import pytest
from engine_kit import World

from models.run import RunStatus

ORDERS = """
[columns]
id = { type = "integer" }
amount = { type = "decimal(9,2)" }
"""


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def silver(world: World, sql: str, load: str = 'mode = "overwrite"', more: str = "", watermark: str = "") -> None:
    world.entity(
        "silver.s",
        f"[source]\nentity = \"bronze.t\"\n{watermark}\n[transform]\nsql = '''{sql}'''\n[load]\n{load}\n{more}",
    )


def loaded(world: World, body: str = "id,amount\n1,1.50\n2,2.50\n", **entity: str) -> None:
    world.csv_entity(**entity)
    world.land("a.csv", body)
    world.run("bronze.t")


def test_an_overwrite_replaces_all_rows_in_one_version(world):
    world.csv_entity(mode="overwrite", take="newest")
    world.land("a.csv", "id\n1\n2\n")
    world.run("bronze.t")
    world.land("b.csv", "id\n3\n")
    row = world.run("bronze.t")
    assert (row.rows_inserted, row.rows_deleted, row.version_after) == (1, 2, row.version_before + 1)
    assert world.rows("bronze.t") == [("3",)]


@pytest.mark.parametrize("mode", ["overwrite", "scd1"])
def test_a_load_of_the_same_rows_makes_no_data_change(world, mode):
    key = 'key = ["id"]\non_duplicate_key = "fail"' if mode == "scd1" else ""
    world.csv_entity(mode=mode, take="all", more=key)
    world.land("a.csv", "id,v\n1,\n2,x\n")
    world.run("bronze.t")
    files = world.delta("bronze.t").file_uris()
    world.land("a.csv", "id,v\n2,x\n1,\n")
    row = world.run("bronze.t")
    assert (row.status, row.rows_read, row.files_added) == (RunStatus.NO_CHANGE, 2, 0)
    assert world.delta("bronze.t").file_uris() == files
    assert world.orphans("bronze.t") == set()
    assert world.run("bronze.t").version_after == row.version_after, "now nothing moved at all"


def test_an_overwrite_of_as_many_other_rows_is_seen(world):
    world.csv_entity(mode="overwrite", take="all")
    world.land("a.csv", "id,v\n1,x\n1,x\n2,y\n")
    world.run("bronze.t")
    world.land("a.csv", "id,v\n1,x\n2,y\n2,y\n")
    assert world.run("bronze.t").status is RunStatus.SUCCEEDED
    assert world.rows("bronze.t") == [("1", "x"), ("2", "y"), ("2", "y")]


def test_sql_that_asks_for_the_time_is_computed_each_time(world):
    loaded(world)
    silver(world, "select id, now() as seen from {source}")
    world.run("silver.s")
    assert world.run("silver.s").status is RunStatus.SUCCEEDED


def test_changed_sql_is_computed_though_no_source_moved(world):
    loaded(world)
    silver(world, "select id from {source}")
    world.run("silver.s")
    silver(world, "select id || '!' as id from {source}")
    assert world.run("silver.s").status is RunStatus.SUCCEEDED
    assert world.rows("silver.s") == [("1!",), ("2!",)]


def test_a_table_another_writer_changed_is_computed_again(world):
    loaded(world)
    silver(world, "select id from {source}")
    world.run("silver.s")
    world.delta("silver.s").delete("id = '1'")
    assert world.run("silver.s").status is RunStatus.SUCCEEDED
    assert world.rows("silver.s") == [("1",), ("2",)]


def test_a_backfill_rebuilds_from_all_source_rows_in_one_commit(world):
    loaded(world)
    world.land("b.csv", "id,amount\n3,3.50\n")
    world.run("bronze.t")
    world.delta("bronze.t").delete("id = '1'")
    row = world.run("bronze.t", backfill=True)
    assert (row.rows_inserted, row.version_after) == (3, row.version_before + 1)
    assert [found[0] for found in world.rows("bronze.t")] == ["1", "2", "3"]
    assert world.run("bronze.t").status is RunStatus.NO_CHANGE, "the marks are those of the rebuilt rows"


def test_a_backfill_of_scd1_settles_keys_over_all_files(world):
    world.csv_entity(mode="scd1", more='key = ["id"]\norder_by = "ts"\n[columns]\nts = { type = "integer" }')
    world.land("a.csv", "id,ts\n1,1\n2,1\n")
    world.run("bronze.t")
    world.land("b.csv", "id,ts\n1,2\n")
    world.run("bronze.t")
    assert world.run("bronze.t", backfill=True).status is RunStatus.NO_CHANGE
    assert world.rows("bronze.t") == [("1", 2), ("2", 1)]


def test_sums_counts_and_local_times_become_types_fabric_reads(world):
    loaded(world)
    silver(
        world,
        "select id, sum(id::bigint) as s, count(*) as n, timestamp '2027-01-15 09:00' as t, uuid() as u, 5::utinyint as b, "
        "avg(amount::double) as a, current_date as d from {source} group by id",
    )
    world.run("silver.s")
    table = world.delta("silver.s")
    assert {field.name: field.type.type for field in table.schema().fields} == {
        "id": "string", "s": "long", "n": "long", "t": "timestamp", "u": "string", "b": "short", "a": "double", "d": "date",
    }  # fmt: skip
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert world.rows("silver.s", "t")[0][0].isoformat() == "2027-01-15T09:00:00+00:00"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ('select id as "order id" from {source}', "'order id' has ' ', which Fabric refuses"),
        ("select count(*), id from {source} group by id", "which Fabric refuses"),
        ('select id, id as "ID" from {source}', "two columns the name `ID`"),
        ("select time '10:00' as t from {source}", "`t` has the type TIME"),
        ("select [1, 2] as l from {source}", "`l` has the type INTEGER[]"),
        ("select null as n from {source}", '`n` has the type "NULL"'),
        ("select nope from {source}", "The SQL of silver.s can't be run"),
        ("select cast(id || 'x' as integer) as n from {source}", "Could not convert string"),
        ("selec 1 from {source}", "The SQL of silver.s can't be run"),
        ("select 1 as n from {source}; drop table x", "The SQL of silver.s can't be run"),
        ("select 170141183460469231731687303715884105727::hugeint as h from {source}", "out of range"),
    ],
)
def test_sql_that_gives_no_good_table_is_a_sentence_and_nothing_is_written(world, sql, said):
    loaded(world)
    silver(world, sql)
    error = world.fails("silver.s")
    assert said in error
    assert not list(world.folder("silver.s").glob("*.parquet"))


def test_sql_may_use_comments_braces_from_first_and_names_of_its_sources(world):
    loaded(world)
    silver(
        world,
        "with source as (from {source} select id) -- {source} here is a comment\nselect id, '{source}' as t, {'a': 1}.a as a from source;",
    )
    world.run("silver.s")
    assert world.rows("silver.s") == [("1", "{source}", 1), ("2", "{source}", 1)]


def test_an_integer_that_becomes_text_is_refused_with_both_types(world):
    loaded(world, more=ORDERS)
    world.csv_entity(more=ORDERS.replace('id = { type = "integer" }', ""))
    world.land("b.csv", "id,amount\n007,1.00\n")
    error = world.fails("bronze.t")
    assert "`id` is long in the table and became string" in error
    assert len(world.rows("bronze.t")) == 2


def test_text_never_becomes_a_number_by_itself(world):
    loaded(world)
    silver(world, "select id::bigint as id from {source}")
    world.run("silver.s")
    silver(world, "select id::double + 0.7 as id from {source}")
    assert "`id` is long in the table and became double" in world.fails("silver.s")


def test_a_narrower_type_goes_into_a_wider_one_without_loss(world):
    loaded(world)
    silver(world, "select id::bigint as n, 1.25::decimal(9,2) as d from {source}")
    world.run("silver.s")
    silver(world, "select id::integer + 1 as n, 2.5::decimal(4,1) as d from {source}")
    world.run("silver.s")
    assert [found[0] for found in world.rows("silver.s")] == [2, 3]


def test_a_new_column_is_added_and_old_rows_have_null_there(world):
    loaded(world)
    world.land("b.csv", "id,amount,extra\n3,3.5,x\n")
    world.run("bronze.t")
    assert world.rows("bronze.t") == [("1", "1.50", None), ("2", "2.50", None), ("3", "3.5", "x")]


def test_a_new_column_is_refused_where_that_is_declared(world):
    loaded(world, more='on_new_column = "fail"')
    world.land("b.csv", "id,amount,extra\n3,3.5,x\n")
    assert "`extra` (string) is not in the table" in world.fails("bronze.t")


def test_a_column_that_goes_missing_is_refused(world):
    loaded(world)
    world.land("b.csv", "id\n3\n")
    assert "landing/b.csv has no column 'amount', which an older file has or had" in world.fails("bronze.t")
    silver(world, "select id, amount from {source}")
    world.run("silver.s")
    silver(world, "select id from {source}")
    assert "`amount` (string) is in the table and no longer in its source" in world.fails("silver.s")


def test_names_equal_but_for_case_are_refused_naming_both(world):
    loaded(world)
    world.land("b.csv", "ID,amount\n3,1\n")
    assert "the columns `id` and `ID` of its own and older files differ only in letter case" in world.fails("bronze.t")


def test_a_folder_with_something_else_is_left_alone(world):
    world.csv_entity()
    world.land("a.csv", "id\n1\n")
    world.folder("bronze.t").mkdir(parents=True)
    (world.folder("bronze.t") / "notes.txt").write_text("mine")
    assert "is not a Delta table: it has 'notes.txt'" in world.fails("bronze.t")
    assert [path.name for path in world.folder("bronze.t").iterdir()] == ["notes.txt"]


def test_a_log_that_is_damaged_is_no_table(world):
    loaded(world)
    for path in (world.folder("bronze.t") / "_delta_log").glob("*.json"):
        path.write_text("garbage")
    assert "its log can't be read" in world.fails("bronze.t")


@pytest.mark.parametrize("setting", [{"delta.appendOnly": "true"}, {"delta.enableChangeDataFeed": "true"}])
def test_a_table_with_rules_this_version_does_not_keep_is_not_written(world, setting):
    loaded(world)
    world.delta("bronze.t").alter.set_table_properties(setting)
    world.land("b.csv", "id,amount\n3,1\n")
    assert "can't be written" in world.fails("bronze.t")


def test_not_null_quarantines_warns_or_fails(world):
    loaded(world, "id,amount\n1,\n2,2\n,\n")
    for severity, rows in (("quarantine", 1), ("warn", 3), ("fail", 0)):
        silver(
            world,
            "select id, amount from {source}",
            more=f'[[checks]]\nnot_null = ["id", "amount"]\nseverity = "{severity}"',
        )
        outcome = world.outcome("silver.s", backfill=True).row
        if severity == "fail":
            assert "not_null(id, amount) found 2 rows" in outcome.error
            assert world.orphans("silver.s") == set()
        else:
            assert len(world.rows("silver.s")) == rows
            assert [(found.check, found.rows) for found in outcome.checks] == [("not_null(id, amount)", 2)]
    assert world.quarantine("silver.s", "reason", "row") == [
        ("not_null(id, amount)", '{"id":"1","amount":null}'),
        ("not_null(id, amount)", '{"id":null,"amount":null}'),
    ]


@pytest.mark.parametrize(
    ("load", "more", "said"),
    [
        ('mode = "scd1"\nkey = ["no"]\non_duplicate_key = "fail"', "", "[load] key of silver.s names `no`"),
        ('mode = "scd1"\nkey = ["id"]\norder_by = "no"', "", "[load] order_by of silver.s names `no`"),
        (
            'mode = "append"',
            '[[checks]]\nunique = ["no"]\nseverity = "warn"',
            "The check unique(no) of silver.s names `no`",
        ),
    ],
)
def test_a_column_that_is_named_and_not_there_is_refused_with_those_there_are(world, load, more, said):
    loaded(world)
    silver(world, "select id, amount from {source}", load, more)
    error = world.fails("silver.s")
    assert error.startswith(f"{said}, which its rows don't have; they have: id, amount.")
    assert not world.folder("silver.s").exists()


def test_accepted_lets_null_pass_and_names_the_check(world):
    loaded(world, "id,amount\nNEW,1\nnew,2\n,3\n")
    silver(
        world,
        "select id, amount from {source}",
        more='[[checks]]\naccepted = { id = ["NEW", "PAID"] }\nseverity = "quarantine"',
    )
    world.run("silver.s")
    assert world.rows("silver.s") == [("NEW", "1"), (None, "3")]
    assert world.quarantine("silver.s", "reason") == [("accepted(id)",)]


def test_a_row_that_fails_two_checks_is_quarantined_once_with_both(world):
    loaded(world, "id,amount\nx,\n")
    silver(
        world,
        "select id, amount from {source}",
        more='[[checks]]\naccepted = { id = ["NEW"] }\nseverity = "quarantine"\n[[checks]]\nnot_null = ["amount"]\nseverity = "quarantine"',
    )
    row = world.run("silver.s")
    assert row.rows_quarantined == 1
    assert world.quarantine("silver.s", "reason") == [("accepted(id); not_null(amount)",)]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_unique_looks_at_the_table_as_it_would_be(world, mode):
    check = '[[checks]]\nunique = ["id"]\nseverity = "fail"'
    loaded(world, "id,amount\n1,1\n2,2\n,3\n,4\n", mode=mode, more=check, take="new")
    world.land("b.csv", "id,amount\n2,9\n")
    if mode == "append":
        assert "unique(id) found 2 rows" in world.fails("bronze.t")
        assert world.orphans("bronze.t") == set()
        assert len(world.rows("bronze.t")) == 4
    else:
        world.run("bronze.t")
    world.land("c.csv", "id,amount\n7,1\n7,1\n")
    assert "unique(id)" in world.fails("bronze.t")


def test_unique_after_a_merge_counts_rows_that_were_not_touched(world):
    world.csv_entity(
        mode="scd1", more='key = ["id"]\non_duplicate_key = "fail"\n[[checks]]\nunique = ["mail"]\nseverity = "fail"'
    )
    world.land("a.csv", "id,mail\n1,a\n2,b\n")
    world.run("bronze.t")
    world.land("b.csv", "id,mail\n3,a\n")
    assert "unique(mail) found 2 rows" in world.fails("bronze.t")
    world.land("b.csv", "id,mail\n3,c\n")
    world.run("bronze.t")


def test_declared_columns_of_another_entity_are_cast_and_refused_rows_kept(world):
    loaded(world, "id,amount\n1,1.5\nx,2\n3,NA\n")
    world.entity(
        "silver.s",
        '[source]\nentity = "bronze.t"\n[load]\nmode = "overwrite"\n[columns]\nid = { type = "integer" }\n'
        'amount = { rename = "price", type = "double", null = ["NA"] }\n',
    )
    world.run("silver.s")
    assert world.rows("silver.s", "id", "price") == [(1, 1.5), (3, None)]
    assert world.quarantine("silver.s") == [("landing/a.csv", None, "id: 'x' is not an integer")]


def test_a_failure_is_a_row_with_category_and_sentence_and_no_class_name(world):
    world.csv_entity()
    outcome = world.outcome("bronze.t")
    assert (outcome.row.status, outcome.row.category, outcome.retryable) == (RunStatus.FAILED, "Source missing", False)


def test_a_mistake_of_ours_ends_the_table_not_the_process(world, monkeypatch):
    world.csv_entity()
    monkeypatch.setattr("fdagent.engine.runtable._told", lambda *_: 1 / 0)
    world.land("a.csv", "id\n1\n")
    outcome = world.outcome("bronze.t")
    assert (outcome.row.category, outcome.row.error) == ("Code", "ZeroDivisionError: division by zero")


def test_more_than_two_hundred_columns_have_statistics_on_keys_only(world):
    names = [f"c{n}" for n in range(201)]
    world.csv_entity(mode="scd1", more='key = ["c150"]\non_duplicate_key = "fail"')
    world.land("a.csv", ",".join(names) + "\n" + ",".join("1" * 201) + "\n")
    world.run("bronze.t")
    actions = world.delta("bronze.t").get_add_actions(flatten=True)
    with_stats = {
        name for name in actions.schema.names if name.startswith("min.") and actions[name].to_pylist() != [None]
    }
    assert with_stats == {"min.c150", "min._loaded_at"}


def test_the_newest_timestamp_in_statistics_is_never_below_a_row(world):
    loaded(world, "id,amount\n1,1\n")
    silver(world, "select timestamptz '2027-01-15 09:00:00.123456+00' as t from {source}")
    world.run("silver.s")
    actions = world.delta("silver.s").get_add_actions(flatten=True)
    assert actions["max.t"].to_pylist()[0].isoformat() == "2027-01-15T09:00:00.124000+00:00"
    assert actions["min.t"].to_pylist()[0].isoformat() == "2027-01-15T09:00:00.123000+00:00"
