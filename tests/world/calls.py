"""What each call of a process means: what it changes in the world, and what it is answered.

A call is carried out whole, at one moment; when that is, and whether its answer arrives, `state.py` decides.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fdagent.errors import Conflict
from fdagent.ports import Absent, Blob, Entry

from .ports import Contents
from .process import DONE, Call, Fails, Violation
from .scope import BASE, Machine
from .tables import Log

READS = frozenset({"read", "list", "open", "author"})


class Kept(NamedTuple):
    """One record in the store."""

    body: bytes
    etag: str
    at: float


class _Look:
    """The clock by which a belief is asked from outside: one machine's, at one moment."""

    def __init__(self, machine: Machine, now: float) -> None:
        self._machine, self._now = machine, now

    def elapsed(self) -> float:
        return self._machine.elapsed + self._now * self._machine.rate

    def wall(self) -> float:
        return BASE + self._machine.wall + self._now * self._machine.rate


class Calls:
    """The calls of a `State`, by kind."""

    __slots__ = ()

    def _machine(self, name: str) -> Machine:
        return self.machines[self.world.programs[name].machine]

    def look(self, name: str) -> _Look:
        """The clocks that a process sees, now."""
        return _Look(self._machine(name), self.now)

    def _perform(self, name: str, call: Call) -> Any:
        """Carry a call out; its answer."""
        kind = call[0]
        if kind in READS:
            return self._read(call, self.records, self.tables)
        try:
            return getattr(self, "_do_" + kind.replace(" ", "_"))(name, *call[1:])
        except Conflict:
            return Fails(Conflict)

    def _read(self, call: Call, records: Mapping[str, Kept], tables: Mapping[str, Log]) -> Any:
        kind, key = call[0], call[1]
        if kind == "list":
            found = sorted((name, kept) for name, kept in records.items() if name.startswith(key))
            return tuple(Entry(name, kept.etag, self._age(kept), len(kept.body)) for name, kept in found)
        if kind == "read":
            kept = records.get(key)
            return None if kept is None else Blob(kept.body, kept.etag, self._age(kept))
        return tables[key].newest if kind == "open" else tables[key].author(call[2], call[3])

    def _age(self, kept: Kept) -> float | None:
        return self.now - kept.at if self.world.scope.real_time else None

    def _do_write(self, _: str, key: str, body: bytes, condition: Any) -> str:
        self._judge(key, condition)
        number = self.etags[key] = self.etags.get(key, 0) + 1
        self._record(key, Kept(body, f"{key}#{number}", self.now if self.world.scope.real_time else 0.0))
        return self.records[key].etag

    def _do_delete(self, _: str, key: str, condition: Any) -> None:
        self._judge(key, condition)
        self._record(key, None)

    def _judge(self, key: str, condition: Any) -> None:
        kept = self.records.get(key)
        if (kept is not None) if isinstance(condition, Absent) else (kept is None or kept.etag != condition.etag):
            raise Conflict("Another version is there.")

    def _record(self, key: str, new: Kept | None) -> None:
        if key.startswith(self.world.scope.constant or "\0"):
            raise Violation(f"{key} was written, though this scope says that nobody does")
        old = self.records.get(key)
        self.earlier = (self.records, self.tables)
        self.records = {name: kept for name, kept in self.records.items() if name != key}
        if new is not None:
            self.records[key] = new
            self.records = dict(sorted(self.records.items())) if self.world.branching else self.records
        for monitor in self.world.scope.monitors:
            monitor.wrote(self, key, old.body if old else None, new.body if new else None)

    def _table(self, name: str, log: Log) -> None:
        self.earlier = (self.records, self.tables)
        self.tables = self.tables | {name: log}

    def _do_commit(self, _: str, table: str, base: int, change: Any, note: Any) -> None:
        self._table(table, self.tables[table].commit(base, change, note))

    def _do_put(self, _: str, table: str, file: str) -> None:
        self.tables = self.tables | {table: self.tables[table].put(file)}

    def _do_discard(self, _: str, table: str, files: Sequence[str]) -> None:
        self.tables = self.tables | {table: self.tables[table].discard(tuple(files))}

    def _do_wall(self, name: str) -> float:
        return self.look(name).wall()

    def _do_elapsed(self, name: str) -> float:
        return self.look(name).elapsed()

    def _do_offset(self, name: str) -> float:
        return BASE + self.now - self.look(name).wall()

    def _do_sleep(self, name: str, _: float) -> None:
        self.procs[name] = self.procs[name]._replace(wake=0.0)

    def _do_id(self, name: str) -> str:
        # By the moment and a count within it, so that how many were drawn before makes no two states differ.
        proc = self.procs[name]
        count = proc.ids[1] + 1 if proc.ids[0] == self.now else 1
        self.procs[name] = proc._replace(ids=(self.now, count))
        return f"{name}{proc.boot}x{int(self.now * 1000):x}-{count:x}"

    def _do_fraction(self, _: str) -> float:
        return 0.5

    def _do_place(self, name: str) -> str:
        return self._machine(name).place

    def pid(self, name: str) -> int:
        """The process id of a start."""
        return 10_000 * (1 + list(self.procs).index(name)) + self.procs[name].boot

    def _do_pid(self, name: str) -> int:
        return self.pid(name)

    def _do_started_at(self, name: str, pid: int) -> float | None:
        here = self._machine(name).place
        for other, proc in self.procs.items():
            if self._machine(other).place == here and self.pid(other) == pid and proc.node is not None:
                return None if proc.node.call is DONE else float(pid)
        return None

    def _do_start(self, name: str) -> int | None:
        """A process of this one starts; None: all that there may be are running."""
        for other, program in self.world.programs.items():
            proc = self.procs[other]
            if program.parent == name and (proc.node is None or proc.node.call is DONE):
                self.ghost["started", other] = self.procs[name].boot
                self._boot(other, proc.boot + 1)
                return self.pid(other)
        return None

    def _do_started_by(self, name: str) -> int:
        """Which start of its parent started it."""
        boot: int = self.ghost["started", name]
        return boot

    def _do_orphaned(self, name: str) -> bool:
        parent = self.procs[self.world.programs[name].parent]
        return parent.node is None or parent.boot != self.ghost["started", name]

    def _do_kill(self, _: str, pid: int) -> None:
        for other in self.procs:
            if self.pid(other) == pid and self.procs[other].node is not None:
                self._kill(other)

    def _do_change(self, name: str) -> int:
        return self.world.number(self._machine(name).rows)

    def _do_duty(self, *_: Any) -> None: ...

    def _do_saw(self, _: str, what: str) -> None:
        self.world.seen.add(what)

    def _do_tell(self, name: str, what: str, *about: Any) -> None:
        for monitor in self.world.scope.monitors:
            monitor.told(self, name, what, about)

    def _do_transaction(self, name: str) -> Contents:
        return self._machine(name).rows

    def _do_query(self, name: str) -> Contents:
        return self._machine(name).rows

    def _do_stored(self, name: str, rows: Contents) -> None:
        machine = self.world.programs[name].machine
        self.machines[machine] = self.machines[machine]._replace(rows=rows)
