"""One record as a file: read whole, with the etag that names its version, and written aside.

Guarantees: an etag is the hash of the bytes and the time of the write. Two versions share one only if they have the
same bytes, written in the same tick of the file system's clock; a record with an op has its bytes once only, so there
is no ABA. Reading never waits (a pipe put there), never leaves the folder (a link put there), never takes more memory
than a record may have.
"""

import hashlib
import os
import stat
from dataclasses import dataclass

from fdagent.errors import Unavailable
from fdagent.stores.filelock import Files

MAX_READ = 256 * 1024 + 1
"""Bytes read of a record: one more than a record may have, so that its reader sees that it is too large."""

_BINARY = getattr(os, "O_BINARY", 0)

Sign = tuple[int, int, int, int]
"""What tells that a file was not written since, for nothing but a stat: inode, times of content and of inode, size."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A record's file as it was at one moment: replacing puts a new file there, so all of it belongs together."""

    body: bytes
    etag: str
    written: float
    size: int
    sign: Sign


def look(files: Files, path: str) -> RecordFile | None:
    """The file; None when there is none.

    Raises:
        Unavailable: Something else than a file has its name.
        OSError: It can't be read.
    """
    try:
        handle = files.open(path)
    except FileNotFoundError:
        return None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise Unavailable(f"{path} is not a file.", fix="Remove it: only records belong there.")
        body = _read(handle, about.st_size)
    finally:
        os.close(handle)
    return RecordFile(body, _etag(body, about), about.st_mtime, about.st_size, sign_of(about))


def put_aside(path: str, body: bytes) -> str:
    """Make the file, on disk; returns the etag it will have wherever it is moved."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    try:
        rest = memoryview(body)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    # Only now: Windows sets a file's time when its last handle is closed.
    return _etag(body, os.lstat(path))


def sign_of(about: os.stat_result) -> Sign:
    """The file's sign."""
    return about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_size


def replaced(path: str, etag: str) -> bool:
    """Is it certain, by nothing but a stat, that the version of this etag is no longer there?

    False proves nothing. Under contention most changes are refused, and a stat costs a tenth of a read.
    """
    try:
        return not etag.endswith(f"-{os.lstat(path).st_mtime_ns:x}")
    except OSError:
        return False


def _read(handle: int, size: int) -> bytes:
    """All of it, up to MAX_READ; usually by one call."""
    body = os.read(handle, min(size, MAX_READ))
    while len(body) < min(size, MAX_READ) and (part := os.read(handle, MAX_READ - len(body))):
        body += part
    return body


def _etag(body: bytes, about: os.stat_result) -> str:
    return f"{hashlib.sha256(body[:MAX_READ]).hexdigest()[:32]}-{about.st_mtime_ns:x}"
