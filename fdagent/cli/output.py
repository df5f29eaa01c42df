"""stdout and stderr that never end a command: what can't be written is dropped, and that is remembered.

Guarantees: after `lasting_streams` no print raises, whoever prints: a reader that has gone (`| head -1`), a stream that
was closed before the start (`>&-`) and a full disk cost the words, not the work. No character ends a command either: a
file's name that is no text, or an ellipsis where the terminal has none, becomes an escape.
"""

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Lasting(io.RawIOBase):
    """A stream's raw file up to the first error of a write, which is kept in `error`; what follows is dropped."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self.error: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int | None:
        """How many bytes were written, or dropped."""
        if self.error is None:
            try:
                return self._raw.write(data)
            except OSError as err:
                self.error = err
        return memoryview(data).nbytes

    def writable(self) -> bool:
        """It is."""
        return True

    def isatty(self) -> bool:
        """Does a person read it?"""
        return self._raw.isatty()

    def fileno(self) -> int:
        """The system's number of it."""
        return self._raw.fileno()


def lasting_streams() -> None:
    """Make the process's streams last: once, before anything is printed."""
    # In the order of their numbers, since the system gives the lowest free one: a file that is opened later would
    # otherwise become the stdout of whatever writes to number 1.
    if sys.stdin is None:
        sys.stdin = _nowhere("r")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nowhere("w"))
        elif isinstance(stream, io.TextIOWrapper):
            setattr(sys, name, _lasting(stream))


def _nowhere(mode: str) -> Any:
    return Path(os.devnull).open(mode, encoding="utf-8")


def unwritten(stream: object) -> OSError | None:
    """Why not everything could be written; None: it could, as far as it was flushed."""
    raw = _raw(getattr(stream, "buffer", None))
    return raw.error if isinstance(raw, Lasting) else None


def _lasting(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw = Lasting(_raw(stream.buffer))
    return io.TextIOWrapper(
        raw if stream.write_through else io.BufferedWriter(raw),  # type: ignore[arg-type]  # as the system's own is
        stream.encoding,
        "backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _raw(buffer: Any) -> Any:
    """A stream's file below its buffer; it is the buffer itself where there is none (`python -u`)."""
    return getattr(buffer, "raw", buffer)
