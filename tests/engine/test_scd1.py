"""SCD1 on ugly batches, and against a model in plain Python."""

from pathlib import Path

import pytest
from engine_kit import World, add_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdagent.engine import scd1
from models.run import RunStatus

COLUMNS = """
[columns]
id = { type = "integer" }
v = { type = "integer" }
ts = { type = "integer" }
"""


def keyed(world: World, load: str = 'order_by = "ts"', name: str = "bronze.t") -> None:
    world.entity(
        name,
        f'[source]\nfiles = "{{landing}}/*.csv"\n[load]\nmode = "scd1"\nkey = ["id"]\n{load}\n{COLUMNS}',
    )


@pytest.fixture
def world(tmp_path) -> World:
    made = World(tmp_path)
    keyed(made)
    return made


def test_new_keys_are_inserted_known_ones_updated_and_the_rest_left(world):
    world.land("a.csv", "id,v,ts\n1,10,1\n2,20,1\n3,30,1\n")
    assert world.run("bronze.t").rows_inserted == 3
    world.land("b.csv", "id,v,ts\n2,21,2\n4,40,2\n")
    row = world.run("bronze.t")
    assert (row.rows_inserted, row.rows_updated) == (1, 1)
    assert world.rows("bronze.t") == [(1, 10, 1), (2, 21, 2), (3, 30, 1), (4, 40, 2)]


def test_the_newest_row_of_a_batch_wins_also_on_the_first_load(world):
    world.land("a.csv", "id,v,ts\n1,1,1\n1,3,3\n1,2,2\n")
    row = world.run("bronze.t")
    assert (row.rows_read, row.rows_inserted, row.rows_quarantined) == (3, 1, 0)
    assert world.rows("bronze.t") == [(1, 3, 3)]


def test_a_tie_between_different_rows_goes_to_quarantine_whole(world):
    world.land("a.csv", "id,v,ts\n1,1,1\n1,2,2\n1,3,2\n2,1,1\n")
    assert world.run("bronze.t").rows_quarantined == 3
    assert world.rows("bronze.t") == [(2, 1, 1)]
    assert {reason for _, _, reason in world.quarantine("bronze.t")} == {f"{scd1.TIE}: id"}


def test_a_tie_fails_the_load_where_that_is_declared(tmp_path):
    world = World(tmp_path)
    keyed(world, 'order_by = "ts"\non_duplicate_key = "fail"')
    world.land("a.csv", "id,v,ts\n1,2,2\n1,3,2\n")
    assert "different rows of one key (id = 1)" in world.fails("bronze.t")
    assert world.quarantine("bronze.t") == []


def test_equal_rows_count_once_even_from_two_files(world):
    world.land("a.csv", "id,v,ts\n1,1,1\n1,1,1\n")
    world.land("b.csv", "id,v,ts\n1,1,1\n")
    assert world.run("bronze.t").rows_quarantined == 0
    assert world.rows("bronze.t", "id", "_file") == [(1, "landing/b.csv")]


def test_without_an_order_different_rows_of_a_key_go_to_quarantine(tmp_path):
    world = World(tmp_path)
    keyed(world, 'on_duplicate_key = "quarantine"')
    world.land("a.csv", "id,v,ts\n1,1,1\n1,2,1\n2,1,1\n2,1,1\n")
    assert world.run("bronze.t").rows_quarantined == 2
    assert world.rows("bronze.t") == [(2, 1, 1)]


def test_a_null_key_is_never_inserted(world):
    world.land("a.csv", "id,v,ts\n,1,1\n,1,1\n1,1,1\n")
    assert world.run("bronze.t").rows_quarantined == 2
    assert world.rows("bronze.t") == [(1, 1, 1)]
    assert {reason for _, _, reason in world.quarantine("bronze.t")} == {"key id is NULL"}


def test_a_null_key_fails_the_load_where_that_is_declared(tmp_path):
    world = World(tmp_path)
    keyed(world, 'order_by = "ts"\non_null_key = "fail"')
    world.land("a.csv", "id,v,ts\n,1,1\n1,1,1\n")
    assert "1 rows have no key (id)" in world.fails("bronze.t")


def test_a_late_row_never_overwrites_a_newer_one(world):
    world.land("a.csv", "id,v,ts\n1,5,5\n")
    world.run("bronze.t")
    world.land("b.csv", "id,v,ts\n1,4,4\n")
    row = world.run("bronze.t")
    assert (row.status, row.rows_updated) == (RunStatus.NO_CHANGE, 0)
    assert world.rows("bronze.t") == [(1, 5, 5)]


def test_an_equally_old_row_that_comes_later_corrects(world):
    world.land("a.csv", "id,v,ts\n1,5,5\n")
    world.run("bronze.t")
    world.land("b.csv", "id,v,ts\n1,6,5\n")
    assert world.run("bronze.t").rows_updated == 1


def test_a_row_without_order_is_older_than_any_with_one(world):
    world.land("a.csv", "id,v,ts\n1,5,5\n2,5,\n")
    world.run("bronze.t")
    world.land("b.csv", "id,v,ts\n1,6,\n2,6,\n")
    assert world.run("bronze.t").rows_updated == 1
    assert world.rows("bronze.t") == [(1, 5, 5), (2, 6, None)]


@pytest.mark.parametrize(("before", "after"), [("", "5"), ("5", "")])
def test_null_to_a_value_and_back_is_one_change(world, before, after):
    world.land("a.csv", f"id,v,ts\n1,{before},1\n")
    world.run("bronze.t")
    world.land("b.csv", f"id,v,ts\n1,{after},1\n")
    assert world.run("bronze.t").rows_updated == 1
    world.land("c.csv", f"id,v,ts\n1,{after},1\n")
    assert world.run("bronze.t").rows_updated == 0
    assert world.rows("bronze.t") == [(1, int(after) if after else None, 1)]


