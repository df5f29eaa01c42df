"""DuckDB is started only for those who run SQL, apart for each, and leaves nothing behind."""

import duckdb
import pytest
from engine_kit import World

from fdagent.engine.duck import Duck
from fdagent.errors import RunError
from models.run import RunStatus


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.csv_entity()
    return made


def test_a_table_with_nothing_new_starts_no_database(world, monkeypatch):
    world.land("a.csv", "id\n1\n")
    world.run("bronze.t")

    def started(**_):
        raise AssertionError("a database was started")

    with monkeypatch.context() as patched:
        patched.setattr(duckdb, "connect", started)
        assert world.run("bronze.t").status is RunStatus.NO_CHANGE
    world.land("b.csv", "id\n2\n")
    assert world.run("bronze.t").rows_inserted == 1


def test_a_database_that_can_not_be_started_is_a_sentence_and_leaves_no_folder(tmp_path, world):
    with Duck(memory_limit="some", spill=tmp_path / "spill") as duck:
        with pytest.raises(RunError, match="could not be started with memory_limit 'some'"):
            duck.rows("SELECT 1")
        with pytest.raises(RunError, match="memory_limit 'some'"):
            duck.rows("SELECT 1")
    assert list((tmp_path / "spill").iterdir()) == []
    world.land("a.csv", "id\n1\n")
    assert "memory_limit 'some'" in world.fails("bronze.t", memory_limit="some")


def test_nothing_of_one_is_seen_by_the_next_which_lives_on_after_the_first_ran_out_of_memory(tmp_path):
    with Duck(memory_limit="40MB", spill=tmp_path / "spill") as first, Duck(spill=tmp_path / "spill") as second:
        first.rows("CREATE TEMP TABLE t AS SELECT 1 AS x")
        first.rows("CREATE TEMP MACRO m() AS 1")
        first.rows("SET VARIABLE v = 1")
        with pytest.raises(RunError, match="more memory"):
            first.rows("SELECT list(repeat(i::VARCHAR, 100)) FROM range(3000000) r(i)")
        assert second.number("SELECT count(*) FROM duckdb_tables()") == 0
        assert second.number("SELECT count(*) FROM duckdb_functions() WHERE function_name = 'm'") == 0
        assert second.row("SELECT getvariable('v'), current_setting('temp_directory')") == (None, str(second.spill))
        assert second.row("SELECT current_setting('memory_limit')") != first.row(
            "SELECT current_setting('memory_limit')"
        )
        assert second.spill != first.spill
    assert list((tmp_path / "spill").iterdir()) == []


def test_one_that_ran_no_sql_leaves_no_folder(tmp_path):
    with Duck(spill=tmp_path / "spill") as duck:
        assert duck.spill.is_dir()
    assert list((tmp_path / "spill").iterdir()) == []
