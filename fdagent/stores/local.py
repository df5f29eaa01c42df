"""Records as files of a local folder, shared by the processes of one machine; Linux, macOS and Windows.

Guarantees
- One conditional write is: take the key's lock, compare, write a file aside and sync it, put it in place, sync the
  folder. A record is whole or not there, whatever is killed when; what was acknowledged survives a loss of power. The
  folder is synced after the lock is given up and before the write is acknowledged: the next writer needn't wait for it,
  and can't be durable without it, since a file system keeps the order of its changes.
- 64 lock files in `.locks/`, chosen by the key without its case; never deleted, freed by the system when a holder dies.
- No etag ever names two versions that differ (`recordfile.py`); a listing is whole (`folders.py`).
- Ages are by the file system's clock, which on a local drive is this machine's.

Does not guarantee anything on a network drive: refused; nor that two keys which differ in case only are two records: on
a drive that ignores case they are one. Whoever deletes `.locks/` under running processes breaks it.
"""

import contextlib
import errno
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from fdagent.errors import ConfigError, Conflict, Denied, Unavailable, Unknown
from fdagent.ports import Absent, Blob, Clock, Condition, Entry, Ids, Match
from fdagent.stores.drives import network_drive
from fdagent.stores.filelock import FileLock, Files, Locker, system_files, system_locker
from fdagent.stores.folders import Folders
from fdagent.stores.keys import check_key, split_prefix
from fdagent.stores.recordfile import look, put_aside, replaced
from fdagent.stores.storeclock import age

STRIPES = 64
LOCKS, ASIDE = ".locks", ".tmp"

STRAY_SECONDS = 3600.0
"""Age from which a file set aside is a dead writer's; a live one moves it within milliseconds."""

