"""Names that are no text, and values that the SQL can't take: each is a sentence that says where, and what to do."""

import os
import sys

import pytest
from engine_kit import World

from fdagent.errors import BadSource, ProjectError
from fdagent.project.load import load_project
from fdagent.project.scaffold import write_scaffold
from models.run import RunStatus

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def rename(world: World, new: bytes) -> None:
    """The one landed file under a name of bytes."""
    target = world.root / "landing" / os.fsdecode(new)
    target.parent.mkdir(parents=True, exist_ok=True)
    (world.root / "landing/a.csv").rename(target)


@linux
@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"a\xff.csv", r"a\xff.csv"), (b"m\xfcller.csv", r"m\xfcller.csv"), (b"\xe4/a.csv", r"\xe4/a.csv")],
    ids=["no letter", "Latin-1", "a folder"],
)
@pytest.mark.parametrize("take", ["new", "all", "newest"])
def test_a_source_file_whose_name_is_not_utf8_is_named_with_what_to_do(world, take, name, shown):
    world.csv_entity(take=take, mode="append" if take == "new" else "overwrite")
    world.entity("bronze.t", (world.root / "entities/bronze/t.toml").read_text().replace("*.csv", "**/*.csv"))
    world.land("a.csv", "n\n1\n")
    rename(world, name)
    error = world.fails("bronze.t")
    assert shown in error
    assert "is not UTF-8" in error
    assert "Rename it" in error
    assert "surrogate" not in error


@linux
def test_one_such_file_beside_good_ones_loads_nothing_and_once_it_is_renamed_all_is_loaded(world):
    world.csv_entity()
    world.land("a.csv", "n\n1\n")
    rename(world, b"x\xff.csv")
    world.land("b.csv", "n\n2\n")
    world.fails("bronze.t")
    assert not list(world.folder("bronze.t").glob("*.parquet"))
    landing = world.root / "landing"
    (landing / os.fsdecode(b"x\xff.csv")).rename(landing / "x.csv")
    assert world.run("bronze.t").rows_inserted == 2


@linux
def test_such_a_file_that_no_pattern_matches_is_nobodys_business(world):
    world.csv_entity()
    world.land("a.csv", "n\n1\n")
    (world.root / "landing").joinpath("a.csv").rename(world.root / "landing/keep.csv")
    world.land("a.csv", "other")
    rename(world, b"x\xff.txt")
    assert world.run("bronze.t").rows_inserted == 1


