"""Three agents that share an hourly schedule, over many simulated hours with everything that goes wrong.

The production Presence, Mailbox, Posting, Jobs, RequestHold, TableLease, end of an attempt and table landing run unchanged;
the store, the clocks, the processes and the tables' contents stand in. Time in which nothing is due is skipped, and while
all goes well polls are further apart. What is checked is in `Watch` and `World._judge`; a failure's text ends with the
line that replays it.
"""

import functools
import gc
import heapq
import itertools
import random
from collections import Counter, defaultdict

from engine.memory_table import MemoryTable, Rows
from fleet_kit import ALL, BASE, BEAT, LOST, POLL, STALE, TABLES, Agent, Attempt, Fleet, hourly
from fleet_ports import Time, read_status, reading_once

from fdagent.engine.landing import AlreadyDone, land
from fdagent.errors import Conflict, FdagentError, GaveUp, HandedOver, StoodDown, TableBusy, Unavailable, Unknown
from fdagent.fleet.mailbox import keys_of
from fdagent.fleet.presence import Standing
from fdagent.fleet.records import lease_key, parser
from fdagent.ports import Entry, Note
from fdagent.stores.memory import MemoryStore
from fdagent.stores.sightings import Sightings
from fdagent.work.leases import Holder, TableLease
from models.job import Job, JobFacts, JobState
from models.slot import Request
from models.status import FINAL, Status

HOUR = 3600.0
TWO_TABLES = 0.3
"""How many of the requests run two tables; the others run one."""
MAX_HOLDS = 3
NAMES = ("etl-01", "etl-02", "etl-03")
LEASE = 120.0
"""The span of a table's lease; a table takes less than half of it, and one that waits gives up after it."""
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
TAKEOVER_BOUND = LOST + BEAT + 3 * POLL
"""P2: from the holder's death; its last beat may be almost a beat old or due just then."""


class Violation(AssertionError):
    """A property does not hold."""


class Watch(MemoryStore):
    """The control root, which tells the world of each change. It lists whole folders, without the ages of records."""

    world: "World"

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


