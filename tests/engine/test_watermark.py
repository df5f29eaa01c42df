"""Reading what a table gained: nothing lost, nothing twice."""

import pytest
from engine_kit import World, add_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.run import RunStatus


@pytest.fixture
def world(tmp_path) -> World:
    made = World(tmp_path)
    made.csv_entity(more='[columns]\nw = { type = "integer" }\nt = { type = "timestamp" }')
    return made


def silver(world: World, *, watermark: str = "w", mode: str = "append", lag: str = "", key: str = "") -> None:
    world.entity(
        "silver.s",
        f'[source]\nentity = "bronze.t"\nwatermark = "{watermark}"\n{lag}\n[load]\nmode = "{mode}"\n{key}\n',
    )


def deliver(world: World, *rows: tuple) -> None:
    world.land(f"{world.modified}.csv", "id,w,t\n" + "".join(f"{i},{w},{t}\n" for i, w, t in rows))
    world.run("bronze.t")


def day(n: int) -> str:
    return f"2027-01-{n:02d}"


def test_only_rows_after_the_mark_are_read(world):
    silver(world)
    deliver(world, ("a", 1, day(1)), ("b", 2, day(2)))
    assert world.run("silver.s").rows_read == 2
    deliver(world, ("c", 3, day(3)))
    assert world.run("silver.s").rows_read == 1
    assert world.rows("silver.s", "id") == [("a",), ("b",), ("c",)]


def test_rows_equal_to_the_mark_are_read_once_each(world):
    silver(world)
    deliver(world, ("a", 5, day(1)))
    world.run("silver.s")
    deliver(world, ("b", 5, day(1)), ("c", 5, day(1)))
    assert world.run("silver.s").rows_read == 2
    deliver(world, ("b", 5, day(1)))
    assert world.run("silver.s").rows_read == 1, "an equal row that was delivered again is another row"
    assert world.rows("silver.s", "id") == [("a",), ("b",), ("b",), ("c",)]


def test_a_row_that_arrives_late_is_read_within_the_lag_only(world):
    silver(world, watermark="t", lag='lag = "1d"')
    deliver(world, ("a", 1, day(10)))
    world.run("silver.s")
    deliver(world, ("late", 2, day(9)), ("too late", 3, day(8)), ("next", 4, day(11)))
    assert world.run("silver.s").rows_read == 2
    assert world.run("silver.s").rows_read == 0
    assert world.rows("silver.s", "id") == [("a",), ("late",), ("next",)]


def test_a_row_without_watermark_is_read_once(world):
    silver(world)
    deliver(world, ("a", 1, day(1)), ("n", "", day(1)))
    world.run("silver.s")
    deliver(world, ("b", 2, day(1)), ("m", "", day(1)))
    assert world.run("silver.s").rows_read == 2
    assert world.rows("silver.s", "id") == [("a",), ("b",), ("m",), ("n",)]


@pytest.mark.parametrize("lag", ["", 'lag = "2d"'])
def test_a_compaction_of_the_source_brings_no_row_twice(world, lag):
    silver(world, watermark="t", lag=lag)
    for n in range(3):
        deliver(world, (f"{n}", n, day(n + 1)), (f"{n}", n, day(n + 1)))
    world.run("silver.s")
    deliver(world, ("new", 9, day(3)), ("2", 2, day(3)))
    world.delta("bronze.t").optimize.compact()
    assert world.run("silver.s").rows_read == 2
    world.delta("bronze.t").optimize.compact()
    assert world.run("silver.s").rows_read == 0
    assert world.rows("silver.s", "id") == [("0",), ("0",), ("1",), ("1",), ("2",), ("2",), ("2",), ("new",)]


def test_a_rebuilt_source_brings_its_rows_at_the_mark_no_second_time(world):
    silver(world)
    deliver(world, ("a", 1, day(1)), ("b", 2, day(2)))
    world.run("silver.s")
    world.delta("bronze.t").delete("id = 'a'")
    world.run("bronze.t", backfill=True)
    assert world.run("silver.s").rows_read == 0


def test_rows_a_merge_rewrote_are_read_only_if_their_watermark_moved(world):
    world.csv_entity(
        mode="scd1",
        more='key = ["id"]\norder_by = "w"\n[columns]\nw = { type = "integer" }\nt = { type = "timestamp" }',
    )
    silver(world, mode="scd1", key='key = ["id"]\norder_by = "w"')
    deliver(world, *((f"{n}", n, day(1)) for n in range(5)))
    world.run("silver.s")
    deliver(world, ("1", 7, day(1)), ("x", 8, day(1)))
    row = world.run("silver.s")
    assert (row.rows_read, row.rows_updated, row.rows_inserted) == (2, 1, 1)
    assert world.rows("silver.s") == world.rows("bronze.t")


def test_without_the_old_version_the_watermark_alone_never_brings_a_row_twice(world):
    silver(world)
    deliver(world, ("a", 1, day(1)), ("b", 2, day(2)))
    world.run("silver.s")
    deliver(world, ("c", 2, day(2)), ("d", 3, day(3)))
    table = world.delta("bronze.t")
    table.create_checkpoint()
    for version in range(table.version()):
        (world.folder("bronze.t") / f"_delta_log/{version:020d}.json").unlink()
    row = world.run("silver.s")
    assert world.rows("silver.s", "id") == [("a",), ("b",), ("d",)]
    assert "by its watermark alone" in row.checks[0].check


