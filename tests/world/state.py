"""One moment of the world, what may happen next, and what each of that does.

Guarantees: a state holds everything the future depends on, so equal keys have equal futures; `choices` lists what may
happen, always in the same order; `take` carries one out and asks every monitor. Nothing is random and no real clock is
read.

A choice is a word, and a run is a list of words:

    a            process a's call is answered          a!late   no answer; the write lands at any later time, or never
    a!lost       it happens, no answer                 a!never  no answer, it never happens
    a!twice      it happens, and arrives once more     a!down   the store is unavailable
    a!stale      answered from before the last change  a!crash  the process dies before its call
    a!slow       it happens, the answer takes its time a!mute   the agent's beats stop arriving, it lives
    a!sent       it dies, its call is on its way       a!pause  the process stands still for a while
    a!stall      it stands still for as long as the search likes (where time waits for everybody: `lockstep`)
    a!freeze     the same, and its agent's beats stop as well until it goes on
    a+           a dead process starts again           tick     time goes on (`skip`: to the next thing that is due)
    land:0       the first call on its way arrives     m!jump   machine m's wall clock jumps
    foreign:t    somebody else commits to table t      clean:t  t is checkpointed and its log files are cleaned
    m!wipe       machine m loses its queue file        m!off    every process of machine m dies
    a!clone      a's machine is copied while it runs
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fdagent.errors import Conflict, Unavailable, Unknown
from fdagent.ports import Absent, Blob, Entry

from .ports import EMPTY, Contents, SharedSqlite
from .process import DONE, Call, Fails, Node, Program, Root, Violation
from .tables import Log

BASE = 1_800_000_000.0
"""The wall clock at the world's time 0: 2027-01-15T08:00:00Z."""
CHANGES = frozenset({"write", "delete", "commit"})
READS = frozenset({"read", "list", "open", "author"})
STALE = frozenset({"list", "open"})
FAULTS_OF: Mapping[str, frozenset[str]] = {
    "lost": CHANGES,
    "late": CHANGES,
    "never": CHANGES,
    "twice": CHANGES,
    "sent": CHANGES,
    "down": CHANGES | READS,
    "stale": STALE,
    "slow": CHANGES | READS,
}
INSTANT = frozenset(
    {
        "wall",
        "elapsed",
        "id",
        "fraction",
        "place",
        "pid",
        "started_at",
        "offset",
        "duty",
        "saw",
        "tell",
        "stored",
        "put",
        "change",
        "start",
        "kill",
        "orphaned",
        "started by",
    }
)


class Kept(NamedTuple):
    """One record in the store."""

    body: bytes
    etag: str
    at: float


class Machine(NamedTuple):
    """One machine: how its clocks differ from the world's, where its processes are, and its queue."""

    elapsed: float = 0.0
    wall: float = 0.0
    rate: float = 1.0
    place: str = ""
    rows: Contents = EMPTY


class Proc(NamedTuple):
    """One process: its node (None: it is dead), which start it is, the ids drawn at one moment, and until when it sleeps or
    stands still."""

    node: Node | None
    boot: int = 0
    ids: tuple[float, int] = (0.0, 0)
    wake: float = 0.0
    answer: Any = None
    """A slow answer, as a tuple of one."""
    stalled: str = ""
    """`stall` or `freeze` while it stands still."""


class Flight(NamedTuple):
    """A call on its way to the store."""

    by: str
    call: Call


