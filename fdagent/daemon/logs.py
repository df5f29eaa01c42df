"""The agent's log: one JSON object a line, on stdout and in numbered files under `<home>/logs`; on a terminal, in colour.

Guarantees: one writer, the daemon, so lines are never mixed; workers hand their lines to it. (The log of what people did
has many writers, each of one line that the system appends whole.) A line is in a file whole or not at all. A full or unwritable disk loses lines and never stops the agent; how many were lost is said once there is
room. Files are never renamed (Windows refuses that while somebody reads): a full one is followed by the next number, and
the oldest are removed; one that somebody deletes is followed by a new one. Lines hold no secret because nothing that is
told does. A reader of stdout who stops reading holds the agent up, as with any program: read it, or send it to a file.
"""

import contextlib
import errno
import io
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from fdagent.commit import Transition
from fdagent.daemon.terminal import for_people, style_of
from fdagent.ports import Clock
from models.times import stamp

AGENT, AUDIT, PEOPLE = "agent", "audit", "audit-people"
FILE_BYTES = 20 * 1024 * 1024
KEPT = 10
LEVELS = ("debug", "info", "warning", "error")


class Log:
    """Where the daemon and its workers tell what they do, and which transitions they committed.

    Args:
        folder: `<home>/logs`; made when it is missing.
        out: Also written to, for people where it is a terminal; None: files only.
        about: Fields of every line, such as the host.
        name: Files are called `<name>.<number>.log`.
        file_bytes: A file longer than this is followed by the next.
        kept: How many files are kept.
    """

    def __init__(
        self,
        folder: Path,
        out: IO[str] | None,
        about: Mapping[str, str],
        clock: Clock,
        *,
        name: str = AGENT,
        file_bytes: int = FILE_BYTES,
        kept: int = KEPT,
    ) -> None:
        self._folder, self._out, self._about, self._clock = folder, out, about, clock
        self._name, self._file_bytes, self._kept = name, file_bytes, kept
        self._style = style_of(out)
        self._lock = threading.Lock()
        self._file: io.FileIO | None = None
        self._lost = 0

    def tell(self, level: str, event: str, message: str, **fields: Any) -> None:
        """Write one line.

        Args:
            level: debug, info, warning or error.
            event: A fixed name, for programs.
            message: A sentence, for people.
            fields: What it is about: job_id, env, entity.
        """
        about = {name: value for name, value in fields.items() if value != ""}
        self._line({"level": level, "event": event, "message": message, **self._about, **about})

    def transition(self, moved: Transition, **about: str) -> None:
        """Write one committed transition: what `audit.log` is made of."""
        arrow = {"chart": moved.chart, "event": moved.event, "from": moved.source, "to": moved.dest}
        self._line({**arrow, "key": moved.key, "op": moved.op, **self._about, **about})

    def _line(self, fields: Mapping[str, Any]) -> None:
        line = {"ts": stamp(self._clock.wall()), **fields}
        text = json.dumps(line)
        with self._lock:
            if self._out is not None:
                with contextlib.suppress(OSError, ValueError):
                    print(text if self._style is None else for_people(line, self._style), file=self._out, flush=True)
            self._write(text)

    @property
    def lost(self) -> int:
        """Lines that could not be written yet."""
        return self._lost

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._drop()

    def _write(self, text: str) -> None:
        try:
            file = self._opened()
            if self._lost:
                lost = {"ts": stamp(self._clock.wall()), "level": "warning", "event": "lines_lost", **self._about}
                _append(file, json.dumps({**lost, "message": f"{self._lost} lines could not be written."}))
                self._lost = 0
            _append(file, text)
        except OSError:
            self._lost += 1
            self._drop()

    def _opened(self) -> io.FileIO:
        """The newest file with room in it."""
        if self._file is not None:
            there = os.fstat(self._file.fileno())
            if there.st_nlink and there.st_size < self._file_bytes:
                return self._file
        self._drop()
        self._folder.mkdir(parents=True, exist_ok=True)
        files = log_files(self._folder, self._name)
        newest = files[-1] if files else self._folder / f"{self._name}.1.log"
        if newest.exists() and newest.stat().st_size >= self._file_bytes:
            newest = self._folder / f"{self._name}.{_number(newest) + 1}.log"
        # Kept open over many lines on purpose: `close` ends it.
        self._file = io.FileIO(newest, "a")
        for old in log_files(self._folder, self._name)[: -self._kept]:
            with contextlib.suppress(OSError):
                old.unlink()
        return self._file

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


def _append(file: io.FileIO, text: str) -> None:
    """Write one line, or nothing of it."""
    line = f"{text}\n".encode("utf-8", "backslashreplace")
    end = os.fstat(file.fileno()).st_size
    written = file.write(line)
    if written != len(line):
        file.truncate(end)
        raise OSError(errno.ENOSPC, "only a part of the line was written")


def log_files(folder: Path, name: str = AGENT) -> list[Path]:
    """A log's files, oldest first."""
    return sorted((path for path in folder.glob(f"{name}.*.log") if _number(path)), key=_number)


def _number(path: Path) -> int:
    part = path.name.split(".")[1]
    return int(part) if part.isdigit() else 0
