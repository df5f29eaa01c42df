"""Unpacking the demo: complete, repeatable, and never over somebody's files."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fdagent.demo import unpack as module
from fdagent.demo.unpack import unpack
from fdagent.errors import DiskFull, HomeDenied, UsageError


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_unpack_makes_a_project_with_its_landing_files(tmp_path: Path) -> None:
    unpack(tmp_path / "new" / "demo")
    demo = tmp_path / "new" / "demo"
    assert (demo / "layers.toml").is_file()
    assert (demo / "environments.toml").is_file()
    assert (demo / "entities" / "gold" / "on_time_by_carrier_day.sql").is_file()
    assert len(list((demo / "landing" / "flights").glob("*.csv"))) == 21
    assert "CC0" in (demo / "landing" / "README.md").read_text(encoding="utf-8")


def test_unpacking_twice_changes_neither_a_byte_nor_a_modified_time(tmp_path: Path) -> None:
    unpack(tmp_path)
    first = state(tmp_path)
    unpack(tmp_path)
    assert state(tmp_path) == first


def test_two_folders_get_the_same_modified_times_for_their_landing_files(tmp_path: Path) -> None:
    unpack(tmp_path / "a")
    unpack(tmp_path / "b")
    times = [{name: kept[0] for name, kept in state(tmp_path / side / "landing").items()} for side in "ab"]
    for side in times:
        del side["README.md"]
    assert times[0] == times[1]


def test_a_landing_files_time_is_its_delivery_so_days_stay_in_order(tmp_path: Path) -> None:
    unpack(tmp_path)
    files = sorted((tmp_path / "landing" / "flights").glob("*.csv"))
    assert [file.stat().st_mtime for file in files] == sorted({file.stat().st_mtime for file in files})
    assert files[0].stat().st_mtime == datetime(2013, 1, 2, 6, tzinfo=UTC).timestamp()


def test_what_somebody_changed_stays_and_what_was_deleted_comes_back_as_it_was(tmp_path: Path) -> None:
    unpack(tmp_path)
    entity = tmp_path / "entities" / "gold" / "fleet_by_carrier.toml"
    day = tmp_path / "landing" / "flights" / "flights_2013-01-05.csv"
    entity.write_text("mine", encoding="utf-8")
    before = day.stat()
    day.unlink()
    unpack(tmp_path)
    assert entity.read_text(encoding="utf-8") == "mine"
    assert (day.stat().st_mtime_ns, day.stat().st_size) == (before.st_mtime_ns, before.st_size)


def test_a_folder_with_other_files_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "layers.toml").write_text("somebody's own project", encoding="utf-8")
    with pytest.raises(UsageError, match="not empty"):
        unpack(tmp_path)
    assert list(state(tmp_path)) == ["layers.toml"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("a file", encoding="utf-8")
    for target in (tmp_path / "demo", tmp_path / "demo" / "below"):
        with pytest.raises(UsageError, match="is a file, not a folder"):
            unpack(target)
    assert (tmp_path / "demo").read_text(encoding="utf-8") == "a file"


@pytest.mark.parametrize("moment", [0, 1, 7, 30])
def test_an_unpacking_that_broke_off_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    unpack(tmp_path / "whole")
    calls = iter(range(1000))
    copy = module.shutil.copyfile

    def breaks(source: Path, target: Path) -> object:
        if next(calls) == moment:
            target.write_bytes(source.read_bytes()[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        return copy(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(module.shutil, "copyfile", breaks)
        with pytest.raises(DiskFull):
            unpack(tmp_path / "broken")
    unpack(tmp_path / "broken")
    contents = [{name: kept[1] for name, kept in state(tmp_path / side).items()} for side in ("whole", "broken")]
    assert contents[0] == contents[1]


def test_no_rights_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(source: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))

    monkeypatch.setattr(module.shutil, "copyfile", denied)
    with pytest.raises(HomeDenied, match="no rights"):
        unpack(tmp_path)
