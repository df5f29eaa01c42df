"""Runs one claimed job: its entities in dependency order, one after the other, and says how the attempt ends.

Guarantees
- Each attempt runs only the tables that did not finish; dependents of a failed table are skipped with the reason, the
  others go on.
- A table is run under its lease, and nothing is committed for a claim or lease that is no longer believed in, or once
  this process was told that its agent is gone: the landing asks right before its commit.
- A table's run-log row is stored before the next table starts; the last one's goes with the end of the attempt.

Does not claim, retry or wait for a due time: `worker.py` does, by the job chart.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fdagent.commit import Audit
from fdagent.engine.runtable import RunContext, run_table, skipped_row
from fdagent.errors import FdagentError, HandedOver, StoodDown, TableBusy
from fdagent.fleet.release import open_control, promoted_version
from fdagent.ports import Clock, Ids, Store
from fdagent.project import graph, load, release
from fdagent.project.model import Entity
from fdagent.project.places import Places, environment_named
from fdagent.queue.jobs import Jobs, row_text
from fdagent.work.holding import Belief
from fdagent.work.requesthold import RequestHold
from fdagent.work.tablehold import TableHolds, Unwanted
from models.job import Job
from models.run import RunRow, RunStatus

DONE = frozenset({RunStatus.SUCCEEDED, RunStatus.NO_CHANGE, RunStatus.ALREADY_DONE})
PIPELINE = "pipeline"
"""How the source of a request's job begins."""
SHOW_SECONDS = 1.0
"""How often a running table's rows are shown in its job, at most."""


