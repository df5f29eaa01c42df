"""What stands in for the ports of simulated agents: clocks, ids, the store as one machine reaches it, the queue.

Each clock is made of the world's time. Reading asks the production parsers, but of the same bytes only once, for all
agents here read them; a queue is asked only once for the same rows.
"""

import contextlib
import functools
import itertools
import sqlite3
from dataclasses import dataclass
from unittest import mock

from fdagent.errors import Unavailable, Unknown
from fdagent.fleet import look, presence, records, sweep
from fdagent.fleet.presence import agent_key
from fdagent.fleet.records import dump, parser
from fdagent.queue.db import Database
from fdagent.stores.cell import StoreCell
from fdagent.stores.memory import MemoryStore
from models.agent import AgentRecord
from models.lease import Lease
from models.slot import Request
from models.status import Status

BASE = 1_800_000_000.0
"""2027-01-15T08:00:00Z."""


@functools.cache
def reader(kind):
    """The production parser of a kind of record; its answers are remembered, as all agents here read the same bytes."""
    return functools.lru_cache(200)(parser(kind))


def read_status(body: bytes | None) -> Status | None:
    return None if body is None else reader(Status)(body)


@contextlib.contextmanager
def reading_once():
    """Within it, whatever reads a record goes by `reader`; for a long run, which reads each version a dozen times."""

    def agent_cell(store, name):
        return StoreCell(store, agent_key(name), reader(AgentRecord), dump)

    for kind in (AgentRecord, Lease, Request, Status):
        reader(kind).cache_clear()  # what was read by code that was different then
    with contextlib.ExitStack() as stack:
        for module in (records, look, sweep):
            stack.enter_context(mock.patch.object(module, "parser", reader))
        stack.enter_context(mock.patch.object(presence, "agent_cell", agent_cell))
        yield


class Queue(Database):
    """An agent's queue in memory. What was asked of the very same rows is answered as it was; no transaction is."""

    @classmethod
    def empty(cls) -> "Queue":
        queue = cls.over(sqlite3.connect(":memory:", isolation_level=None))
        queue._asked = functools.lru_cache(100)(lambda changes, sql, values: super(Queue, queue).rows(sql, *values))
        return queue

    @property
    def changes(self) -> int:
        """Another number after each change of a row."""
        return self._connection.total_changes

    def rows(self, sql, *values):
        if self._connection.in_transaction:
            return super().rows(sql, *values)
        return self._asked(self.changes, sql, values)


@dataclass
class Time:
    """The world's time; everybody's clock is made of it."""

    now: float = BASE


@dataclass
class Clock:
    """One machine's clocks: how far its wall clock is off, and since when it runs."""

    time: Time
    off: float = 0.0

    def wall(self) -> float:
        return self.time.now + self.off

    def elapsed(self) -> float:
        return self.time.now - BASE + 1000.0

    def sleep(self, seconds: float) -> None:
        self.time.now += seconds


@dataclass
class Ids:
    """Ids that count, no two of a world alike; fractions from `random`, else halves."""

    counter: itertools.count
    random: object = None

    def new(self) -> str:
        return f"{next(self.counter):012x}{0:020x}"

    def fraction(self) -> float:
        return 0.5 if self.random is None else self.random.random()


class View:
    """The store as one machine reaches it. `fault(call, key)` answers None, "down", "lost", "never" or "late"."""

    def __init__(self, store: MemoryStore, clock: Clock, true: Clock) -> None:
        self.store, self.clock, self.true = store, clock, true
        self.away = False
        self.fault = lambda call, key: None
        self.before = lambda call, key: None
        self.calls: list[tuple[str, str]] = []
        self.late: list = []
        self.offset_known = True

    def _go(self, call: str, key: str) -> str | None:
        self.calls.append((call, key))
        self.before(call, key)
        fault = self.fault(call, key)
        if self.away or fault == "down":
            raise Unavailable("the store is away")
        return fault

    def list(self, prefix):
        self._go("list", prefix)
        return self.store.list(prefix)

    def read(self, key):
        self._go("read", key)
        return self.store.read(key)

    def _change(self, call, key, do):
        fault = self._go(call, key)
        if fault == "late":
            self.late.append(do)
        if fault in ("never", "late"):
            raise Unknown("no answer")
        answer = do()
        if fault == "lost":
            raise Unknown("no answer, though it happened")
        return answer

    def write(self, key, body, condition):
        return self._change("write", key, lambda: self.store.write(key, body, condition))

    def delete(self, key, condition):
        return self._change("delete", key, lambda: self.store.delete(key, condition))

    def clock_offset(self):
        return self.true.wall() - self.clock.wall() if self.offset_known else None