@linux
@pytest.mark.parametrize(
    "name", [b"entities/bronze/b\xff.toml", b"entities/b\xff/t.toml"], ids=["an entity's file", "a layer's folder"]
)
def test_a_project_file_whose_name_is_not_utf8_is_a_problem_with_its_place(world, name):
    world.csv_entity()
    path = world.root / os.fsdecode(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((world.root / "entities/bronze/t.toml").read_bytes())
    with pytest.raises(ProjectError) as caught:
        load_project(world.root)
    assert "entities/b" in str(caught.value)
    str(caught.value).encode()


@linux
def test_a_project_below_a_folder_whose_name_is_not_utf8_is_refused_at_once(tmp_path):
    root = tmp_path / os.fsdecode(b"p\xff")
    root.mkdir()
    with pytest.raises(ProjectError, match="its path is not UTF-8: rename the folder"):
        load_project(root)


def test_a_name_with_letters_of_any_alphabet_is_text(world):
    world.csv_entity()
    world.land("Müller-日本-\U0001f980.csv", "n\n1\n")
    assert world.run("bronze.t").rows_inserted == 1


CONVERSIONS = [
    "cast(id as integer) as n",
    "id::date as n",
    "cast('3000' as tinyint) as n",
    "id::uuid as n",
    "cast(id as decimal(4, 2)) as n",
    "cast(id as boolean) as n",
]


@pytest.mark.parametrize("sql", CONVERSIONS)
@pytest.mark.parametrize(
    "load", ['mode = "overwrite"', 'mode = "append"', 'mode = "scd1"\nkey = ["id"]\norder_by = "n"']
)
@pytest.mark.parametrize("check", ["", '[[checks]]\nnot_null = ["n"]\nseverity = "quarantine"'], ids=["", "checked"])
def test_a_value_that_the_sql_can_not_convert_names_entity_file_and_two_ways_out(world, sql, load, check):
    world.csv_entity()
    world.land("a.csv", "id\nabc\n")
    world.run("bronze.t")
    world.entity(
        "silver.s",
        f"[source]\nentity = \"bronze.t\"\n[transform]\nsql = '''select id, {sql} from {{source}}'''\n[load]\n{load}\n{check}",
    )
    error = world.fails("silver.s")
    for part in ("silver.s", "entities/silver/s.toml", "try_cast", 'severity "quarantine"', "at its source"):
        assert part in error, part
    assert not list(world.folder("silver.s").glob("*.parquet"))


def test_a_failure_of_sql_in_a_file_of_its_own_names_that_file(world):
    world.csv_entity()
    world.land("a.csv", "id\nabc\n")
    world.run("bronze.t")
    world.write("entities/silver/s.sql", "select cast(id as integer) as n from {source}")
    world.entity(
        "silver.s", '[source]\nentity = "bronze.t"\n[transform]\nsql_file = "s.sql"\n[load]\nmode = "append"\n'
    )
    assert "It is declared in entities/silver/s.sql." in world.fails("silver.s")


def test_the_two_ways_out_that_are_advised_work(world):
    world.csv_entity()
    world.land("a.csv", "id\nabc\n7\n")
    world.run("bronze.t")
    world.entity(
        "silver.s",
        "[source]\nentity = \"bronze.t\"\n[transform]\nsql = 'select id, try_cast(id as integer) as n from {source}'\n"
        '[load]\nmode = "overwrite"\n[[checks]]\nnot_null = ["n"]\nseverity = "quarantine"\n',
    )
    row = world.run("silver.s")
    assert (row.status, row.rows_inserted, row.rows_quarantined) == (RunStatus.SUCCEEDED, 1, 1)


@pytest.mark.parametrize(
    ("sql", "advice"),
    [("strptime(id, '%Y') as n", "try_strptime"), ("9223372036854775807 + length(id) as n", "wider type")],
)
def test_a_text_that_is_no_time_and_a_number_that_overflows_say_what_to_do(world, sql, advice):
    world.csv_entity()
    world.land("a.csv", "id\nabc\n")
    world.run("bronze.t")
    world.entity(
        "silver.s",
        f"[source]\nentity = \"bronze.t\"\n[transform]\nsql = '''select {sql} from {{source}}'''\n[load]\nmode = \"overwrite\"",
    )
    error = world.fails("silver.s")
    assert advice in error
    assert "entities/silver/s.toml" in error


def test_finding_refuses_before_anything_is_read(world):
    from fdagent.engine.sources.files import find

    if sys.platform == "linux":
        world.land("a.csv", "n\n1\n")
        rename(world, b"a\xff.csv")
        with pytest.raises(BadSource):
            find(str(world.root / "landing/*"), world.root)


def test_a_bad_value_does_not_block_the_tables_of_a_new_project(tmp_path):
    write_scaffold(tmp_path / "p")
    world = World(tmp_path / "other")
    world.root = tmp_path / "p"
    world.land(
        "orders_2027-01-16.csv",
        "order_id,customer,status,amount,updated_at\n5,Elm,new,lots,2027-01-16T08:00:00Z\n6,Fir,new,1,yesterday\n"
        "x,Gum,new,1,2027-01-16T08:00:00Z\n7,Hop,new,1,2027-01-16T08:00:00Z\n",
    )
    for _ in range(2):
        world.run("bronze.orders")
        world.run("silver.orders")
    assert [number for (number,) in world.rows("silver.orders", "order_id")] == [1, 2, 4, 7]
    reasons = {reason for (reason,) in world.quarantine("silver.orders", "reason")}
    assert reasons == {"not_null(customer, amount, updated_at)", "key order_id is NULL"}
