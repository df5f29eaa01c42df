"""What lies in the folders of a local store, without reading again what did not change.

Guarantees: a listing is whole: a name that a scan may have missed while its record was replaced is looked up by itself,
and one record that can't be read hides no other. A record's etag here is the one a read gives.
Does not guarantee that a change made *inside* an existing file by another program shows at once: while a folder's own
time stands still the last scan is answered (the very same object, ages as they were) for up to RESCAN_SECONDS, once
all its files are SETTLED_SECONDS old. Replaced, new and deleted files always show: they change the folder's time.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from fdagent.errors import Unavailable
from fdagent.ports import Clock, Entry
from fdagent.stores.filelock import Files
from fdagent.stores.keys import MAX_SEGMENTS
from fdagent.stores.recordfile import Sign, look, sign_of
from fdagent.stores.storeclock import age

QUIET_SECONDS = 1.0
"""A folder's or file's time must be this old to prove that nothing changed since: stamps have ticks."""

SETTLED_SECONDS = 120.0
"""Files this young may still be written to by the program that makes them: their folder is scanned anew."""

RESCAN_SECONDS = 300.0
"""The longest that one scan is answered again."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as last looked at; `settled` when its sign can't stay the same through another write."""

    sign: Sign
    etag: str
    written: float
    size: int
    settled: bool


@dataclass(frozen=True, slots=True)
class _Scan:
    """One folder as last scanned; `quiet` when its time can prove that it still is like that."""

    changed_ns: int
    quiet: bool
    at: float
    entries: tuple[Entry, ...]
    files: dict[str, _Known]
    folders: tuple[str, ...]


class Folders:
    """The folders below `root`.

    Args:
        root: The store's root.
        files: The system's file calls.
        clock: This machine's clocks.
        hidden: Names in the root that hold no records.
    """

    def __init__(self, root: Path, *, files: Files, clock: Clock, hidden: frozenset[str]) -> None:
        self._root = root
        self._files = files
        self._clock = clock
        self._hidden = hidden
        self._scans: dict[str, _Scan] = {}

    def entries(self, folder: str) -> tuple[Entry, ...]:
        """Everything below `folder` (empty: the root, else with a slash behind), by key.

        Raises:
            OSError: The folder can't be scanned.
        """
        scan = self._current(folder)
        if scan is None:
            return ()
        deeper = scan.folders if folder.count("/") < MAX_SEGMENTS - 1 else ()
        below = [entry for name in deeper for entry in self.entries(f"{folder}{name}/")]
        return tuple(sorted((*scan.entries, *below), key=lambda entry: entry.key)) if below else scan.entries

    def _current(self, folder: str) -> _Scan | None:
        """The last scan where it still holds, else a new one; None when there is no such folder."""
        path, last = self._root / folder, self._scans.get(folder)
        try:
            changed_ns = path.stat().st_mtime_ns
            if last is None or not last.quiet or last.changed_ns != changed_ns or self._old(last):
                last = self._scans[folder] = self._scan(folder, path, changed_ns, last.files if last else {})
        except FileNotFoundError:
            self._scans.pop(folder, None)
            return None
        return last

    def _old(self, scan: _Scan) -> bool:
        return self._clock.elapsed() - scan.at > RESCAN_SECONDS

    def _scan(self, folder: str, path: Path, changed_ns: int, last: dict[str, _Known]) -> _Scan:
        now, at = self._clock.wall(), self._clock.elapsed()
        names = self._names(path)
        if path.stat().st_mtime_ns != changed_ns:
            # Some file systems skip a name that is replaced during the scan; what is there is looked up by itself.
            names |= self._names(path) | last.keys()
        entries, files, folders = [], {}, []
        for name in sorted(names if folder else names - self._hidden):
            found = self._file(f"{path}/{name}", last.get(name), now)
            if isinstance(found, _Known):
                files[name] = found
                entries.append(Entry(_text(folder + name), found.etag, age(now, found.written), found.size))
            elif found:
                folders.append(name)
        youngest = max((file.written for file in files.values()), default=0.0)
        quiet = now - changed_ns / 1e9 > QUIET_SECONDS and now - youngest > SETTLED_SECONDS
        return _Scan(changed_ns, quiet, at, tuple(entries), files, tuple(folders))

    def _names(self, path: Path) -> set[str]:
        with os.scandir(path) as found:
            return {entry.name for entry in found}

    def _file(self, path: str, last: _Known | None, now: float) -> _Known | bool:
        """A file, or whether it is a folder. A link, a pipe or what has just gone is neither."""
        try:
            about = os.lstat(path)
            if not stat.S_ISREG(about.st_mode):
                return stat.S_ISDIR(about.st_mode)
            if last is not None and last.settled and last.sign == sign_of(about):
                return last
            file = look(self._files, path)
        except FileNotFoundError:
            return False
        except (PermissionError, Unavailable):
            return self._unreadable(path)
        if file is None:
            return False
        return _Known(file.sign, file.etag, file.written, file.size, now - file.written > QUIET_SECONDS)

    def _unreadable(self, path: str) -> _Known | bool:
        """A file that only its own reader needs to fail on: listed by what its stat says, if that much is allowed."""
        try:
            about = os.lstat(path)
        except FileNotFoundError:
            return False
        except PermissionError:
            return _Known((0, 0, 0, 0), "unreadable", 0.0, 0, settled=False)
        sign = sign_of(about)
        etag = "unreadable-" + "-".join(f"{part:x}" for part in sign)
        return _Known(sign, etag, about.st_mtime, about.st_size, settled=False)


def _text(name: str) -> str:
    """A name that is not UTF-8, spelled so that it can be shown; no key is like that, so it is never read."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
