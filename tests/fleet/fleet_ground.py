"""What every part of the simulated fleet stands on: control root, machines, time, chance, and what was met.

Nothing here goes wrong by itself (`fleet_faults.py`), runs a job (`fleet_workers.py`) or is judged
(`fleet_properties.py`); `World` of `fleet_world.py` is all three.
"""

import heapq
import itertools
import random
from collections import Counter, defaultdict

from engine.memory_table import MemoryTable
from fleet_kit import BASE, Agent, Fleet
from fleet_ports import Time

from fdagent.ports import Entry
from fdagent.stores.memory import MemoryStore
from fdagent.stores.sightings import Sightings
from fdagent.work.leases import Holder, TableLease
from models.status import Status

HOUR = 3600.0
MAX_HOLDS = 3
LEASE = 120.0
"""The span of a table's lease; a table takes less than half of it, and one that waits gives up after it."""


class Violation(AssertionError):
    """A property does not hold."""


class Watch(MemoryStore):
    """The control root, which tells the world of each change (`Properties.wrote`); it lists folders, without ages."""

    world: "Ground"

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.listed: dict[str, tuple[Entry, ...]] = {}
        self.entries: defaultdict[str, dict[str, Entry]] = defaultdict(dict)

    def list(self, prefix):
        """The very same answer as before where nothing has changed, as a local folder gives it."""
        if prefix not in self.listed:
            self.listed[prefix] = tuple(entry for _, entry in sorted(self.entries[prefix].items()))
        return self.listed[prefix]

    def write(self, key, body, condition):
        old = self._kept.get(key)
        etag = super().write(key, body, condition)
        self._changed(key, Entry(key, etag, None, len(body)))
        self.world.wrote(key, None if old is None else old.body, body)
        return etag

    def delete(self, key, condition):
        old = self._kept.get(key)
        super().delete(key, condition)
        self._changed(key, None)
        self.world.wrote(key, old.body, None)

    def _changed(self, key, entry):
        folder = key[: key.rindex("/") + 1]
        self.listed.pop(folder, None)
        if entry is None:
            del self.entries[folder][key]
        else:
            self.entries[folder][key] = entry


class Node:
    """One agent's machine."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.up, self.paused, self.boot = True, False, 0
        self.worker = None
        self.deferred: list = []
        self.woken: object = self
        """The worker that was paused last."""
        self.faulty = False
        self.bad_at = BASE
        """When it was last not well: down, paused, cut off, stopping or busy."""
        self.beat_at = BASE
        self.sightings = Sightings(agent.clock)
        self.leases: dict[str, TableLease] = {}
        """What its worker may believe in."""

    def lease(self, table: str, job_id: str) -> TableLease:
        """A lease of that table for one claim; nothing is concluded from processes, each start is of another boot."""
        agent = self.agent
        place = agent.work.processes
        who = Holder(agent.name, agent.instance, agent.name, place.place(), place.pid(), 1.0, job_id)
        return TableLease(
            agent.view, table, LEASE, who, self.sightings, agent.clock, agent.fleet.ids, place, audit=agent.audit.append
        )

    @property
    def runs(self) -> bool:
        return self.up and not self.paused


class Ground:
    """What is so at this moment of a run; `rate` says how often things go wrong."""

    def __init__(self, seed: int, slots: int, rate: float = 1.0) -> None:
        self.seed, self.slots, self.rate = seed, slots, rate
        self.random = random.Random(seed)
        self.met: Counter = Counter()
        self.fleet = Fleet(self.random)
        self.fleet.store = Watch(self.fleet.true)
        self.fleet.store.world = self
        self.time: Time = self.fleet.time
        self.posted: dict[str, float] = {}
        self.ended: dict[str, Status] = {}
        self.open: set[str] = set()
        self.injured: dict[str, float] = {}
        """Requests whose run something went wrong with, and when last."""
        self.excused: set[str] = set()
        """Requests that need not succeed: cancelled, poison, failed by a table."""
        self.poison: set[str] = set()
        self.tables: dict[str, dict[str, MemoryTable]] = {}
        self.runs: dict[str, tuple[str, ...]] = {}
        """The tables of each request."""
        self.heap: list = []
        self.count = itertools.count()
        self.nested = False
        self.died: dict[str, tuple[float, str]] = {}
        self.waits: dict[str, float] = {}
        self.unheard: set[str] = set()
        """Ops that were in a status when its writer had no answer."""
        self.nodes: list[Node] = []
        self.calm = False
        """Nothing goes wrong any more."""

    def happens(self, chance: float) -> bool:
        """Does it go wrong here? `chance` is at the full rate."""
        return self.random.random() < chance * self.rate

    def at(self, seconds: float, do) -> None:
        heapq.heappush(self.heap, (self.time.now + seconds, next(self.count), do))