_DENIED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class LocalStore:
    """A store in a folder.

    Args:
        root: The control root; made by the first write.
        clock: This machine's clocks.
        ids: Names for files set aside.
        within: A folder that must be there and is never made, such as a project's or a mounted share's; None: none.
        files: The system's file calls; others in tests.
        locker: The system's lock; another in tests.

    Raises:
        ConfigError: The folder lies on a network drive.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        ids: Ids,
        within: Path | None = None,
        files: Files | None = None,
        locker: Locker | None = None,
    ) -> None:
        drive = network_drive(root)
        if drive:
            raise ConfigError(
                f"The folder {root} is on a network drive ({drive}), where locks can't be trusted.",
                fix="Use a folder on a drive of this machine; several machines share work through OneLake.",
            )
        self._root = root.absolute()
        self._within = within
        self._base = str(self._root)
        self._clock = clock
        self._ids = ids
        self._files = files or system_files(clock)
        self._locker = locker or system_locker(clock)
        self._folders = Folders(self._root, files=self._files, clock=clock, hidden=frozenset({LOCKS, ASIDE}))
        self._made: set[str] = set()
        self._unsynced: set[str] = set()

    def list(self, prefix: str) -> Sequence[Entry]:
        """All records under `prefix`, by key; the very same object as before where nothing changed (`folders.py`).

        Files whose names no record may have are listed too: somebody should be told about them.
        """
        folder, start = split_prefix(prefix)
        with self._sentences(f"The folder {self._root / folder} can't be listed"):
            entries = self._folders.entries(folder)
        if not entries:
            self._check_there()
        return tuple(entry for entry in entries if entry.key.startswith(prefix)) if start else entries

    def read(self, key: str) -> Blob | None:
        """The record, or None."""
        path = self._path(key)
        with self._sentences(f"The record {path} can't be read"):
            if _folder(path) in self._unsynced:
                # A change of ours may be in it whose outcome is unknown: to find it there must mean that it lasts.
                self._files.sync_folder(_folder(path))
                self._unsynced.discard(_folder(path))
            file = look(self._files, path)
        if file is None:
            self._check_there()
        return None if file is None else Blob(file.body, file.etag, age(self._clock.wall(), file.written))

    def write(self, key: str, body: bytes, condition: Condition) -> str:
        """Write if the condition holds; returns the new etag."""
        path, kept = self._path(key), None
        try:
            with self._sentences(f"The record {path} can't be written"):
                self._prepare(_folder(path))
                with self._lock(key):
                    self._judge(key, path, condition)
                    kept = self._files.keep(path)
                    etag = self._put(path, body)
            self._sync(path)
        finally:
            if kept is not None:
                os.close(kept)
        return etag

    def delete(self, key: str, condition: Match) -> None:
        """Delete if this very version is there."""
        path = self._path(key)
        with self._sentences(f"The record {path} can't be deleted"):
            self._prepare(self._base)
            with self._lock(key):
                self._judge(key, path, condition)
                self._files.remove(path)
        self._sync(path)

    def clock_offset(self) -> float | None:
        """None to speak of: the folder's clock is this machine's."""
        return 0.0

    def _path(self, key: str) -> str:
        return f"{self._base}/{check_key(key)}"

    def _lock(self, key: str) -> FileLock:
        stripe = zlib.crc32(key.casefold().encode()) % STRIPES
        return FileLock(f"{self._base}/{LOCKS}/{stripe:02d}", self._locker)

    def _judge(self, key: str, path: str, condition: Condition) -> None:
        if isinstance(condition, Absent):
            if look(self._files, path) is not None:
                raise Conflict(f"{key} is already there.")
            return
        file = None if replaced(path, condition.etag) else look(self._files, path)
        if file is None or file.etag != condition.etag:
            raise Conflict(f"{key} is no longer the version that was read.")

    def _put(self, path: str, body: bytes) -> str:
        aside = f"{self._base}/{ASIDE}/{os.getpid()}-{self._ids.new()}"
        try:
            etag = put_aside(aside, body)
            self._files.replace(aside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(aside).unlink()
            raise
        return etag

    def _sync(self, path: str) -> None:
        try:
            self._files.sync_folder(_folder(path))
        except OSError as error:
            self._unsynced.add(_folder(path))
            raise Unknown(
                f"The record {path} was changed, but may not survive a loss of power: {_said(error)}."
            ) from error

    def _prepare(self, folder: str) -> None:
        """Make the folders that a change needs; the first one of a process also sweeps what dead writers left."""
        if folder in self._made:
            return
        self._check_there()
        if not self._made:
            self._make(self._root / LOCKS)
            self._make(self._root / ASIDE)
            self._sweep()
        self._make(Path(folder))
        self._made.add(folder)

    def _check_there(self) -> None:
        """Nothing is there: is that because the whole of it is gone?"""
        if self._within is not None and not self._within.is_dir():
            raise Unavailable(
                f"The folder {self._within} is not there.", fix="Put it back, or mount it; nothing was changed."
            )

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it, each synced into the one above."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        self._files.sync_folder(str(folder.parent))

    def _sweep(self) -> None:
        now = self._clock.wall()
        with os.scandir(self._root / ASIDE) as found:
            for entry in found:
                # Another process may sweep the same file; a writer that was taken for dead fails its move, cleanly.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    if now - entry.stat(follow_symlinks=False).st_mtime > STRAY_SECONDS:
                        Path(entry.path).unlink()

    @contextlib.contextmanager
    def _sentences(self, what: str) -> Iterator[None]:
        """What the file system says, as an error of the port: nothing was changed."""
        try:
            yield
        except OSError as error:
            if error.errno == errno.ENOENT:
                self._made.clear()  # someone removed our folders: the next change makes them anew
            if error.errno == errno.ELOOP:
                raise Denied(
                    f"{what}: it is a link, and none is followed.", fix="Put the file itself there."
                ) from error
            if error.errno in _DENIED:
                raise Denied(
                    f"{what}: {_said(error)}.", fix="Give this account the right to read and write there."
                ) from error
            if error.errno == errno.ENOSPC:
                raise Unavailable(f"{what}: the drive is full.", fix="Make room there.") from error
            raise Unavailable(f"{what}: {_said(error)}.") from error


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _said(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
