"""Folders that can't be listed, are gone, or lead in circles: an error, never an empty source."""

import errno
import glob
import inspect
import os
import sys
from pathlib import Path

import duckdb
import pytest
from engine_kit import World
from hypothesis import given, settings
from hypothesis import strategies as st

from fdagent.engine import duck
from fdagent.engine.sources import listing
from fdagent.engine.sources.files import find
from fdagent.errors import BadSource, Denied, SourceMissing, Unavailable
from models.run import RunStatus

EVERY_SHOP = '[source]\nfiles = "{landing}/s/*/x.csv"\ntake = "all"\n[load]\nmode = "overwrite"\n'


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def refuses(monkeypatch, call: str, folder: Path, number: int) -> None:
    """Let the system refuse one path: root may list every folder, and no disk here is broken."""
    real = getattr(os, call)

    def refused(path, *args, **kwargs):
        if Path(path) == folder:
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(listing.os, call, refused)


@pytest.mark.parametrize(
    ("call", "below", "number", "error", "says"),
    [
        ("scandir", "", errno.EACCES, Denied, "No rights to read"),
        ("scandir", "", errno.EIO, Unavailable, "input/output error"),
        ("stat", "a/x.csv", errno.EACCES, Denied, "No rights to read"),
        ("stat", "a/x.csv", errno.ESTALE, Unavailable, "stale file handle"),
    ],
)
def test_a_path_the_system_refuses_is_an_error_not_an_empty_source(
    tmp_path, monkeypatch, call, below, number, error, says
):
    (tmp_path / "s/a").mkdir(parents=True)
    (tmp_path / "s/a/x.csv").write_text("n\n1\n")
    refuses(monkeypatch, call, tmp_path / "s" / below, number)
    with pytest.raises(error, match=says) as caught:
        find(str(tmp_path / "s/*/x.csv"), tmp_path)
    assert caught.value.retryable is (error is Unavailable)


def test_rows_of_a_folder_that_may_not_be_read_are_not_deleted(world, tmp_path, monkeypatch):
    world.entity("bronze.t", EVERY_SHOP)
    world.land("s/a/x.csv", "n\n1\n")
    world.land("s/b/x.csv", "n\n2\n")
    world.run("bronze.t")
    refuses(monkeypatch, "stat", tmp_path / "landing/s/b/x.csv", errno.EACCES)
    assert "No rights to read" in world.fails("bronze.t")
    assert world.rows("bronze.t") == [("1",), ("2",)]


@pytest.mark.parametrize("take", ["new", "all", "newest"])
def test_a_landing_folder_that_was_moved_away_is_a_missing_source_not_an_empty_feed(world, tmp_path, take):
    world.csv_entity(mode="overwrite", take=take)
    world.land("a.csv", "n\n1\n")
    world.run("bronze.t")
    (tmp_path / "landing").rename(tmp_path / "elsewhere")
    said = world.fails("bronze.t")
    assert "The folder of the source files" in said
    assert f"is not there: {tmp_path / 'landing'}." in said
    assert world.rows("bronze.t") == [("1",)]


def test_a_landing_folder_that_never_was_is_named(world, tmp_path):
    world.csv_entity()
    assert f"is not there: {tmp_path / 'landing'}." in world.fails("bronze.t")


def test_a_folder_below_a_wildcard_may_come_and_go(world, tmp_path):
    world.entity("bronze.t", '[source]\nfiles = "{landing}/*/sub/x.csv"\n[load]\nmode = "append"\n')
    world.land("a/sub/x.csv", "n\n1\n")
    world.land("b/y.csv", "n\n2\n")
    assert world.run("bronze.t").rows_inserted == 1
    (tmp_path / "landing/a").rename(tmp_path / "archived")
    assert world.run("bronze.t").status is RunStatus.NO_CHANGE