class Monitor:
    """A property. `check` is asked after every choice, `asked` when a process comes to wait in a call, `wrote` at every change of a record, `told` when a process says
    something, `rest` where nothing may happen any more; each raises Violation."""

    def check(self, state: "State") -> None: ...

    def asked(self, state: "State", name: str, call: Call) -> None: ...

    def told(self, state: "State", name: str, what: str, about: tuple[Any, ...]) -> None: ...

    def wrote(self, state: "State", key: str, old: bytes | None, new: bytes | None) -> None: ...

    def rest(self, state: "State") -> None: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """What a world contains and what may happen in it.

    Args:
        name: For replay lines.
        programs: The processes.
        faults: Which faults, by the words above; each use takes one from `budget`.
        tick: How far one `tick` goes, in seconds; 0: time stands still.
        until: No tick goes beyond.
        lands: Nothing that is on its way arrives later: what it does must have time to end.
        lockstep: Time goes on only when everybody sleeps or has stalled; else at any moment.
        boots: How often a process may start.
        foreign, cleans: How often anybody may commit to, and clean, each table.
        records: What is in the store at first.
        constant: Key prefixes that nobody writes here: reading them is no choice.
        jump, pause: How far a wall clock jumps, and how long a pause lasts, in seconds.
        clones: Whose process may be copied, as it is, into which one that has ended (searches only).
        by_itself: What happens at each tick, such as the beats of live agents.
        ended: Where given, every state must have a way to a state of which this is true.
        sometimes: What must have been seen by the end of a search or a long run.
        real_time: Sleeps last as long as they say and records have ages, as seeded runs want it; a search leaves both out,
            for they only make states differ.
        limit: The most states of an exhaustive search; reaching it is a failure.
    """

    name: str
    programs: tuple[Program, ...]
    monitors: tuple[Monitor, ...] = ()
    faults: frozenset[str] = frozenset({"late", "twice", "crash", "sent"})
    budget: int = 1
    tick: float = 0.0
    until: float = 0.0
    lands: float = float("inf")
    lockstep: bool = False
    boots: int = 2
    foreign: int = 0
    cleans: int = 0
    records: Mapping[str, bytes] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    machines: Mapping[str, Machine] = field(default_factory=dict)
    constant: tuple[str, ...] = ()
    jump: float = 0.0
    pause: float = 0.0
    clones: Mapping[str, str] = field(default_factory=dict)
    by_itself: Callable[["State"], None] = lambda _: None
    ended: Callable[["State"], bool] | None = None
    sometimes: frozenset[str] = frozenset()
    real_time: bool = False
    limit: int = 200_000


class World:
    """What all states of one run share."""

    def __init__(self, scope: Scope, *, branching: bool) -> None:
        self.scope, self.branching = scope, branching
        self.programs = {program.name: program for program in scope.programs}
        machines = [program.machine for program in scope.programs]
        self.alone = {program.name: machines.count(program.machine) == 1 for program in scope.programs}
        self.askers = tuple(one for one in scope.monitors if type(one).asked is not Monitor.asked)
        self.checkers = tuple(one for one in scope.monitors if type(one).check is not Monitor.check)
        self.seen: set[str] = set()
        self._roots: dict[tuple[str, int], Root] = {}
        self._sqlite = SharedSqlite()
        self._numbers: dict[Any, int] = {}

    def root(self, name: str, boot: int) -> Root:
        """Where start `boot` of a program begins."""
        root = self._roots.get((name, boot))
        if root is None or not self.branching:
            root = self._roots[name, boot] = Root(self.programs[name], boot, self._sqlite, branching=self.branching)
        return root

    def number(self, value: Any) -> int:
        """A small number that stands for an equal value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def start(self) -> "State":
        """The first state."""
        return State(self)

    def end(self) -> None:
        """Kill every greenlet."""
        for root in self._roots.values():
            root.end()
        self._sqlite.inner.close()


class _Look:
    """The clock by which a belief is asked from outside: one machine's, at one moment."""

    def __init__(self, machine: Machine, now: float) -> None:
        self._machine, self._now = machine, now

    def elapsed(self) -> float:
        return self._machine.elapsed + self._now * self._machine.rate

    def wall(self) -> float:
        return BASE + self._machine.wall + self._now * self._machine.rate


