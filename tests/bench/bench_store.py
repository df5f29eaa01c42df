"""The local store: 16 processes on one key, file and folder synced, beside `filelock` and SQLite doing the same.

Doing the same is: read the record and its version, count one up, write on the condition that the version is still that
one, on disk before it is acknowledged; on a conflict all of it again, at once. (`python -m tests.bench.bench_store
<role> <folder>`: one side in a process of its own.)
"""

import json
import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from fdagent.errors import Conflict
from fdagent.ports import Absent, Match
from fdagent.stores.local import LocalStore
from fdagent.system import SystemClock, SystemIds
from tests.bench import measure
from tests.bench.measure import Bound, line
from tests.bench.rivals import PROCESSES, drive

ME = "tests.bench.bench_store"
RUNS = 5
KEY = "status/one.json"
ALONE = 2000


def run() -> list[dict[str, Any]]:
    """All lines of the local store."""
    found = measure.alternate(
        {
            "ours": lambda: _in_scratch(lambda folder: measure.child(ME, "ours", folder)),
            "filelock": lambda: _in_scratch(lambda folder: measure.peer("filelock_cas", folder)),
            "sqlite": lambda: _in_scratch(lambda folder: measure.child(ME, "sqlite", folder)),
            "disk": lambda: _in_scratch(lambda folder: measure.child(ME, "disk", folder)),
        },
        RUNS,
    )
    values = {side: {name: [a[name] for a in answers] for name in answers[0]} for side, answers in found.items()}
    ours = values["ours"]
    conflicts = {side: f"{values[side]['conflicts'][0]:.1f}" for side in ("ours", "filelock", "sqlite")}
    lines = []
    for peer, side in (("filelock", "filelock"), ("SQLite", "sqlite")):
        first = side == "filelock"
        note = f"store: {values[side]['settings'][0]}; conflicts a change {conflicts['ours']} / {conflicts[side]}"
        lines += [
            line(
                f"store: {PROCESSES} processes on one key, conditional writes, vs {peer}",
                "writes/s",
                ours["per_second"],
                peer=peer,
                peers=values[side]["per_second"],
                bound=Bound(">=", 1500, of="ours") if first else None,
                note=note,
            ),
            line(
                f"store: {PROCESSES} processes on one key, worst wait for one change, vs {peer}",
                "ms",
                ours["worst_ms"],
                peer=peer,
                peers=values[side]["worst_ms"],
                bound=Bound("<=", 200, of="ours") if first else None,
            ),
            line(
                f"store: {PROCESSES} processes on one key, acknowledged changes lost, vs {peer}",
                "changes",
                ours["lost"],
                peer=peer,
                peers=values[side]["lost"],
                bound=Bound("<=", 0, of="ours") if first else None,
            ),
        ]
    return [
        *lines,
        line(
            f"store: {PROCESSES} processes on one key, conditional writes, vs the disk alone",
            "writes/s",
            ours["per_second"],
            peer="one process, no lock",
            peers=values["disk"]["per_second"],
            note="store: the disk alone is one process that writes aside, syncs, replaces and syncs the folder, no lock, no read",
        ),
    ]


def _in_scratch(side: Any) -> dict[str, Any]:
    with measure.scratch() as folder:
        answer: dict[str, Any] = side(folder)
    return answer


class Ours:
    """The local store."""

    def __init__(self, folder: Path) -> None:
        self._store = LocalStore(folder, clock=SystemClock(), ids=SystemIds())
        self._ids = SystemIds()

    def add(self) -> int:
        conflicts = 0
        while True:
            blob = self._store.read(KEY)
            record = {"n": 0} if blob is None else json.loads(blob.body)
            body = json.dumps({"n": record["n"] + 1, "op": self._ids.new()}).encode()
            try:
                self._store.write(KEY, body, Absent() if blob is None else Match(blob.etag))
            except Conflict:
                conflicts += 1
            else:
                return conflicts

    def number(self) -> int:
        blob = self._store.read(KEY)
        return 0 if blob is None else json.loads(blob.body)["n"]


class Sqlite:
    """One row of a table in SQLite, changed by `UPDATE ... WHERE version = ?`."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "one.db", timeout=60, isolation_level=None)
        self._ids = SystemIds()
        for sql in (
            "pragma journal_mode = wal",
            "pragma synchronous = full",
            "create table if not exists record (id integer primary key, version text, body text)",
            """insert or ignore into record values (1, 'v0', '{"n": 0}')""",
        ):
            self._connection.execute(sql)

    def add(self) -> int:
        conflicts = 0
        while True:
            version, body = self._connection.execute("select version, body from record where id = 1").fetchone()
            op = self._ids.new()
            body = json.dumps({"n": json.loads(body)["n"] + 1, "op": op})
            changed = self._connection.execute(
                "update record set version = ?, body = ? where id = 1 and version = ?", (op, body, version)
            )
            if changed.rowcount == 1:
                return conflicts
            conflicts += 1

    def number(self) -> int:
        return json.loads(self._connection.execute("select body from record where id = 1").fetchone()[0])["n"]


def _disk(folder: Path) -> dict[str, Any]:
    """What the disk allows one process: nothing but the durable replace."""
    body, began = b"x" * 64, time.perf_counter()
    for n in range(ALONE):
        aside = folder / f"aside-{n}"
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(handle, body)
        os.fsync(handle)
        os.close(handle)
        aside.replace(folder / "one")
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    return {"per_second": ALONE / (time.perf_counter() - began)}


def main(role: str, folder: Path) -> None:
    """One side."""
    if role == "disk":
        measure.answer(**_disk(folder))
        return
    settings = f"SQLite {sqlite3.sqlite_version}: WAL, synchronous=full, one conditional UPDATE, timeout 60 s"
    measure.answer(settings=settings, **drive({"ours": Ours, "sqlite": Sqlite}[role], folder))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
