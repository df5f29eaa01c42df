"""Columns that come and go: what becomes of a file is the same, whichever files are loaded with it."""

import pytest
from engine_kit import World

WITHOUT, WITH = "id\n1\n", "id,zz\n2,x\n"
STAR, NAMED, OTHER = "select * from {source}", "select id, zz from {source}", "select id from {source}"


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def declared(world: World, sql: str = "", take: str = "new", mode: str = "append") -> None:
    transform = f"\n[transform]\nsql = '{sql}'" if sql else ""
    world.entity(
        "bronze.t", f'[source]\nfiles = "{{landing}}/*.csv"\ntake = "{take}"{transform}\n[load]\nmode = "{mode}"\n'
    )


def deliver(world: World, bodies: list[str], *, together: bool) -> str:
    """Deliver files, oldest first, and run after each of them or after the last; what the last run says."""
    said = ""
    for n, body in enumerate(bodies):
        world.land(f"{world.modified}.csv", body)
        if not together or n == len(bodies) - 1:
            said = world.outcome("bronze.t").row.error
    return said


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("sql", ["", STAR, NAMED])
def test_a_file_without_a_column_that_was_loaded_before_is_refused_alone_and_with_others(world, sql, together):
    declared(world, sql)
    deliver(world, [WITH], together=together)
    world.land("lacks.csv", WITHOUT)
    if together:
        world.land("has.csv", WITH)
    said = world.outcome("bronze.t").row.error
    assert "zz" in said
    assert sql or "landing/lacks.csv has no column 'zz', which an older file has or had" in said
    assert world.rows("bronze.t") == [("2", "x")]


@pytest.mark.parametrize("sql", ["", STAR, NAMED])
def test_a_file_without_a_column_of_an_older_file_is_refused_in_one_batch(world, sql):
    declared(world, sql)
    said = deliver(world, [WITH, WITHOUT], together=True)
    assert "has no column 'zz', which an older file has or had" in said
    assert not world.folder("bronze.t").exists()


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("sql", ["", STAR])
def test_a_column_that_comes_later_is_null_before(world, sql, together):
    declared(world, sql)
    assert deliver(world, [WITHOUT, WITH], together=together) == ""
    assert world.rows("bronze.t") == [("1", None), ("2", "x")]


@pytest.mark.parametrize("together", [False, True])
def test_a_column_that_the_sql_makes_no_use_of_may_come_and_go(world, together):
    declared(world, OTHER)
    assert deliver(world, [WITH, WITHOUT, WITH], together=together) == ""
    assert world.rows("bronze.t") == [("1",), ("2",), ("2",)]


def test_files_that_are_all_read_each_time_are_judged_among_themselves(world):
    declared(world, take="all", mode="overwrite")
    assert deliver(world, [WITHOUT, WITH], together=False) == ""
    assert world.outcome("bronze.t").row.error == ""
    assert world.rows("bronze.t") == [("1", None), ("2", "x")]


def test_a_backfill_judges_files_as_if_none_had_been_loaded(world):
    declared(world)
    deliver(world, [WITHOUT, WITH], together=False)
    assert world.run("bronze.t", backfill=True).error == ""
    assert "zz" in deliver(world, [WITHOUT], together=False)


def test_a_run_that_died_after_it_added_a_column_loads_the_same_files_when_it_is_run_again(world, monkeypatch):
    class Killed(BaseException):
        pass

    def killed():
        raise Killed

    declared(world)
    deliver(world, ["id\n0\n"], together=True)
    world.land("1.csv", WITHOUT)
    world.land("2.csv", WITH)
    with pytest.raises(Killed):
        world.outcome("bronze.t", "key", still_mine=killed)
    assert [field.name for field in world.delta("bronze.t").schema().fields] == ["id", "_file", "_loaded_at", "zz"]
    assert world.outcome("bronze.t", "key").row.error == ""
    assert world.rows("bronze.t", "id", "zz") == [("0", None), ("1", None), ("2", "x")]


@pytest.mark.parametrize("together", [False, True])
def test_a_column_written_in_another_letter_case_is_refused_alone_and_with_others(world, together):
    declared(world)
    said = deliver(world, [WITH, "id,ZZ\n3,y\n"], together=together)
    assert "the columns `zz` and `ZZ` of its own and older files differ only in letter case" in said
