"""A record in a file under `filelock`, changed by 16 processes: `filelock_cas.py <folder>`.

What somebody who knows the library would write: lock, compare the version, write aside, sync, replace, sync the folder.
"""

import json
import os
import sys
import uuid
from pathlib import Path

import filelock

sys.path.insert(0, str(Path(__file__).parents[1]))

from rivals import drive

POLL_SECONDS = 0.001


class Filelock:
    """One file and its lock file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "one.json"
        self._lock = filelock.FileLock(folder / "one.lock", poll_interval=POLL_SECONDS)

    def add(self) -> int:
        conflicts = 0
        while True:
            record = self._read()
            with self._lock:
                if self._read()["op"] == record["op"]:
                    self._write({"n": record["n"] + 1, "op": uuid.uuid4().hex})
                    return conflicts
            conflicts += 1

    def number(self) -> int:
        return self._read()["n"]

    def _read(self) -> dict:
        try:
            return json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return {"n": 0, "op": ""}

    def _write(self, record: dict) -> None:
        aside = self._folder / f"aside-{os.getpid()}"
        with aside.open("wb") as file:
            file.write(json.dumps(record).encode())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._file)
        handle = os.open(self._folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


settings = f"filelock {filelock.__version__}: FileLock(poll_interval={POLL_SECONDS}) instead of its 50 ms"
print(json.dumps({"settings": settings, **drive(Filelock, Path(sys.argv[1]))}))