def test_without_the_old_files_a_keyed_load_reads_from_the_mark_on(world):
    silver(world, mode="scd1", key='key = ["id"]\norder_by = "w"')
    deliver(world, ("a", 1, day(1)), ("b", 2, day(2)))
    world.run("silver.s")
    gone = world.delta("bronze.t").file_uris()[0]
    deliver(world, ("c", 2, day(2)))
    world.delta("bronze.t").optimize.compact()
    from pathlib import Path

    Path(gone.removeprefix("file://")).unlink()
    row = world.run("silver.s")
    assert (row.rows_read, row.rows_inserted) == (2, 1)


def test_a_table_made_anew_is_read_by_its_watermark(world):
    import shutil

    silver(world)
    deliver(world, ("a", 1, day(1)), ("b", 2, day(2)))
    world.run("silver.s")
    shutil.rmtree(world.folder("bronze.t"))
    deliver(world, ("c", 3, day(3)))
    world.run("silver.s")
    assert world.rows("silver.s", "id") == [("a",), ("b",), ("c",)]


def test_text_may_be_a_watermark_but_has_no_lag(world):
    world.csv_entity()
    silver(world, watermark="t")
    deliver(world, ("a", 1, day(9)), ("b", 2, day(10)))
    world.run("silver.s")
    deliver(world, ("c", 3, day(11)))
    assert world.run("silver.s").rows_read == 1
    silver(world, watermark="t", lag='lag = "1d"')
    deliver(world, ("d", 4, day(12)))
    assert "has no lag" in world.fails("silver.s")


def test_a_watermark_that_is_no_column_is_named_with_those_there_are(world):
    silver(world, watermark="nope")
    deliver(world, ("a", 1, day(1)))
    assert "no column `nope` to be its watermark; it has: id, w, t, _file, _loaded_at" in world.fails("silver.s")


def test_a_source_that_is_not_there_yet_is_named(world):
    silver(world)
    outcome = world.outcome("silver.s")
    assert "The table of bronze.t is not there yet" in outcome.row.error
    assert outcome.row.category == "Source missing"


def test_rows_without_marks_are_never_loaded_again_by_chance(world):
    silver(world)
    deliver(world, ("a", 1, day(1)))
    world.run("silver.s")
    table = world.delta("silver.s")
    table.create_checkpoint()
    add_file(world.folder("silver.s"), table.to_pyarrow_table(), stats="{}")
    world.delta("silver.s").create_checkpoint()
    for version in range(3):
        path = world.folder("silver.s") / f"_delta_log/{version:020d}.json"
        if version < world.delta("silver.s").version():
            path.unlink(missing_ok=True)
    assert "Rebuild it from all its source rows" in world.fails("silver.s")
    world.run("silver.s", backfill=True)
    assert world.rows("silver.s", "id") == [("a",)]


def test_marks_that_the_log_lost_are_found_in_the_run_log(world):
    from fdagent.engine import runlog

    silver(world)
    deliver(world, ("a", 1, day(1)))
    row = world.run("silver.s")
    runlog.append_rows(world.places, "batch", [row], clock=world.clock, ids=world.ids)
    add_file(world.folder("silver.s"), world.delta("silver.s").to_pyarrow_table(), stats="{}")
    table = world.delta("silver.s")
    table.create_checkpoint()
    for version in range(table.version()):
        (world.folder("silver.s") / f"_delta_log/{version:020d}.json").unlink()
    deliver(world, ("b", 2, day(2)))
    assert world.run("silver.s").rows_inserted == 1


def test_a_failed_load_moves_no_mark(world):
    silver(world, key='[[checks]]\naccepted = { id = ["a"] }\nseverity = "fail"')
    deliver(world, ("a", 1, day(1)), ("x", 2, day(2)))
    world.fails("silver.s")
    silver(world)
    assert world.run("silver.s").rows_read == 2


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rounds=st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 3), st.one_of(st.just(""), st.integers(0, 2))), max_size=4),
            st.booleans(),
        ),
        min_size=2,
        max_size=4,
    )
)
def test_growing_watermarks_with_equal_ones_and_compactions_load_every_row_once(tmp_path_factory, rounds):
    world = World(tmp_path_factory.mktemp("watermark"))
    world.csv_entity(more='[columns]\nw = { type = "integer" }\nt = { type = "timestamp" }')
    silver(world)
    deliver(world, ("first", 0, day(1)))
    world.run("silver.s")
    mark = 0
    for rows, compact in rounds:
        # At or after the mark, never before it: what a source without lag promises.
        made = [(i, mark + step if step != "" else "", day(1)) for i, step in rows]
        deliver(world, *made)
        mark = max([mark, *(w for _, w, _ in made if w != "")])
        if compact:
            world.delta("bronze.t").optimize.compact()
        world.run("silver.s")
        assert world.rows("silver.s", "id", "w") == world.rows("bronze.t", "id", "w")
    assert world.run("silver.s").status is RunStatus.NO_CHANGE
