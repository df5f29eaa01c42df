"""A first load that fails: what it leaves decides nothing."""

import shutil

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from engine_kit import World

from fdagent.engine.tables.delta import DeltaTablePort
from models.run import RunStatus


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def silver(world: World, sql: str) -> None:
    world.entity(
        "silver.s", f'[source]\nentity = "bronze.t"\n[transform]\nsql = \'{sql}\'\n[load]\nmode = "overwrite"\n'
    )


def delivered(world: World, body: str) -> None:
    world.csv_entity()
    world.land("a.csv", body)
    world.run("bronze.t")


def test_a_first_load_that_failed_does_not_decide_the_types_of_the_next(world):
    delivered(world, "id,amount\n18446744073709551615,1\n")
    for cast in ("ubigint", "utinyint", "ubigint"):
        silver(world, f"select id::{cast} as id from {{source}}")
        assert "can't be computed" in world.fails("silver.s")
    silver(world, "select id::decimal(20, 0) as number, amount from {source}")
    assert world.run("silver.s").rows_inserted == 1
    assert [(str(number), amount) for number, amount in world.rows("silver.s")] == [("18446744073709551615", "1")]
    silver(world, "select id as number, amount from {source}")
    said = world.fails("silver.s")
    assert "`number` is decimal(20,0) in the table and became string" in said
    assert "cast it to decimal(20,0) in [transform] sql, or load the table anew" in said


def test_the_columns_of_an_empty_table_that_was_loaded_or_made_by_another_writer_stay(world):
    delivered(world, "id,amount\n")
    for mode in ("none loaded", "by another"):
        if mode == "by another":
            write_deltalake(world.folder("silver.s"), pa.table({"id": pa.array([], pa.int64())}))
        silver(world, "select id::bigint as id from {source}")
        world.run("silver.s")
        silver(world, "select id from {source}")
        assert "`id` is long in the table and became string" in world.fails("silver.s"), mode
        shutil.rmtree(world.folder("silver.s"))


def test_two_that_shape_a_table_that_was_never_loaded_lose_no_rows(world, monkeypatch):
    delivered(world, "id,amount\n300,1\n")
    silver(world, "select id::utinyint as id from {source}")
    world.fails("silver.s")
    silver(world, "select id::integer as id from {source}")
    real, raced = DeltaTablePort.replace_columns, []

    def late(port, snapshot, fields):
        if not raced:
            raced.append(1)
            world.run("silver.s", "other")
        real(port, snapshot, fields)

    monkeypatch.setattr(DeltaTablePort, "replace_columns", late)
    assert world.run("silver.s", "key").status is RunStatus.NO_CHANGE
    assert world.rows("silver.s") == [(300,)]
