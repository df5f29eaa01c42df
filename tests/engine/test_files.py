"""Which files are taken: each once, none by accident, none forgotten."""

import random

import pytest
from engine_kit import World
from hypothesis import given
from hypothesis import strategies as st

from fdagent.engine import marks as marks_module
from fdagent.engine.marks import FoundFile, Marks, Taken
from fdagent.engine.sources.files import choose, find, require_unchanged
from fdagent.errors import BadSource, SourceMissing
from models.run import RunStatus


def test_each_file_is_loaded_once_and_a_changed_one_again(tmp_path):
    world = World(tmp_path)
    world.csv_entity()
    world.land("a.csv", "n\n1\n")
    assert world.run("bronze.t").rows_inserted == 1
    assert world.run("bronze.t").status is RunStatus.NO_CHANGE
    world.land("b.csv", "n\n2\n")
    assert world.run("bronze.t").rows_inserted == 1
    world.land("a.csv", "n\n10\n")
    assert world.run("bronze.t").rows_inserted == 1
    assert world.rows("bronze.t", "n") == [("1",), ("10",), ("2",)]


def test_rows_say_where_they_came_from_and_when(tmp_path):
    world = World(tmp_path)
    world.csv_entity()
    world.land("a.csv", "n\n1\n")
    row = world.run("bronze.t")
    (file, loaded_at), *_ = world.rows("bronze.t", "_file", "_loaded_at")
    assert file == "landing/a.csv"
    assert loaded_at.isoformat(timespec="milliseconds").replace("+00:00", "Z") == row.started_at


def test_a_pattern_that_never_matched_is_a_missing_source(tmp_path):
    world = World(tmp_path)
    world.csv_entity()
    world.land("a.txt", "n\n1\n")
    assert "No file matches" in world.fails("bronze.t")
    assert not world.folder("bronze.t").exists()


def test_an_emptied_landing_folder_means_nothing_new(tmp_path):
    world = World(tmp_path)
    world.csv_entity()
    world.land("a.csv", "n\n1\n")
    world.run("bronze.t")
    (tmp_path / "landing/a.csv").unlink()
    assert world.run("bronze.t").status is RunStatus.NO_CHANGE


@pytest.mark.parametrize("take", ["all", "newest"])
def test_an_emptied_folder_never_empties_a_table(tmp_path, take):
    world = World(tmp_path)
    world.csv_entity(mode="overwrite", take=take)
    world.land("a.csv", "n\n1\n")
    world.run("bronze.t")
    (tmp_path / "landing/a.csv").unlink()
    assert "No file matches" in world.fails("bronze.t")
    assert world.rows("bronze.t", "n") == [("1",)]


def test_a_plain_path_has_to_be_there_always(tmp_path):
    world = World(tmp_path)
    world.entity("bronze.t", '[source]\nfiles = "{landing}/a.csv"\n[load]\nmode = "append"\n')
    world.land("a.csv", "n\n1\n")
    world.run("bronze.t")
    (tmp_path / "landing/a.csv").unlink()
    assert "No file matches" in world.fails("bronze.t")


def test_the_newest_file_replaces_the_table_once(tmp_path):
    world = World(tmp_path)
    world.csv_entity(mode="overwrite", take="newest")
    world.land("b.csv", "n\n1\n")
    world.land("a.csv", "n\n2\n")
    world.run("bronze.t")
    assert world.rows("bronze.t", "n") == [("2",)]
    assert world.run("bronze.t").status is RunStatus.NO_CHANGE


def test_a_header_only_file_is_taken_with_no_rows(tmp_path):
    world = World(tmp_path)
    world.csv_entity()
    world.land("a.csv", "n\n")
    row = world.run("bronze.t")
    assert (row.status, row.rows_inserted) == (RunStatus.NO_CHANGE, 0)
    assert world.rows("bronze.t") == []
    version = world.delta("bronze.t").version()
    assert world.run("bronze.t").version_after == version


def test_an_empty_file_fails_or_is_counted_as_taken(tmp_path):
    world = World(tmp_path)
    world.csv_entity()
    world.land("a.csv", "n\n1\n")
    world.run("bronze.t")
    world.land("b.csv", "")
    assert "b.csv is empty" in world.fails("bronze.t")
    world.csv_entity(csv='[source.csv]\non_empty = "ignore"')
    first = world.run("bronze.t")
    assert first.status is RunStatus.NO_CHANGE
    assert world.run("bronze.t").version_after == first.version_after


def test_a_file_that_changes_while_it_is_read_loads_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n\n1\n")
    files = find(str(path), tmp_path)
    require_unchanged(files)
    path.write_text("n\n1\n2\n")
    with pytest.raises(BadSource, match=r"a.csv changed while it was read"):
        require_unchanged(files)
    path.unlink()
    with pytest.raises(BadSource, match=r"a.csv changed"):
        require_unchanged(files)


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "a.csv").write_text("n\n")
    assert [file.name for file in find(str(tmp_path / "*.csv"), tmp_path)] == ["a.csv"]


def test_a_name_outside_the_project_is_absolute(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "a.csv").write_text("n\n")
    (found,) = find(str(tmp_path / "p/../*.csv"), tmp_path / "p")
    assert found.name == (tmp_path / "a.csv").as_posix()


def made(n: int, modified: int) -> FoundFile:
    from pathlib import Path

    return FoundFile(Path(f"/x/{n}"), str(n), 1, modified)


def test_the_list_of_taken_files_stays_short_and_forgets_none(monkeypatch):
    monkeypatch.setattr(marks_module, "KEEP", 10)
    files = [made(n, n // 3) for n in range(100)]
    random.Random(1).shuffle(files)
    taken = Taken()
    for n in range(0, 100, 7):
        taken = taken.plus(files[n : n + 7])
    assert len(taken.recent) == 10
    assert all(taken.has(file) for file in files)
    assert choose("new", "*", files, taken, wild=True) == []
    late = choose("new", "*", [*files, made(500, 1000)], taken, wild=True)
    assert [file.name for file in late] == ["500"]
    assert len(Marks("d", taken).to_text()) < 500


def test_a_file_that_arrives_very_late_is_named_a_problem_not_forgotten(monkeypatch):
    monkeypatch.setattr(marks_module, "KEEP", 2)
    files = [made(n, n) for n in range(10)]
    taken = Taken().plus(files)
    with pytest.raises(BadSource, match="arrived late"):
        choose("new", "*", [*files, made(99, 3)], taken, wild=True)


def test_a_missing_file_is_missing_even_below_the_rolled_up_time(monkeypatch):
    monkeypatch.setattr(marks_module, "KEEP", 2)
    taken = Taken().plus([made(n, n) for n in range(10)])
    assert choose("new", "*", [], taken, wild=True) == []
    with pytest.raises(SourceMissing):
        choose("new", "x.csv", [], taken, wild=False)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=40))
def test_marks_are_read_back_as_they_were_written(found):
    taken = Taken().plus([made(n, modified) for n, modified in found])
    marks = Marks("d", taken, "l")
    assert Marks.from_text(marks.to_text()) == marks
