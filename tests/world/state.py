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

from collections.abc import Mapping
from typing import Any, NamedTuple

from fdagent.errors import Unavailable, Unknown

from .calls import READS, Calls, Kept
from .ports import EMPTY, SharedSqlite
from .process import DONE, Call, Fails, Node, Root
from .scope import Machine, Monitor, Scope
from .tables import Log

CHANGES = frozenset({"write", "delete", "commit"})
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


class Proc(NamedTuple):
    """One process: its node (None: it is dead), which start it is, the ids drawn at one moment, and until when it
    sleeps or stands still."""

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


class State(Calls):
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


__all__ = ["State", "World"]
