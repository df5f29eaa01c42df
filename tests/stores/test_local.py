"""The local folder's own corners: odd files, full disks, missing folders, what a listing may remember."""

import errno
import os
import sys
import time
from pathlib import Path

import pytest
from storefakes import CountingIds, HandClock

from fdagent.errors import Conflict, Denied, StoreError, Unavailable, Unknown
from fdagent.ports import Absent, Match
from fdagent.stores import folders, local, recordfile
from fdagent.stores.filelock import FileLock, PosixFiles
from fdagent.stores.folders import RESCAN_SECONDS, SETTLED_SECONDS
from fdagent.stores.local import LocalStore
from fdagent.system import SystemClock, SystemIds

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and rights as POSIX has them")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "deep" / "_control"


@pytest.fixture
def store(root):
    return LocalStore(root, clock=SystemClock(), ids=SystemIds())


def test_reading_and_listing_make_nothing(store, root):
    assert store.read("status/a.json") is None
    assert list(store.list("")) == []
    with pytest.raises(Conflict):
        store.delete("status/a.json", Match("x"))
    assert not (root / "status").exists()


def test_a_store_whose_folders_were_removed_under_it_makes_them_anew(store, root):
    store.write("status/a.json", b"1", Absent())
    for folder in sorted(root.rglob("*"), reverse=True):
        folder.rmdir() if folder.is_dir() else folder.unlink()
    with pytest.raises(Unavailable):
        store.write("status/a.json", b"1", Absent())
    store.write("status/a.json", b"1", Absent())
    assert store.read("status/a.json").body == b"1"


def test_a_folder_that_holds_the_store_is_missed_and_never_made_anew(tmp_path):
    project, away = tmp_path / "project", tmp_path / "away"
    project.mkdir()
    store = LocalStore(project / ".local/_control", clock=SystemClock(), ids=SystemIds(), within=project)
    assert store.read("status/a.json") is None
    etag = store.write("status/a.json", b"1", Absent())
    project.rename(away)
    for act in (
        lambda: store.read("status/a.json"),
        lambda: store.list("status/"),
        lambda: store.delete("status/a.json", Match(etag)),
        lambda: store.write("status/a.json", b"2", Match(etag)),
        lambda: store.write("requests/b.json", b"2", Absent()),
        lambda: store.write("requests/b.json", b"2", Absent()),
    ):
        with pytest.raises(Unavailable):
            act()
    with pytest.raises(Unavailable, match="project is not there"):
        store.read("status/a.json")
    assert not project.exists()
    away.rename(project)
    assert store.write("status/a.json", b"2", Match(etag))


@pytest.mark.parametrize("kind", ["link", "link to nowhere", "pipe", "folder", "socket"])
def test_what_is_not_a_file_is_never_read_waited_for_or_written_over_and_hides_no_other(store, root, tmp_path, kind):
    (tmp_path / "secret").write_text("outside")
    store.write("requests/b.json", b"1", Absent())
    odd = root / "requests/a.json"
    if kind.startswith("link"):
        odd.symlink_to(tmp_path / ("secret" if kind == "link" else "nowhere"))
    elif kind == "pipe":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    else:
        os.mknod(odd, 0o600 | 0o140000)
    with pytest.raises((Denied, Unavailable)):
        store.read("requests/a.json")
    with pytest.raises((Denied, Unavailable)):
        store.write("requests/a.json", b"2", Absent())
    assert [entry.key for entry in store.list("requests/")] == ["requests/b.json"]
    assert (tmp_path / "secret").read_text() == "outside"


@pytest.mark.parametrize("name", ["a b.json", ".hidden", "ümlaut.json", "con.json", "x%20y.json", b"\xff.json"])
def test_a_file_with_a_name_that_no_record_may_have_is_listed_so_that_somebody_is_told(store, root, name):
    store.write("requests/b.json", b"1", Absent())
    (root / "requests" / os.fsdecode(name)).write_bytes(b"x")
    (odd,) = [entry for entry in store.list("requests/") if entry.key != "requests/b.json"]
    assert odd.size == 1
    odd.key.encode("utf-8")
    with pytest.raises(StoreError):
        store.read(odd.key)


def test_a_file_that_is_still_being_written_shows_each_time_it_grows(store, root):
    """Case 23: the reader waits for it, so a listing must not remember it as it was."""
    (root / "requests").mkdir(parents=True)
    etags = set()
    with (root / "requests/r.json").open("wb", buffering=0) as file:
        for part in (b'{"ent', b'ities"', b": []}"):
            file.write(part)
            (entry,) = store.list("requests/")
            assert store.read("requests/r.json").etag == entry.etag
            etags.add(entry.etag)
    assert len(etags) == 3


def test_a_record_that_is_too_large_is_read_up_to_one_byte_more_than_allowed(store, root):
    (root / "requests").mkdir(parents=True)
    with (root / "requests/huge.json").open("wb") as file:
        file.truncate(3 * 1024**3)
    blob = store.read("requests/huge.json")
    assert len(blob.body) == 256 * 1024 + 1
    (entry,) = store.list("requests/")
    assert (entry.size, entry.etag) == (3 * 1024**3, blob.etag)


