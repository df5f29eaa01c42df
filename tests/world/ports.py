"""The production ports, each call a question to the world.

Guarantees: nothing is decided here; what a call is answered, when, and whether at all is the world's choice. The queue is
the production `Database` over a SQLite connection in memory: the start of each transaction, and each read outside one,
is a call; what happens inside a transaction is one step, as SQLite makes it.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from fdagent.commit import Audit
from fdagent.ports import Absent, Author, Blob, Condition, Entry, Match, Note
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs

from .freeze import Port
from .tables import Pin, Rows

Ask = Callable[[tuple[Any, ...]], Any]
Contents = tuple[tuple[Any, ...], ...]
TABLES = ("job", "run_row")
EMPTY: Contents = ((), ())


class SimClock(Port):
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def wall(self) -> float:
        return self._ask(("wall",))

    def elapsed(self) -> float:
        return self._ask(("elapsed",))

    def sleep(self, seconds: float) -> None:
        self._ask(("sleep", seconds))


class SimIds(Port):
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def new(self) -> str:
        return self._ask(("id",))

    def fraction(self) -> float:
        return self._ask(("fraction",))


class SimProcesses(Port):
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def place(self) -> str:
        return self._ask(("place",))

    def pid(self) -> int:
        return self._ask(("pid",))

    def started_at(self, pid: int) -> float | None:
        return self._ask(("started_at", pid))


class SimStore(Port):
    """The store; `unclear` says whether the last change of this duty had no answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask, self.unclear = ask, False

    def list(self, prefix: str) -> Sequence[Entry]:
        return self._ask(("list", prefix))

    def read(self, key: str) -> Blob | None:
        return self._ask(("read", key))

    def write(self, key: str, body: bytes, condition: Condition) -> str:
        return self._change(("write", key, body, condition if isinstance(condition, Match) else Absent()))

    def delete(self, key: str, condition: Match) -> None:
        self._change(("delete", key, condition))

    def _change(self, call: tuple[Any, ...]) -> Any:
        self.unclear = True
        answer = self._ask(call)
        self.unclear = False
        return answer

    def clock_offset(self) -> float | None:
        return self._ask(("offset",))


class SimTable(Port):
    def __init__(self, name: str, ask: Ask) -> None:
        self._name, self._ask = name, ask

    def open(self) -> Pin:
        return self._ask(("open", self._name))

    def has_txn(self, snapshot: Pin, app_id: str) -> bool:
        return app_id in snapshot.txns

    def author(self, snapshot: Pin, app_id: str) -> Author | None:
        return self._ask(("author", self._name, snapshot.version, app_id))

    def put(self, file: str) -> None:
        """A data file is written: what `compute` does before a commit refers to it."""
        self._ask(("put", self._name, file))

    def commit(self, snapshot: Pin, change: Rows, note: Note) -> None:
        self._ask(("commit", self._name, snapshot.version, change, note))

    def discard(self, change: Rows) -> None:
        self._ask(("discard", self._name, change.files))


class SharedSqlite:
    """The one SQLite connection of a world, in memory; `rows` is what it holds now.

    All queues can share it, as no process is left while it is inside a transaction.
    """

    def __init__(self) -> None:
        self.inner = sqlite3.connect(":memory:", isolation_level=None)
        Database.over(self.inner)
        self.rows = EMPTY

    def hold(self, rows: Contents) -> None:
        """Let it hold these."""
        if rows is self.rows:
            return
        for name, found in zip(TABLES, rows, strict=True):
            self.inner.execute(f"delete from {name}")
            for row in found:
                self.inner.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)
        self.rows = rows


class QueueConnection(Port):
    """A connection to one machine's queue, loaded with its rows at the start of each transaction or read."""

    row_factory: Any = None

    def __init__(self, ask: Ask, shared: SharedSqlite) -> None:
        self._ask, self._shared = ask, shared

    @property
    def in_transaction(self) -> bool:
        return self._shared.inner.in_transaction

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        word, inner = sql.split(None, 1)[0].lower(), self._shared.inner
        if sql == "pragma data_version":
            return inner.execute("select ?", (self._ask(("change",)),))
        if not inner.in_transaction and word != "pragma":
            self._shared.hold(self._ask(("transaction",) if word == "begin" else ("query",)))
        inner.row_factory = self.row_factory
        cursor = inner.execute(sql, values)
        if word == "commit":
            self._shared.rows = rows_of(inner)
            self._ask(("stored", self._shared.rows))
        return cursor

    def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
        return self._shared.inner.executemany(sql, values)


@lru_cache(100_000)
def _one(rows: Contents) -> Contents:
    """Of equal contents the first, so that a search keeps each once."""
    return rows


def rows_of(connection: sqlite3.Connection) -> Contents:
    """Everything a queue holds: the jobs, and the run-log rows that wait."""
    connection.row_factory = None
    return _one(tuple(tuple(connection.execute(f"select * from {name} order by 1")) for name in TABLES))


def open_queue(connection: QueueConnection, clock: SimClock, ids: SimIds, audit: Audit) -> Jobs:
    """The production queue over such a connection."""
    return Jobs(Database.over(connection), clock=clock, ids=ids, audit=audit)  # type: ignore[arg-type]