@dataclass(frozen=True, slots=True)
class Agent:
    """Who runs: the agent's name and instance, its host, and the metadata project it serves."""

    name: str
    instance: str
    host: str
    project: Path
    memory_limit: str = ""
    table_lease_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ends: succeeded when `error` is empty. `rows` are those not stored yet.

    `unspent`: nothing failed but that tables were busy, so the attempt need not count.
    """

    tables: Mapping[str, Any]
    rows: tuple[str, ...] = ()
    error: str = ""
    category: str = ""
    retryable: bool = False
    unspent: bool = False


class Stopped(Exception):
    """The process, or this job, was asked to stop: it ends between two tables.

    Args:
        tables: The job's progress.
        rows: Run-log rows that are not stored yet.
    """

    def __init__(self, tables: Mapping[str, Any], rows: tuple[str, ...]) -> None:
        super().__init__("asked to stop")
        self.tables, self.rows = tables, rows


class Wishes(Protocol):
    """What this process was told from outside."""

    def stopping(self) -> bool:
        """Take no more work."""
        ...

    def orphaned(self) -> bool:
        """The agent is gone: commit nothing more."""
        ...


@dataclass(slots=True)
class Runner:
    """One attempt of one job.

    Args:
        jobs: The queue, for progress.
        agent: Who runs.
        belief: Whether the claim still holds.
        holds: Takes and keeps the tables' leases.
        wishes: Whether this process was asked to stop.
        told: Called with each row as its table ends, for people.
    """

    jobs: Jobs
    agent: Agent
    belief: Belief
    holds: TableHolds
    wishes: Wishes
    clock: Clock
    ids: Ids
    told: Callable[[RunRow], None] = lambda _: None
    audit: Audit | None = None
    request: RequestHold | None = None
    """The request the job runs, once its attempt has begun."""
    _tables: dict[str, Any] = field(default_factory=dict)
    _unstored: list[RunRow] = field(default_factory=list)
    _failed: list[tuple[str, FdagentError | RunRow, bool]] = field(default_factory=list)
    _shown_at: float = -SHOW_SECONDS

    def run(self, job: Job) -> End:
        """Run what is left of the job.

        Raises:
            StoodDown: The job is no longer ours.
            Stopped: The process was asked to stop.
        """
        self._tables = dict(job.tables)
        try:
            places, entities = self._prepared(job)
        except StoodDown:
            raise
        except FdagentError as err:
            return End(self._tables, error=str(err), category=str(err.category), retryable=err.retryable)
        commit = release.git_commit(places.project.root)
        for entity in entities:
            if not self._done(entity.name):
                self._tables[entity.name] = {"state": "waiting", "rows": 0}
        for entity in entities:
            if self._done(entity.name):
                continue
            asked_to_stop = self._store(job)
            if asked_to_stop or self.wishes.stopping():
                raise Stopped(self._tables, ())
            try:
                self._one(entity, self._context(job, places, commit))
            except StoodDown:
                if self.wishes.orphaned() and self.belief.held():
                    # Cut off with its agent, by no fault of the job's: it is given back, and the attempt is not counted.
                    raise Stopped(self._tables, ()) from None
                raise
        return self._end()

    def _prepared(self, job: Job) -> tuple[Places, tuple[Entity, ...]]:
        project = load.load_project(self.agent.project)
        places = Places(project, environment_named(project, job.env))
        store = open_control(places, clock=self.clock, ids=self.ids)
        release.check_promoted(project, places.environment, promoted_version(store))
        self.holds.env, self.holds.store = job.env, store
        self._begin(job, store)
        return places, graph.select(project, job.entities, cascade=job.cascade)

    def _begin(self, job: Job, store: Store) -> None:
        """Begin the attempt of a request, before any lease is taken."""
        kind, _, request_id = job.source.partition(":")
        if kind != PIPELINE:
            return
        agent = self.agent
        self.request = RequestHold(
            store, job.env, request_id, agent.name, agent.instance, self.clock, self.ids, self.holds.told, self.audit
        )
        self.request.start(job.id, job.attempt)

    def _context(self, job: Job, places: Places, commit: str) -> RunContext:
        return RunContext(
            environment=places.environment,
            places=places,
            run_key=job.run_key,
            job_id=job.id,
            request_id=job.source.removeprefix(f"{PIPELINE}:") if job.source.startswith(f"{PIPELINE}:") else "",
            attempt=job.attempt,
            worker=job.worker,
            host=self.agent.host,
            agent=self.agent.name,
            source=job.source,
            metadata_version=places.project.metadata_version,
            git_commit=commit,
            clock=self.clock,
            ids=self.ids,
            still_mine=self._check,
            memory_limit=self.agent.memory_limit,
            backfill=job.backfill,
            progress=lambda name, rows: self._show(job, name, rows),
        )

    def _show(self, job: Job, name: str, rows: int) -> None:
        """Show in the job how far a table is: that it began at once, its rows from time to time.

        What can't be shown now is shown later.
        """
        began = self._tables.get(name, {}).get("state") != "running"
        self._tables[name] = {"state": "running", "rows": rows}
        now = self.clock.elapsed()
        if began or now - self._shown_at >= SHOW_SECONDS:
            self._shown_at = now
            with contextlib.suppress(FdagentError):
                self.jobs.renew(job, lapsed=not self.belief.held(), tables=self._tables)

    def _check(self) -> None:
        """Raise StoodDown unless everything this attempt holds is still its own."""
        if self.wishes.orphaned():
            raise StoodDown("The agent that started this worker is gone, so nothing further is written.")
        self.belief.check("The job's claim")
        self.holds.check()
        if self.request is not None:
            self.request.check()

    def _one(self, entity: Entity, context: RunContext) -> None:
        upset = next((name for name in entity.upstream if name in self._tables and not self._done(name)), "")
        if upset:
            reason = f"{upset} {self._tables[upset]['state']}, so {entity.name} was not run"
            self._ended(skipped_row(entity, context, reason), retryable=False)
            return
        try:
            with self.holds.held(entity.name, context.job_id, lambda: self._is_unwanted(context.job_id)):
                self._check()
                context.progress(entity.name, 0)
                outcome = run_table(context.places.project, entity, context)
        except Unwanted:
            raise Stopped(self._tables, ()) from None
        except StoodDown as err:
            lease_only = self.belief.held() and not self.wishes.orphaned() and not isinstance(err, HandedOver)
            if not lease_only:
                raise
            # The table's lease was lost while the job is still ours: the table is run again.
            self._tables[entity.name] = {"state": "not run", "rows": 0}
            self._failed.append((entity.name, err, True))
            return
        except FdagentError as err:
            # The lease could not be had: no row, since nothing was run.
            self._tables[entity.name] = {"state": "not run", "rows": 0}
            self._failed.append((entity.name, err, err.retryable))
            return
        self._ended(outcome.row, retryable=outcome.retryable)

    def _is_unwanted(self, job_id: str) -> bool:
        """Was this process asked to stop, or this job?"""
        if self.wishes.stopping():
            return True
        job = self.jobs.get(job_id)
        return job is not None and bool(job.stop)

    def _ended(self, row: RunRow, *, retryable: bool) -> None:
        ended = {"state": str(row.status), "run_id": row.run_id, "rows": row.rows_written}
        ended |= {"read": row.rows_read, "quarantined": row.rows_quarantined}
        self._tables[row.entity] = ended if row.status in DONE else {**ended, "error": row.error}
        self._unstored.append(row)
        self.told(row)
        if row.status is RunStatus.FAILED:
            self._failed.append((row.entity, row, retryable))

    def _done(self, name: str) -> bool:
        return self._tables.get(name, {}).get("state") in DONE

    def _store(self, job: Job) -> bool:
        """Store the row of the table that ended last, with the progress that says so; was the job asked to stop?"""
        now = job
        for row in self._unstored:
            now = self.jobs.progress(job, self._tables, row_text(row.to_json()))
        if self._unstored and self.request is not None:
            self._report(self.request)
        self._unstored.clear()
        return bool(now.stop)

    def _report(self, request: RequestHold) -> None:
        """Show the request's author how far it is."""
        try:
            request.report(self._tables)
        except StoodDown:
            raise
        except FdagentError as err:
            self.holds.told(f"The progress of request {request.request_id} could not be shown. {err}")

    def _end(self) -> End:
        rows = tuple(row_text(row.to_json()) for row in self._unstored)
        if not self._failed:
            return End(self._tables, rows)
        name, why, _ = self._failed[0]
        sentence, category = (why.error, why.category) if isinstance(why, RunRow) else (str(why), str(why.category))
        named = sentence if name in sentence else f"{name}: {sentence}"
        more = f" (and {len(self._failed) - 1} more)" if len(self._failed) > 1 else ""
        return End(
            self._tables,
            rows,
            error=f"{named}{more}",
            category=category,
            retryable=any(retryable for _, _, retryable in self._failed),
            unspent=all(isinstance(why, TableBusy) for _, why, _ in self._failed),
        )
