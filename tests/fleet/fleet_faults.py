"""What goes wrong in the simulated fleet: crashes, pauses, cut connections, stops, lost queues, lost and late writes.

Each hits an hour or a call by the world's chance alone, so a seed always brings the same. What was hit is noted in
`injured` and `bad_at`, for the properties ask only of the others that all went well.
"""

import functools
from collections import deque

from fleet_ground import BASE, HOUR, Ground, Node

from fdagent.errors import Conflict, Unknown
from fdagent.stores.sightings import Sightings
from models.job import Job, JobState


class Faults(Ground):
    """A world in which things go wrong, also in the middle of a machine's turn (`World._turn`)."""

    def _reach(self, node: Node) -> None:
        """Let what this machine asks of the store go wrong."""
        view = node.agent.view
        view.calls = deque(maxlen=0)  # nobody asks for them, and a thousand hours have many
        view.fault = functools.partial(self._fault, node)
        view.before = functools.partial(self._race, node)
        change = view._change

        def watched(call, key, do):
            try:
                return change(call, key, do)
            except Conflict:
                self.met["conflict"] += 1
                raise
            except Unknown:
                status = self.fleet.status(key[7:-5]) if key.startswith("status/") else None
                if status is not None:
                    self.unheard.add(status.op)
                raise

        view._change = watched

    def _plan_faults(self) -> None:
        for number in range(self.slots):
            base = number * HOUR + BASE - self.time.now
            for node in self.nodes:
                if self.happens(0.35):
                    kind = self.random.choice([self._crash, self._pause, self._cut, self._stop, self._busy, self._wipe])
                    # Most hits fall where something runs.
                    when = self.random.choice([self.random.uniform(0, 240), self.random.uniform(0, HOUR)])
                    self.at(max(0.0, base + when), lambda node=node, kind=kind: self._hit(node, kind))
            if self.happens(0.03):
                self.at(max(0.0, base + self.random.uniform(0, 60)), self._cancel)
            if self.happens(0.06):
                self.at(max(0.0, base + 30), self._all_down)

    def _hit(self, node: Node, kind) -> None:
        if not self.calm and node.up:
            kind(node)
            self._hurt(node)

    def _hurt(self, node: Node) -> None:
        node.bad_at = self.time.now
        for name in self.open:
            status = self.fleet.status(name)
            if status is None or status.agent == node.agent.name:
                self.injured[name] = self.time.now

    def _crash(self, node: Node) -> None:
        self._down(node, self.random.choice([self.random.uniform(1, 30), self.random.uniform(60, 5400)]))

    def _wipe(self, node: Node) -> None:
        self._down(node, self.random.uniform(1, 600), wipe=True)

    def _down(self, node: Node, seconds: float, *, wipe: bool = False) -> None:
        node.up, node.worker, node.deferred, node.paused = False, None, [], False
        node.leases = {}
        node.boot += 1
        for name in self.open:
            status = self.fleet.status(name)
            if status is not None and status.instance == node.agent.instance:
                self.died[name] = (self.time.now, node.agent.instance)
        self.at(seconds, lambda: self._up(node, wipe=wipe))

    def _up(self, node: Node, *, wipe: bool = False) -> None:
        if node.up:
            return
        node.up, node.bad_at, node.sightings = True, self.time.now, Sightings(node.agent.clock)
        if wipe:
            node.agent.wiped()
            self.met["queue lost"] += 1
        else:
            node.agent.restart()
        self._hurt(node)
        node.agent.beat()

    def _pause(self, node: Node) -> None:
        node.paused = True
        boot = node.boot

        def resume() -> None:
            if node.boot == boot and node.paused:
                node.paused = False
                node.woken = node.worker
                self._hurt(node)
                for do in node.deferred:
                    do()
                node.deferred = []

        self.at(self.random.uniform(20, 1200), resume)

    def _cut(self, node: Node) -> None:
        node.faulty = True

        def mend() -> None:
            node.faulty = False
            self._hurt(node)

        self.at(self.random.uniform(20, 900), mend)

    def _stop(self, node: Node) -> None:
        node.agent.stopping = True

    def _busy(self, node: Node) -> None:
        ids = self.fleet.ids
        node.agent.jobs.enqueue(
            Job(ids.new()[:12], JobState.QUEUED, "x", "dev", run_key=ids.new(), dedupe_key=ids.new())
        )

    def _all_down(self) -> None:
        if not self.calm:
            for node in self.nodes:
                if node.up:
                    self._hurt(node)
                    self._down(node, self.random.uniform(600, 9000))

    def _cancel(self) -> None:
        for name in sorted(self.open)[:1]:
            self.excused.add(name)
            self.fleet.wish(name)

    def _heal(self, node: Node) -> None:
        node.faulty = False
        node.agent.view.away = False
        if node.paused:
            node.paused = False
            for do in node.deferred:
                do()
            node.deferred = []
        if not node.up:
            self._up(node)
        node.agent.stopping = False

    def _fault(self, node: Node, call: str, key: str):
        if not node.faulty:
            return None
        chance = self.random.random()
        if call in ("list", "read"):
            return "down" if chance < 0.15 else None
        kind = None if chance < 0.3 else self.random.choice(["down", "lost", "lost", "never", "late", "late"])
        if kind == "late":
            self.at(self.random.uniform(1, 900), lambda: self._deliver(node))
        return kind

    def _deliver(self, node: Node) -> None:
        if node.agent.view.late:
            try:
                node.agent.view.late.pop(0)()
                self.met["late write landed"] += 1
            except Conflict:
                pass

    def _race(self, node: Node, call: str, key: str) -> None:
        """Somebody else gets a turn in the middle of this one's."""
        if call in ("read", "write") and not self.nested and self.happens(0.02):
            self.nested = True
            self._turn(self.random.choice([other for other in self.nodes if other is not node]))
            self.nested = False
