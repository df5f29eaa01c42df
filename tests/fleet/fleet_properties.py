"""What must hold in the simulated fleet: P1, P2, P4, P5, P8, P9 and P11.

They are asked at every change of a record, after every round and at the end; P3 and P7 are asked by the workers, at the
moments they are about (`fleet_workers.py`), P12 over all seeds (`fleet_world.run`).
"""

from fleet_ground import MAX_HOLDS, Ground, Node, Violation
from fleet_kit import BEAT, LOST, POLL, TABLES
from fleet_ports import read_status

from fdagent.fleet.presence import Standing
from fdagent.fleet.records import parser
from models.slot import Request
from models.status import FINAL, Status

TWO_TABLES = 0.3
"""How many of the requests run two tables; the others run one."""
TAKEOVER_BOUND = LOST + BEAT + 3 * POLL
"""P2: from the holder's death; its last beat may be almost a beat old or due just then."""


class Properties(Ground):
    """A world that is watched."""

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