def test_a_restored_file_is_another_version_even_with_the_same_bytes(store, root):
    etag = store.write("status/a.json", b'{"op": "1"}', Absent())
    os.utime(root / "status/a.json", (time.time() - 100,) * 2)
    with pytest.raises(Conflict):
        store.write("status/a.json", b'{"op": "2"}', Match(etag))


def test_a_full_disk_leaves_the_old_record_whole_and_nothing_aside(store, root, monkeypatch):
    etag = store.write("status/a.json", b"old", Absent())

    def full(path, body):
        Path(path).write_bytes(body[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local, "put_aside", full)
    with pytest.raises(Unavailable, match="the drive is full"):
        store.write("status/a.json", b"new", Match(etag))
    assert store.read("status/a.json").body == b"old"
    assert list((root / ".tmp").iterdir()) == []


def test_a_short_write_is_gone_on_with(store, monkeypatch):
    real = os.write
    monkeypatch.setattr(recordfile.os, "write", lambda handle, data: real(handle, bytes(data)[:7]))
    store.write("status/a.json", b"x" * 1000, Absent())
    assert store.read("status/a.json").body == b"x" * 1000


class Failing(PosixFiles):
    """Fails one call with one error, while `on` is set."""

    def __init__(self, call, number):
        self.on, self.call, self.number = True, call, number

    def _may(self, call):
        if self.on and call == self.call:
            raise OSError(self.number, os.strerror(self.number))

    def replace(self, source, target):
        self._may("replace")
        super().replace(source, target)

    def open(self, path):
        self._may("open")
        return super().open(path)

    def sync_folder(self, path):
        self._may("sync")
        super().sync_folder(path)


def test_a_change_whose_folder_could_not_be_synced_is_found_there_only_once_it_lasts(root, store):
    """Else the loop that reads an unknown outcome back would acknowledge what a loss of power still takes."""
    files = Failing("sync", errno.EIO)
    failing = LocalStore(root, clock=SystemClock(), ids=SystemIds(), files=files)
    store.write("status/other.json", b"there", Absent())
    with pytest.raises(Unknown):
        failing.write("status/a.json", b"mine", Absent())
    with pytest.raises(Unavailable, match=r"status/a\.json"):
        failing.read("status/a.json")
    files.on = False
    assert failing.read("status/a.json").body == b"mine"


def descriptors():
    return {entry.name for entry in Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd").iterdir()}


def test_no_descriptor_outlives_a_change_whether_it_lands_is_refused_or_fails(root, store):
    etag = store.write("status/a.json", b"1", Absent())
    before = descriptors()
    etag = store.write("status/a.json", b"2", Match(etag))
    with pytest.raises(Conflict):
        store.write("status/a.json", b"3", Match("another"))
    with pytest.raises(Conflict):
        store.write("status/a.json", b"3", Absent())
    for call, outcome in (("replace", Unavailable), ("sync", Unknown)):
        failing = LocalStore(root, clock=SystemClock(), ids=SystemIds(), files=Failing(call, errno.EIO))
        with pytest.raises(outcome):
            failing.write("status/a.json", b"4", Match(etag))
    assert descriptors() <= before  # what others left to the collector may close meanwhile


def test_a_replaced_file_is_kept_until_the_lock_is_given_up_and_no_longer(store, monkeypatch):
    etag = store.write("status/a.json", b"1", Absent())
    kept, closed = [], []
    keep, close, release = PosixFiles.keep, os.close, FileLock.release

    def keeping(self, path):
        kept.append(keep(self, path))
        return kept[-1]

    def closing(handle):
        closed.append("kept" if handle in kept else "other")
        close(handle)

    def releasing(self):
        closed.append("lock")
        release(self)

    monkeypatch.setattr(PosixFiles, "keep", keeping)
    monkeypatch.setattr(FileLock, "release", releasing)
    monkeypatch.setattr(os, "close", closing)
    store.write("status/a.json", b"2", Match(etag))
    assert kept[0] is not None
    assert closed.count("kept") == 1
    assert closed.index("lock") < closed.index("kept")


def test_what_can_not_be_kept_is_replaced_all_the_same(tmp_path):
    files = PosixFiles()
    assert files.keep(str(tmp_path / "missing")) is None
    (tmp_path / "link").symlink_to(tmp_path)
    assert files.keep(str(tmp_path / "link")) is None


@pytest.mark.parametrize(
    ("call", "number", "expected"),
    [
        ("replace", errno.EACCES, Denied),
        ("replace", errno.EROFS, Denied),
        ("replace", errno.EIO, Unavailable),
        ("replace", errno.EXDEV, Unavailable),
        ("open", errno.EACCES, Denied),
        ("open", errno.EIO, Unavailable),
        ("open", errno.EMFILE, Unavailable),
    ],
)
def test_what_the_file_system_refuses_is_an_error_of_the_port_and_changes_nothing(root, store, call, number, expected):
    etag = store.write("status/a.json", b"old", Absent())
    files = Failing(call, number)
    failing = LocalStore(root, clock=SystemClock(), ids=SystemIds(), files=files)
    with pytest.raises(expected, match=r"status/a\.json"):
        failing.write("status/a.json", b"new", Match(etag))
    assert store.read("status/a.json").etag == etag
    assert list((root / ".tmp").iterdir()) == []


def test_a_folder_that_can_not_be_synced_after_the_change_leaves_the_outcome_unknown(root, store):
    etag = store.write("status/a.json", b"old", Absent())
    failing = LocalStore(root, clock=SystemClock(), ids=SystemIds(), files=Failing("sync", errno.EIO))
    with pytest.raises(Unknown):
        failing.write("status/a.json", b"new", Match(etag))
    assert store.read("status/a.json").body == b"new"
    with pytest.raises(Unknown):
        failing.delete("status/a.json", Match(store.read("status/a.json").etag))


def test_one_record_that_can_not_be_read_hides_no_other(root, store):
    """Case 26: one bad item starves nobody."""
    store.write("requests/a.json", b"1", Absent())
    listed = LocalStore(root, clock=SystemClock(), ids=SystemIds(), files=Failing("open", errno.EACCES)).list(
        "requests/"
    )
    assert [(entry.key, entry.etag[:10]) for entry in listed] == [("requests/a.json", "unreadable")]


@pytest.fixture
def clock():
    return HandClock(epoch=time.time())


@pytest.fixture
def quiet(root, clock):
    """A store whose folder and files are old enough to be remembered."""
    store = LocalStore(root, clock=clock, ids=CountingIds())
    for n in range(3):
        store.write(f"status/{n}.json", b"x", Absent())
    clock.move(SETTLED_SECONDS + 2)
    return store


def test_a_quiet_folder_is_answered_from_the_last_scan_by_the_very_same_object(quiet):
    assert quiet.list("status/") is quiet.list("status/")


@pytest.mark.parametrize("change", ["new", "replaced", "deleted", "by another program"])
def test_every_new_replaced_or_deleted_file_of_a_quiet_folder_shows_at_once(quiet, root, change):
    before = quiet.list("status/")
    other = LocalStore(root, clock=SystemClock(), ids=SystemIds())
    etag = other.read("status/1.json").etag
    if change == "new":
        other.write("status/9.json", b"y", Absent())
    elif change == "replaced":
        other.write("status/1.json", b"y", Match(etag))
    elif change == "deleted":
        other.delete("status/1.json", Match(etag))
    else:
        (root / "status/z.json").write_bytes(b"y")
    after = quiet.list("status/")
    assert after != before
    assert {entry.key: entry.etag for entry in after} == {e.key: e.etag for e in other.list("status/")}


def test_a_change_inside_an_old_file_shows_after_the_next_scan(quiet, root, clock):
    before = quiet.list("status/")
    with (root / "status/1.json").open("r+b") as file:
        file.write(b"Y")
    assert quiet.list("status/") is before
    clock.move(RESCAN_SECONDS + 1)
    assert {e.key: e.etag for e in quiet.list("status/")}["status/1.json"] == quiet.read("status/1.json").etag


def test_a_change_within_the_clocks_tick_is_not_taken_for_the_file_as_it_was(root, monkeypatch):
    """On a system whose stamps have coarse ticks nothing of a stat may change."""
    for module in (folders, recordfile):
        monkeypatch.setattr(module, "sign_of", lambda about: (1, 1, 1, 1))
    store = LocalStore(root, clock=SystemClock(), ids=SystemIds())
    store.write("status/a.json", b"1", Absent())
    for n in range(5):
        (root / "status/a.json").write_bytes(b"%d" % n)
        (entry,) = store.list("status/")
        assert entry.etag == store.read("status/a.json").etag


def test_a_clock_far_off_only_makes_ages_unknown(root):
    store = LocalStore(root, clock=HandClock(epoch=time.time() - 5000), ids=CountingIds())
    etag = store.write("status/a.json", b"1", Absent())
    assert store.read("status/a.json").age is None
    assert [(e.etag, e.age) for e in store.list("status/")] == [(etag, None)]


def test_a_name_skipped_by_a_scan_because_it_was_being_replaced_is_looked_up(quiet, root, monkeypatch):
    quiet.list("status/")
    real = quiet._folders._names

    def skipping(path):
        (root / "status/new.json").write_bytes(b"n")  # the folder changes during the scan ...
        return real(path) - {"1.json"}  # ... and the scan misses a name

    monkeypatch.setattr(quiet._folders, "_names", skipping)
    (root / "status/0.json").touch()
    os.utime(root / "status")
    assert "status/1.json" in [entry.key for entry in quiet.list("status/")]


def test_a_deep_tree_that_is_no_ones_is_not_descended_into_for_ever(store, root):
    store.write("status/a.json", b"1", Absent())
    (root / "/".join(["d"] * 40)).mkdir(parents=True)
    assert [entry.key for entry in store.list("")] == ["status/a.json"]
