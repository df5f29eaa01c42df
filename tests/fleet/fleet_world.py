"""Three agents that share an hourly schedule, over many simulated hours with everything that goes wrong.

The production Presence, Mailbox, Posting, Jobs, RequestHold, TableLease, end of an attempt and table landing run
unchanged; the store, the clocks, the processes and the tables' contents stand in. Time in which nothing is due is
skipped, and while all goes well polls are further apart. What goes wrong is in `fleet_faults.py`, what runs jobs in
`fleet_workers.py`, what is checked in `fleet_properties.py`; a failure's text ends with the line that replays it.
"""

import gc
import heapq
from collections import Counter

from fleet_ground import BASE, HOUR, MAX_HOLDS, Node, Violation
from fleet_kit import ALL, BEAT, POLL, STALE, hourly
from fleet_ports import reading_once
from fleet_properties import Properties
from fleet_workers import Workers

from fdagent.errors import FdagentError
from fdagent.fleet.mailbox import keys_of

NAMES = ("etl-01", "etl-02", "etl-03")
CALM_POLLS = 20
"""While all goes well polls are up to so many times further apart."""
SOMETIMES = (
    "take_over",
    "give_up",
    "adopt",
    "hand_back",
    "expire",
    "cancel",
    "requeue",
    "sweep",
    "handed over",
    "already done",
    "conflict",
    "lost, then recognised",
    "late write landed",
    "stood down after a pause",
    "lease refused",
    "lease taken from another",
)
"""What every long run must have met (P12)."""


class World(Workers, Properties):
    """One seeded run; `rate` says how often things go wrong."""

    def __init__(self, seed: int, slots: int, rate: float = 1.0) -> None:
        super().__init__(seed, slots, rate)
        self.nodes = [self._node(name) for name in NAMES]

    def _node(self, name: str) -> Node:
        off = self.random.choice([0.0, 0.0, HOUR, -HOUR, self.random.uniform(-7200, 7200)])
        agent = self.fleet.agent(name, ALL, off=off, max_attempts=MAX_HOLDS, schedules=[hourly()], keep_days=1)
        node = Node(agent)
        self._reach(node)
        return node

    def run(self) -> None:
        """All the slots, then time to come to rest.

        Raises:
            Violation: A property does not hold; the text says how to replay it.
        """
        try:
            gc.disable()
            with reading_once():
                self._all()
            self._judge()
        except Exception as err:
            replay = f'python -m tests.soak --replay "fleet@{self.seed}/{self.slots}/{self.rate:g}"'
            raise Violation(f"{err}\n{replay}") from err
        finally:
            gc.enable()

    def _all(self) -> None:
        end = BASE + self.slots * HOUR
        self._plan_faults()
        while self.time.now < end:
            self._round(end)
        self.calm = True
        for node in self.nodes:
            self._heal(node)
        while self.time.now < end + 30 * HOUR and (self.open or self.time.now < end + HOUR):
            self._round(end + 30 * HOUR)

    def _round(self, end: float) -> None:
        now = self.time.now
        slot = BASE + ((now - BASE) // HOUR + 1) * HOUR
        busy = bool(self.open) or now - (slot - HOUR) < 3 * POLL
        tense = self._tense()
        step = POLL if tense else self.random.uniform(POLL, CALM_POLLS * POLL)
        until = min(now + step if busy else slot + self.random.random() * 5, end)
        while self.heap and self.heap[0][0] <= until:
            at, _, do = heapq.heappop(self.heap)
            self.time.now = max(self.time.now, at)
            do()
            if not busy or self._tense():
                until = min(until, self.time.now + POLL)
        self.time.now = max(self.time.now, until)
        order = self.random.sample(self.nodes, len(self.nodes))
        for node in order:
            # Time that was skipped was full of beats.
            if node.runs and (not busy or self.time.now - node.beat_at >= (BEAT if tense else STALE)):
                node.beat_at = self.time.now
                node.agent.beat()
        for node in order:
            self._turn(node)
        self._watch()

    def _tense(self) -> bool:
        """Does anybody have to look soon: is a request open that nobody well runs?"""
        if self.died or self.waits:
            return True
        for name in self.open:
            status = self.fleet.status(name)
            holder = None if status is None else self.nodes[NAMES.index(status.agent)]
            if holder is None or holder.worker is None or not holder.runs or holder.faulty:
                return True
            if holder.agent.instance != status.instance:
                return True
        return False

    def _turn(self, node: Node) -> None:
        if not node.runs:
            return
        agent = node.agent
        for duty in (agent.posting.tick, agent.mailbox.tick):
            try:
                duty()
            except FdagentError:
                self.met["poll failed"] += 1
        self._staff(node)
        if agent.stopping and node.worker is None and not agent.jobs.unfinished_of(keys_of("dev")):
            agent.presence.drain()
            agent.presence.stop()
            self._down(node, self.random.uniform(60, 1500))


def run(seeds: int, slots: int, *, first: int = 0, rate: float = 1.0, say=print) -> Counter:
    """Run so many seeds of so many hourly slots each; what was met, over all. `rate`: how often something goes wrong.

    Raises:
        Violation: A property does not hold, or something that should happen now and then never did.
    """
    met: Counter = Counter()
    for seed in range(first, first + seeds):
        world = World(seed, slots, rate)
        world.run()
        met += world.met
        met["slots"] += slots
        met["posted"] += len(world.posted)
    say(f"fleet: {seeds} seeds x {slots} slots x {len(NAMES)} agents: {dict(sorted(met.items()))}")
    if rate == 1.0 and met["slots"] >= 500:
        missing = [name for name in SOMETIMES if not met[name]]
        if missing:
            raise Violation(f"P12: never met in {met['slots']} slots: {', '.join(missing)}")
    return met


__all__ = ["SOMETIMES", "Violation", "World", "run"]