@pytest.mark.parametrize(("one", "other"), [("a,,b", "a,b,"), ("x0,y,", "x,0y,"), ('"",x,', ",x,")])
def test_rows_that_look_alike_when_joined_are_different(tmp_path, one, other):
    world = World(tmp_path)
    world.csv_entity(mode="scd1", more='key = ["id"]\non_duplicate_key = "quarantine"')
    world.land("a.csv", f"id,p,q,r\n1,{one}\n")
    world.run("bronze.t")
    world.land("b.csv", f"id,p,q,r\n1,{other}\n")
    assert world.run("bronze.t").rows_updated == 1


def test_a_key_of_two_columns_is_compared_by_column(tmp_path):
    world = World(tmp_path)
    world.csv_entity(mode="scd1", more='key = ["p", "q"]\non_duplicate_key = "quarantine"')
    world.land("a.csv", "p,q,v\nx0,y,1\nx,0y,2\n")
    assert world.run("bronze.t").rows_inserted == 2
    world.land("b.csv", "p,q,v\nx,0y,3\n")
    world.run("bronze.t")
    assert world.rows("bronze.t") == [("x", "0y", "3"), ("x0", "y", "1")]


def test_the_same_rows_again_change_nothing_and_keep_when_they_were_loaded(world):
    world.land("a.csv", "id,v,ts\n1,1,1\n2,2,2\n")
    world.run("bronze.t")
    before = world.rows("bronze.t", "id", "_file", "_loaded_at")
    world.land("b.csv", "id,v,ts\n1,1,1\n2,2,2\n")
    row = world.run("bronze.t")
    assert (row.status, row.files_added, row.files_removed) == (RunStatus.NO_CHANGE, 0, 0)
    assert world.rows("bronze.t", "id", "_file", "_loaded_at") == before


def test_only_files_that_hold_a_changed_row_are_rewritten(world):
    for n in range(5):
        world.land(f"{n}.csv", "id,v,ts\n" + "".join(f"{n * 10 + i},0,1\n" for i in range(10)))
        world.run("bronze.t")
    assert len(world.delta("bronze.t").file_uris()) == 5
    world.land("x.csv", "id,v,ts\n25,1,2\n3,0,1\n")
    row = world.run("bronze.t")
    assert (row.files_removed, row.files_added, row.rows_updated) == (1, 1, 1)
    assert len(world.rows("bronze.t")) == 50


def test_files_without_statistics_are_never_passed_over(world):
    world.land("a.csv", "id,v,ts\n1,1,1\n")
    world.run("bronze.t")
    foreign = world.delta("bronze.t").to_pyarrow_table().set_column(0, "id", [[7]])
    add_file(world.folder("bronze.t"), foreign, stats="{}")
    world.land("b.csv", "id,v,ts\n7,8,9\n")
    assert world.run("bronze.t").rows_updated == 1
    assert world.rows("bronze.t") == [(1, 1, 1), (7, 8, 9)]


def test_several_rows_of_a_key_that_another_writer_left_become_one(world):
    from deltalake import write_deltalake

    world.land("a.csv", "id,v,ts\n1,1,1\n2,2,2\n")
    world.run("bronze.t")
    write_deltalake(world.folder("bronze.t"), world.delta("bronze.t").to_pyarrow_table(), mode="append")
    world.land("b.csv", "id,v,ts\n1,5,5\n")
    assert world.run("bronze.t").rows_updated == 1
    assert world.rows("bronze.t") == [(1, 5, 5), (2, 2, 2), (2, 2, 2)]


def test_it_finishes_within_a_small_memory_limit(world):
    rows = "".join(f"{n},{n},1\n" for n in range(400_000))
    world.land("a.csv", "id,v,ts\n" + rows)
    world.run("bronze.t", memory_limit="100MB")
    world.land("b.csv", "id,v,ts\n" + "".join(f"{n},{n + 1},2\n" for n in range(0, 400_000, 2)))
    row = world.run("bronze.t", memory_limit="100MB")
    assert (row.rows_updated, row.rows_inserted) == (200_000, 0)
    assert not list(Path(world.root).glob("fdagent-*"))


VALUES = st.one_of(st.none(), st.integers(0, 2))
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 4)), VALUES, VALUES), max_size=8)


def older(one, other) -> bool:
    """Is `one` older than `other`, NULL before everything?"""
    return (-1 if one is None else one) < (-1 if other is None else other)


def model(table: dict, batch: list[tuple]) -> int:
    """Bring a batch into the model; how many rows it refuses."""
    refused = sum(key is None for key, _, _ in batch)
    for key in {row[0] for row in batch} - {None}:
        rows = {row for row in batch if row[0] == key}
        newest = [row for row in rows if not any(older(row[2], other[2]) for other in rows)]
        if len(newest) > 1:
            refused += len(rows)
        elif key not in table or not older(newest[0][2], table[key][2]):
            table[key] = newest[0]
    return refused


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(ROWS, min_size=1, max_size=4))
def test_batches_of_late_repeated_and_null_rows_do_what_the_model_does(tmp_path_factory, batches):
    world = World(tmp_path_factory.mktemp("scd1"))
    keyed(world)
    table: dict = {}
    for number, batch in enumerate(batches):
        lines = [",".join("" if value is None else str(value) for value in row) for row in batch]
        world.land(f"{number}.csv", "\n".join(["id,v,ts", *lines, ""]))
        row = world.run("bronze.t")
        assert row.rows_quarantined == model(table, batch)
        assert world.rows("bronze.t") == sorted(table.values(), key=lambda found: tuple(map(str, found)))
        assert world.orphans("bronze.t") == set()
