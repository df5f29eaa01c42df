"""`fdagent init`'s project: whole or not there, loads, and its SQL computes what its README says."""

import csv
import errno
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from fdagent.errors import DiskFull, UsageError
from fdagent.project import scaffold
from fdagent.project.graph import order
from fdagent.project.load import load_project
from fdagent.project.places import Places
from fdagent.project.scaffold import FILES, write_scaffold
from fdagent.project.sql import fill


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder_is_made_and_loads(tmp_path: Path) -> None:
    write_scaffold(tmp_path / "new" / "project")
    assert tree(tmp_path / "new" / "project") == FILES
    loaded = load_project(tmp_path / "new" / "project")
    assert order(loaded) == ("bronze.orders", "silver.orders", "gold.revenue_by_customer")
    assert [check.severity for check in loaded.entities["silver.orders"].checks] == ["quarantine", "warn"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["project"]


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path: Path) -> None:
    inode = tmp_path.stat().st_ino
    write_scaffold(tmp_path)
    assert tree(tmp_path) == FILES
    assert tmp_path.stat().st_ino == inode


def test_a_new_git_repository_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_scaffold(tmp_path)
    assert load_project(tmp_path).entities


def test_the_current_folder_can_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_scaffold(Path())
    assert tree(tmp_path) == FILES


def test_a_folder_that_holds_anything_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="is not empty; nothing was written"):
        write_scaffold(tmp_path)
    assert tree(tmp_path) == {"mine": "x"}


def test_a_second_init_changes_nothing(tmp_path: Path) -> None:
    write_scaffold(tmp_path / "p")
    (tmp_path / "p" / "layers.toml").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        write_scaffold(tmp_path / "p")
    assert (tmp_path / "p" / "layers.toml").read_text() == "mine"


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="can't be written to"):
            write_scaffold(folder)
    assert tree(tmp_path) == {"file": "x"}


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("last", range(len(FILES)))
def test_a_disk_that_is_full_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, last: int
) -> None:
    folder = tmp_path / "p"
    if there:
        folder.mkdir()
    written = []

    def write_text(path: Path, text: str, **how: str) -> None:
        if len(written) == last:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        path.write_bytes(text.encode())

    monkeypatch.setattr(scaffold.Path, "write_text", write_text)
    with pytest.raises(DiskFull, match="nothing was written"):
        write_scaffold(folder)
    assert [path.name for path in tmp_path.rglob("*")] == (["p"] if there else [])


@pytest.mark.parametrize("last", range(6))
def test_parts_moved_into_an_empty_folder_are_taken_away_again_when_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    moved = []
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        assert target.name != "layers.toml" or len(moved) == 5
        if len(moved) == last:
            raise OSError(errno.EACCES, "Permission denied")
        moved.append(target)
        return real(path, target)

    monkeypatch.setattr(scaffold.Path, "rename", rename)
    with pytest.raises(UsageError, match=r"can't be written to .*: permission denied"):
        write_scaffold(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_its_sql_computes_what_its_readme_says(tmp_path: Path) -> None:
    write_scaffold(tmp_path / "p")
    loaded = load_project(tmp_path / "p")
    pattern = Places(loaded, loaded.environments["dev"]).source_files(loaded.entities["bronze.orders"])
    with next(Path("/").glob(pattern.removeprefix("/"))).open(newline="") as stream:
        header, *rows = list(csv.reader(stream))
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute(f"create table bronze ({', '.join(f'{name} varchar' for name in header)})")
    connection.executemany(
        f"insert into bronze values ({', '.join('?' * len(header))})", [[v or None for v in row] for row in rows]
    )
    connection.execute(f"create table silver as {fill(loaded.entities['silver.orders'].sql, {'source': 'bronze'})}")
    connection.execute("delete from silver where amount is null or customer is null")
    connection.execute(
        "delete from silver where (order_id, updated_at) not in (select order_id, max(updated_at) from silver group by order_id)"
    )
    gold = fill(loaded.entities["gold.revenue_by_customer"].sql, {"orders": "silver"})
    assert sorted(connection.execute(gold).fetchall()) == [
        ("Alder", 2, Decimal("162.75")),
        ("Birch", 1, Decimal("80.00")),
    ]