class State:
    """One moment. `copy` before `take` to keep it."""

    __slots__ = (
        "budget", "cleans", "earlier", "etags", "flying", "foreign", "ghost", "machines", "now", "procs", "records",
        "tables", "world",
    )  # fmt: skip

    def __init__(self, world: World) -> None:
        scope = world.scope
        self.world = world
        self.now = 0.0
        self.records = {key: Kept(body, f"{key}#0", 0.0) for key, body in scope.records.items()}
        self.etags: dict[str, int] = {}
        self.tables = {name: Log() for name in scope.tables}
        self.earlier = (self.records, self.tables)
        names = {program.machine for program in scope.programs}
        self.machines = {name: scope.machines.get(name, Machine(place=name)) for name in sorted(names)}
        self.flying: tuple[Flight, ...] = ()
        self.budget, self.foreign, self.cleans = scope.budget, scope.foreign, scope.cleans
        self.ghost: dict[Any, Any] = {}
        self.procs = {program.name: Proc(None) for program in scope.programs}
        for program in scope.programs:
            if not program.parent:
                self._boot(program.name, 0)

    def copy(self) -> "State":
        """The same moment, to go on from in another way."""
        new = State.__new__(State)
        for name in State.__slots__:
            value = getattr(self, name)
            setattr(new, name, dict(value) if isinstance(value, dict) else value)
        return new

    def key(self) -> Any:
        """Equal keys have equal futures."""
        number, stale = self.world.number, "stale" in self.world.scope.faults
        return (
            self.now,
            number(tuple(self.records.items())),
            number(tuple(sorted(self.etags.items()))),
            number(tuple(self.tables.values())),
            number(tuple(self.machines.values())),
            tuple(self._proc_key(proc) for proc in self.procs.values()),
            number(self.flying),
            (self.budget, self.foreign, self.cleans),
            number(tuple(self.ghost.items())),
            number((tuple(self.earlier[0].items()), tuple(self.earlier[1].values()))) if stale else 0,
        )

    def _proc_key(self, proc: Proc) -> Any:
        wake = proc.wake if proc.wake > self.now else 0.0
        ids = proc.ids[1] if proc.ids[0] == self.now else 0
        return (proc.node.serial if proc.node else 0, proc.boot, ids, wake, proc.answer, proc.stalled)

    # ---- what may happen

    def choices(self) -> list[str]:
        """Everything that may happen next; what goes well comes first."""
        scope, found, faults = self.world.scope, [], []
        for name, proc in self.procs.items():
            if proc.node is None:
                if proc.boot + 1 < scope.boots and not self.world.programs[name].parent:
                    found.append(name + "+")
                continue
            if proc.node.call is DONE:
                continue
            if proc.wake <= self.now:
                found.append(name)
            if self.budget:
                faults += self._faults(name, proc)
        if self.now <= scope.lands:
            found += [f"land:{number}" for number in range(len(self.flying))]
        if self.foreign:
            found += [f"foreign:{table}" for table in self.tables]
        if self.cleans:
            found += [f"clean:{table}" for table, log in self.tables.items() if log.newest.version >= log.kept]
        return found + self._times() + faults

    def _faults(self, name: str, proc: Proc) -> list[str]:
        scope = self.world.scope
        kind = proc.node.call[0] if proc.node is not None and proc.wake <= self.now and not proc.answer else ""
        found = [f"{name}!{fault}" for fault, kinds in FAULTS_OF.items() if fault in scope.faults and kind in kinds]
        found += [f"{name}!{fault}" for fault in ("crash", "pause", "mute", "stall", "freeze") if fault in scope.faults]
        copy = self.procs[scope.clones[name]].node if "clone" in scope.faults and name in scope.clones else None
        if copy is not None and copy.call is DONE:
            found.append(f"{name}!clone")
        if name == next(n for n, p in self.world.programs.items() if p.machine == self.world.programs[name].machine):
            machine = self.world.programs[name].machine
            found += [f"{machine}!{fault}" for fault in ("jump", "wipe", "off") if fault in scope.faults]
        return found

    def _times(self) -> list[str]:
        scope = self.world.scope
        if not scope.tick or self.now >= scope.until or not self._alive():
            return []
        if scope.lockstep and any(self._busy(proc) for proc in self.procs.values()):
            return []
        return ["tick"] if self.now + scope.tick <= scope.until else []

    def _busy(self, proc: Proc) -> bool:
        awake = proc.node is not None and proc.node.call is not DONE and proc.wake <= self.now
        return awake and not proc.stalled and not proc.answer

    def _alive(self) -> bool:
        return bool(self.flying) or any(
            proc.node is not None and proc.node.call is not DONE for proc in self.procs.values()
        )

    def next_due(self) -> float | None:
        """When the next sleeper wakes; None when somebody is awake or nobody ever wakes."""
        wakes = [p.wake for p in self.procs.values() if p.node is not None and p.node.call is not DONE]
        return min(wakes) if wakes and min(wakes) > self.now else None

    # ---- what it does

    def take(self, choice: str) -> None:
        """Carry one choice out, then ask every monitor."""
        name, _, fault = choice.partition("!")
        kind, _, which = choice.partition(":")
        if fault:
            self.budget -= 1
            self._fail(name, fault)
        elif choice == "tick":
            self.now += self.world.scope.tick
            self.world.scope.by_itself(self)
        elif choice == "skip":
            due = self.next_due()
            assert due is not None, "nobody sleeps alone"
            self.now = due
        elif kind == "land":
            flight = self.flying[int(which)]
            self.flying = self.flying[: int(which)] + self.flying[int(which) + 1 :]
            self._perform(flight.by, flight.call)
        elif kind == "foreign":
            self.foreign -= 1
            self._table(which, self.tables[which].foreign())
        elif kind == "clean":
            self.cleans -= 1
            self._table(which, self.tables[which].clean())
        elif choice.endswith("+"):
            self._boot(choice[:-1], self.procs[choice[:-1]].boot + 1)
        else:
            proc = self.procs[name]
            self._answer(name, proc.answer[0] if proc.answer else self._perform(name, self._call(name)))
        for monitor in self.world.checkers:
            monitor.check(self)

    def _call(self, name: str) -> Call:
        node = self.procs[name].node
        assert node is not None, f"{name} is dead"
        return node.call

    def _fail(self, name: str, fault: str) -> None:
        if fault in {"jump", "wipe", "off"}:
            self._upset(name, fault)
            return
        call = self._call(name)
        if fault in {"late", "twice", "sent"}:
            self.flying = (*self.flying, Flight(name, call))
        if fault in {"crash", "sent"}:
            self._kill(name)
        elif fault == "pause":
            self.procs[name] = self.procs[name]._replace(wake=self.now + self.world.scope.pause)
        elif fault == "slow":
            self.procs[name] = self.procs[name]._replace(answer=(self._perform(name, call),))
        elif fault == "clone":
            self._clone(name, self.world.scope.clones[name])
        elif fault in {"stall", "freeze"}:
            self.procs[name] = self.procs[name]._replace(stalled=fault)
        elif fault == "mute":
            self.ghost["mute", name] = True
        elif fault == "down":
            self._answer(name, Fails(Unavailable))
        elif fault == "stale":
            self._answer(name, self._read(call, *self.earlier))
        else:
            answer = self._perform(name, call) if fault in {"lost", "twice"} else None
            self._answer(name, answer if fault == "twice" else Fails(Unknown))

    def _clone(self, name: str, other: str) -> None:
        """Another machine goes on from where this one is, with all that the monitors know of it."""
        self.procs[other] = self.procs[name]
        known = {key: value for key, value in self.ghost.items() if isinstance(key, tuple) and key[-1] == name}
        self.ghost |= {(*key[:-1], other): value for key, value in known.items()}

    def _upset(self, machine: str, fault: str) -> None:
        was = self.machines[machine]
        if fault == "jump":
            self.machines[machine] = was._replace(wall=was.wall + self.world.scope.jump)
            return
        for name, program in self.world.programs.items():
            if program.machine == machine and self.procs[name].node is not None:
                self._kill(name)
        if fault == "wipe":
            self.machines[machine] = was._replace(rows=EMPTY)

    def _kill(self, name: str) -> None:
        proc = self.procs[name]
        if proc.node is not None and not self.world.branching:
            proc.node.drop()
        self.procs[name] = Proc(None, proc.boot)

    def _boot(self, name: str, boot: int) -> None:
        self.procs[name] = Proc(self.world.root(name, boot).first, boot)
        self._settle(name)

    def _answer(self, name: str, answer: Any) -> None:
        proc = self.procs[name]
        assert proc.node is not None
        self.procs[name] = proc._replace(node=proc.node.after(answer), answer=None, stalled="")
        self._settle(name)

    def _settle(self, name: str) -> None:
        """Answer what is no choice, until the process waits for one."""
        while True:
            proc = self.procs[name]
            assert proc.node is not None
            call = proc.node.call
            if call[0] == "sleep" and not self._naps(name, call[1]):
                return
            if call[0] not in INSTANT and call[0] != "sleep" and not self._constant(call, name):
                for monitor in self.world.askers:
                    monitor.asked(self, name, call)
                return
            answer = self._perform(name, call)
            self.procs[name] = self.procs[name]._replace(node=proc.node.after(answer))

    def _naps(self, name: str, seconds: float) -> bool:
        """Is this sleep too short to matter? If not, note when it ends."""
        if not self.world.scope.real_time and seconds < max(self.world.scope.tick, 1.0):
            return True
        proc = self.procs[name]
        self.procs[name] = proc._replace(wake=self.now + max(seconds, 0.001) / self._machine(name).rate)
        return False

    def _constant(self, call: Call, name: str) -> bool:
        """Does nothing that others do change its answer? Then the moment it is answered at is no choice."""
        if call[0] in {"transaction", "query"}:
            return self.world.alone[name]
        return call[0] in {"read", "list"} and call[1].startswith(self.world.scope.constant or "\0")

    # ---- what a call means

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

    # ---- what monitors ask

    def believers(self) -> dict[str, list[str]]:
        """Per belief: who holds it at this very instant."""
        found: dict[str, list[str]] = {}
        for name, proc in self.procs.items():
            for what, belief in proc.node.beliefs if proc.node is not None else ():
                belief._clock = self.look(name)
                if belief.held():
                    found.setdefault(what, []).append(name)
        return found


__all__ = ["BASE", "Kept", "Machine", "Monitor", "Scope", "State", "World", "replace"]