@pytest.mark.parametrize("pattern", ["*.csv", "l.csv", "**/*.csv", "l.csv/*"])
def test_a_link_that_leads_to_itself_is_a_sentence(world, tmp_path, pattern):
    world.entity("bronze.t", f'[source]\nfiles = "{{landing}}/{pattern}"\n[load]\nmode = "append"\n')
    world.land("a.csv", "n\n1\n")
    (tmp_path / "landing/l.csv").symlink_to(tmp_path / "landing/l.csv")
    assert f"{tmp_path / 'landing/l.csv'} is a link that leads back to itself." in world.fails("bronze.t")


@pytest.mark.parametrize("pattern", ["*.csv", "*/x.csv", "**/x.csv", "a/x.csv"])
def test_a_link_to_what_is_not_there_is_an_error_not_an_empty_source(tmp_path, pattern):
    (tmp_path / "real").mkdir()
    for name in ("a", "b.csv"):
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(SourceMissing, match=r"is a link to something that is not there"):
        find(str(tmp_path / pattern), tmp_path)


def test_a_link_back_to_a_folder_above_gives_no_file_twice(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/x.csv").write_text("n\n")
    (tmp_path / "a/b/up").symlink_to(tmp_path / "a")
    (tmp_path / "a/b/here").symlink_to(tmp_path / "a/b")
    assert [file.name for file in find(str(tmp_path / "a/**/*.csv"), tmp_path)] == ["a/b/x.csv"]


def test_two_wildcards_for_folders_give_no_file_twice(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/x.csv").write_text("n\n")
    assert [file.name for file in find(str(tmp_path / "**/**/*.csv"), tmp_path)] == ["a/b/x.csv"]


def test_folders_may_be_nested_deeper_than_python_calls(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 200)
    deep.mkdir(parents=True)
    (deep / "x.csv").write_text("n\n")
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        found = find(str(tmp_path / "**/*.csv"), tmp_path)
    finally:
        sys.setrecursionlimit(usual)
    assert [file.path for file in found] == [deep / "x.csv"]


parts = st.sampled_from(["a", "b", "*", "?", "**", "[ab]", "[!a]", "a*", ".h", ".*", "[[]x", "x.csv", "*.csv"])


@given(st.lists(parts, min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_a_pattern_means_what_it_means_to_pythons_glob(tree, names):
    pattern = str(tree.joinpath(*names))
    # For glob, `x.csv/**` is the file itself too; here `**` stands for folders only.
    asked = pattern + "/*" if names[-1] == "**" else pattern
    expected = {Path(name) for name in glob.glob(asked, recursive=True) if Path(name).is_file()}  # noqa: PTH207
    try:
        found = find(pattern, tree)
    except SourceMissing:
        found = []
    assert {file.path for file in found} == expected


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in ("a/x.csv", "a/b/x.csv", "a/b/a/y", "b/x.csv", "x.csv", ".h/x.csv", "a/.x.csv", "[x/x.csv", "b/a/.h/b"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("n\n")
    (root / "a/to").symlink_to(root / "b")
    return root


def test_a_disk_that_fails_under_duckdb_is_a_reason_to_try_again():
    with pytest.raises(Unavailable, match=r"Input/output error") as caught, duck.limits():
        raise duckdb.IOException('IO Error: Could not read from file "a.csv": Input/output error')
    assert caught.value.retryable


def test_a_file_that_can_be_listed_and_not_read_is_tried_again(world, monkeypatch):
    world.csv_entity()
    world.land("a.csv", "n\n1\n")
    real = Path.open

    def broken(path, *args, **kwargs):
        if path.name == "a.csv":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", broken)
    outcome = world.outcome("bronze.t")
    assert "landing/a.csv can't be read (input/output error)" in outcome.row.error
    assert outcome.retryable


def test_a_link_back_is_refused_by_kind(tmp_path):
    (tmp_path / "l").symlink_to(tmp_path / "l")
    with pytest.raises(BadSource):
        find(str(tmp_path / "*"), tmp_path)