class World:
    """One seeded run; `rate` says how often things go wrong."""

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
        self.nodes = [self._node(name) for name in NAMES]
        self.calm = False

    def _node(self, name: str) -> Node:
        off = self.random.choice([0.0, 0.0, HOUR, -HOUR, self.random.uniform(-7200, 7200)])
        agent = self.fleet.agent(name, ALL, off=off, max_attempts=MAX_HOLDS, schedules=[hourly()], keep_days=1)
        node = Node(agent)
        agent.view.fault = functools.partial(self._fault, node)
        agent.view.before = functools.partial(self._race, node)
        change = agent.view._change

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

        agent.view._change = watched
        return node

    def happens(self, chance: float) -> bool:
        """Does it go wrong here? `chance` is at the full rate."""
        return self.random.random() < chance * self.rate

    # Time

    def at(self, seconds: float, do) -> None:
        heapq.heappush(self.heap, (self.time.now + seconds, next(self.count), do))

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

    # Faults

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

    # Workers

    def _staff(self, node: Node) -> None:
        agent = node.agent
        if node.worker is not None or agent.stopping:
            return
        due = agent.jobs.next_due()
        job = None if due is None or due > agent.clock.wall() else agent.jobs.claim(agent.who)
        if job is None:
            return
        node.worker = self._job(node, job) if job.source.startswith("pipeline:") else self._other(node, job)
        self._step(node, node.boot, node.worker)

    def _step(self, node: Node, boot: int, worker) -> None:
        if node.boot != boot or node.worker is not worker:
            return
        if node.paused:
            node.deferred.append(lambda: self._step(node, boot, worker))
            return
        try:
            seconds = next(worker)
        except StopIteration:
            if node.worker is worker:
                node.worker = None
            return
        self.at(seconds, lambda: self._step(node, boot, worker))

    def _other(self, node: Node, job):
        yield self.random.uniform(60, 4000)
        node.agent.jobs.finish(job, "succeed", JobFacts())

    def _job(self, node: Node, job):
        attempt = Attempt(node.agent, job)
        name = job.run_key
        yield 1.0
        try:
            attempt.hold.start(job.id, job.attempt)
            for table in self.runs[name]:
                if attempt.tables.get(table, {}).get("state") in ("succeeded", "already_done"):
                    continue
                if node.agent.stopping:
                    attempt.end("It was stopped before all its tables were run.", retryable=True, unspent=True)
                    return
                attempt.hold.check()
                lease = yield from self._leased(node, table, job)
                if self.happens(0.04):
                    kind = self.random.choice([self._pause, self._crash])
                    self.at(1.0, lambda kind=kind: self._hit(node, kind))
                yield self.random.uniform(5, 60)
                if name in self.poison:
                    self._hurt(node)
                    self._down(node, self.random.uniform(5, 60))
                    return
                if self.random.random() < 0.3 and not lease.renew():
                    raise StoodDown(f"The lease of {table} is another's.")
                self._land(node, attempt, name, table, lease)
                node.leases.pop(table)
                lease.release()
                yield 0.5
        except HandedOver:
            self.met["handed over"] += 1
            self.met["stood down after a pause"] += node.woken is node.worker
            node.leases = {}
            attempt.handed_over()
            return
        except FdagentError as err:
            self.injured[name] = self.time.now
            node.leases = {}
            attempt.end(str(err), retryable=True)
            return
        if self.happens(0.08):
            self.excused.add(name)
            attempt.end("a table failed in a way that passes", retryable=True)
            after = self.random.random()
            if after < 0.5:
                self._busy(node)
            elif after < 0.7:
                self.fleet.wish(name)
        else:
            attempt.end()

    def _leased(self, node: Node, table: str, job):
        """The table's lease, waited for like a worker waits: at most a little longer than its span."""
        lease = node.lease(table, job.id)
        node.leases[table] = lease
        until = node.agent.clock.elapsed() + LEASE + 3 * POLL
        while True:
            before = self.fleet.store.read(lease_key(table))
            try:
                refused = lease.acquire() is not None
            except (Unavailable, GaveUp):
                refused = True
            if not refused:
                self.met["lease taken from another"] += before is not None
                self._one_believer(table)
                return lease
            self.met["lease refused"] += 1
            if node.agent.clock.elapsed() >= until:
                raise TableBusy(f"{table} is busy.")
            yield 3 * POLL

    def _one_believer(self, table: str) -> None:
        """P7: a paused holder believes as well; its clock goes on."""
        found = [n.agent.name for n in self.nodes if table in n.leases and n.leases[table].belief.held()]
        if len(found) > 1:
            raise Violation(f"P7: {' and '.join(found)} both believe that they hold {table}")

    def _land(self, node: Node, attempt: Attempt, name: str, table: str, lease: TableLease) -> None:
        """One table through the production landing; its commit may be without an answer, or land late."""
        memory = self.tables.setdefault(name, {}).setdefault(table, MemoryTable())
        instance = node.agent.instance
        if self.happens(0.1):
            memory.plan.append(self.random.choice(["lost", "never", "late"]))

        def begins() -> None:
            status = self.fleet.status(name)
            if status is None or status.state != "running" or status.instance != instance:
                raise Violation(f"P3: {instance} commits to {table} for {name}, which is {status}")
            self._one_believer(table)
            if not lease.belief.held():
                raise Violation(f"P7: {instance} commits to {table} without believing that it holds it")

        def compute(snapshot, attempt_id):
            memory.files.add(attempt_id)
            return Rows((name,), (attempt_id,))

        def still_mine() -> None:
            attempt.hold.check()
            lease.belief.check(f"The lease of {table}")

        memory.before_commit = begins
        answer = land(
            memory,
            app_id=f"fdagent/{name}",
            note=lambda attempt_id: Note(f"fdagent/{name}", attempt_id, name, node.agent.name, "j", 1, "r"),
            compute=compute,
            keeps=lambda snapshot, change: change if name not in snapshot.body.rows else None,
            still_mine=still_mine,
            clock=node.agent.clock,
            ids=self.fleet.ids,
        )
        if memory.held:
            self.at(self.random.uniform(1, 600), lambda: memory.held and memory.release())
        self.met["already done"] += isinstance(answer, AlreadyDone)
        attempt.table(table, "already_done" if isinstance(answer, AlreadyDone) else "succeeded")

    # Properties

    def wrote(self, key: str, old: bytes | None, new: bytes | None) -> None:
        folder, _, name = key.partition("/")
        name = name.removesuffix(".json")
        if folder == "requests" and old is None:
            request = parser(Request)(new)
            if name in self.posted:
                raise Violation(f"P1: {name} was posted twice")
            if not request.due_at <= self.time.now < request.deadline:
                raise Violation(f"P11: {name} was posted at {self.time.now - request.due_at:.0f} s after it was due")
            self.posted[name] = self.time.now
            self.open.add(name)
            self.runs[name] = TABLES if self.random.random() < TWO_TABLES else TABLES[:1]
            if self.happens(0.03):
                self.poison.add(name)
                self.excused.add(name)
        elif folder == "status":
            self._status(name, read_status(old), read_status(new))

    def _status(self, name: str, was: Status | None, now: Status | None) -> None:
        if was is not None and was.state in FINAL and now is not None:
            raise Violation(f"P9: {name} was {was.state} and became {now.state}")
        if now is None:
            if was.state not in FINAL:
                raise Violation(f"P9: {name} was removed while {was.state}")
            return
        if name in self.ended:
            raise Violation(f"P9: {name} had ended and is {now.state} again")
        if len(now.holds) > MAX_HOLDS:
            raise Violation(f"P4: {name} is held for the {len(now.holds)}th time")
        if now.error and now.error.startswith("Given up") and not all(hold in now.error for hold in now.holds):
            raise Violation(f"P4: {name} was given up without naming everybody: {now.error}")
        if was is None or was.instance != now.instance:
            self.died.pop(name, None)
        if now.state in FINAL:
            self.open.discard(name)
            self.ended[name] = now
            self.died.pop(name, None)
            self.waits.pop(name, None)

    def _well(self, node: Node) -> bool:
        """Is it up, in touch, free, and does it beat?"""
        agent = node.agent
        well = node.runs and not node.faulty and not agent.stopping and agent.free() > 0
        return well and agent.presence.standing is Standing.PRESENT

    def _watch(self) -> None:
        now = self.time.now
        for node in self.nodes:
            if not self._well(node):
                node.bad_at = now
        for name, (at, instance) in list(self.died.items()):
            status = self.fleet.status(name)
            if status is None or status.instance != instance:
                del self.died[name]
            elif any(now - max(at, node.bad_at) > TAKEOVER_BOUND for node in self.nodes) and now < status.deadline:
                raise Violation(f"P2: {name} is still {instance}'s, {now - at:.0f} s after it died")
        for name in sorted(self.open):
            self._unstarted(name, now)

    def _unstarted(self, name: str, now: float) -> None:
        """P5: with `when_free` no busy agent sits on what it has not started while another is free."""
        status = self.fleet.status(name)
        holder = next((node for node in self.nodes if status and status.instance == node.agent.instance), None)
        sits = (
            status is not None
            and status.state == "accepted"
            and status.started_at is None
            and len(status.holds) < MAX_HOLDS
            and holder is not None
            and holder.runs
            and not holder.faulty
            and any(job.source == "cli" for job in holder.agent.jobs.running())
        )
        if not sits:
            self.waits.pop(name, None)
            return
        since = self.waits.setdefault(name, now)
        for node in self.nodes:
            if node is not holder and now - max(since, node.bad_at) > 4 * POLL:
                raise Violation(f"P5: {holder.agent.name} is busy and sits on {name}, while {node.agent.name} is free")

    def _judge(self) -> None:
        """What came of every hour."""
        for name in sorted(self.open):
            raise Violation(f"P9: {name} never ended: {self.fleet.status(name)}")
        for name, status in self.ended.items():
            for table, memory in self.tables.get(name, {}).items():
                rows = memory.versions[-1].rows.count(name)
                if rows > 1:
                    raise Violation(f"P8: {name} landed {rows} times in {table}")
                if not memory.readable():
                    raise Violation(f"P8: {table} of {name} has lost files")
            landed = [memory.versions[-1].rows.count(name) for memory in self.tables.get(name, {}).values()]
            if status.state == "succeeded" and landed != [1] * len(self.runs[name]):
                raise Violation(f"P1: {name} succeeded, and landed {landed}")
            if status.state == "succeeded" and {t.state for t in status.tables} - {"succeeded", "already_done"}:
                raise Violation(f"P1: {name} succeeded and shows {status.tables}")
            if name not in self.injured and name not in self.excused and status.state != "succeeded":
                if status.state != "expired":
                    raise Violation(f"P1: nothing went wrong with {name}, and it is {status}")
                self.met["expired, nobody free"] += 1
            self.met[str(status.state)] += 1
        self._sometimes()

    def _sometimes(self) -> None:
        for agent in self.fleet.agents.values():
            for moved in agent.audit:
                if moved.chart == "request" or moved.event == "requeue":
                    self.met[moved.event] += 1
                    self.met["lost, then recognised"] += moved.op in self.unheard


def run(seeds: int, slots: int, *, first: int = 0, rate: float = 1.0, say=print) -> Counter:
    """Run that many seeds of that many hourly slots each; what was met, over all of them. `rate`: how often it goes wrong.

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


__all__ = ["Unknown", "Violation", "World", "run"]
