"""The workers of the simulated fleet: jobs claimed, tables leased and landed, moved from one wait to the next.

The job's hold on its request, the table's lease, the landing and the end of an attempt are the production ones.
"""

from engine.memory_table import MemoryTable, Rows
from fleet_faults import Faults
from fleet_ground import LEASE, Node, Violation
from fleet_kit import POLL, Attempt

from fdagent.engine.landing import AlreadyDone, land
from fdagent.errors import FdagentError, GaveUp, HandedOver, StoodDown, TableBusy, Unavailable
from fdagent.fleet.records import lease_key
from fdagent.ports import Note
from fdagent.work.leases import TableLease
from models.job import JobFacts


class Workers(Faults):
    """A world in which jobs are run."""

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

    def _one_believer(self, table: str) -> None:
        """P7: a paused holder believes as well; its clock goes on."""
        found = [n.agent.name for n in self.nodes if table in n.leases and n.leases[table].belief.held()]
        if len(found) > 1:
            raise Violation(f"P7: {' and '.join(found)} both believe that they hold {table}")
