"""Runs one claimed job: its entities in dependency order, one after the other, and says how the attempt ends.

Guarantees
- Each attempt runs only the tables that did not finish; dependents of a failed table are skipped with the reason, the
  others go on.
- A table's run-log row is stored before the next table starts; the last one's goes with the end of the attempt.
- Nothing is written for a job whose claim is lost: the table's landing asks right before its commit.

Does not claim, retry or wait: `worker.py` does, by the job chart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fdagent.engine.runtable import RunContext, run_table, skipped_row
from fdagent.errors import FdagentError, StoodDown
from fdagent.fleet.release import open_control, promoted_version
from fdagent.ports import Clock, Ids
from fdagent.project import graph, load, release
from fdagent.project.model import Entity
from fdagent.project.places import Places, environment_named
from fdagent.queue.jobs import Jobs, row_text
from fdagent.work.holding import Belief
from models.job import Job
from models.run import RunRow, RunStatus

DONE = frozenset({RunStatus.SUCCEEDED, RunStatus.NO_CHANGE, RunStatus.ALREADY_DONE})


@dataclass(frozen=True, slots=True)
class Agent:
    """Who runs: the agent's name, its host, and the metadata project it serves."""

    name: str
    host: str
    project: Path
    memory_limit: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ends: succeeded when `error` is empty. `rows` are those not stored yet."""

    tables: Mapping[str, Any]
    rows: tuple[str, ...] = ()
    error: str = ""
    category: str = ""
    retryable: bool = False


class Stopped(Exception):
    """The process was asked to stop: the job is left as it is, for the next start."""


@dataclass(slots=True)
class Runner:
    """One attempt of one job.

    Args:
        jobs: The queue, for progress.
        agent: Who runs.
        belief: Whether the claim still holds.
        stopping: Was this process asked to stop?
        told: Called with each row as its table ends, for people.
    """

    jobs: Jobs
    agent: Agent
    belief: Belief
    clock: Clock
    ids: Ids
    stopping: Callable[[], bool] = lambda: False
    told: Callable[[RunRow], None] = lambda _: None
    _unstored: list[RunRow] = field(default_factory=list)

    def run(self, job: Job) -> End:
        """Run what is left of the job.

        Raises:
            StoodDown: The job is no longer ours.
            Stopped: The process was asked to stop.
        """
        tables: dict[str, Any] = dict(job.tables)
        try:
            project = load.load_project(self.agent.project)
            places = Places(project, environment_named(project, job.env))
            store = open_control(places, clock=self.clock, ids=self.ids)
            release.check_promoted(project, places.environment, promoted_version(store))
            entities = graph.select(project, job.entities, cascade=job.cascade)
        except StoodDown:
            raise
        except FdagentError as err:
            return End(tables, error=str(err), category=str(err.category), retryable=err.retryable)
        problems: list[tuple[RunRow, bool]] = []
        for entity in entities:
            if tables.get(entity.name, {}).get("state") in DONE:
                continue
            self._store(job, tables)
            if self.stopping():
                raise Stopped
            row, retryable = self._one(job, places, entity, tables)
            tables[entity.name] = {"state": str(row.status), "run_id": row.run_id, "rows": row.rows_written}
            self._unstored.append(row)
            self.told(row)
            if row.status not in DONE:
                problems.append((row, retryable))
        return self._end(tables, problems)

    def _one(self, job: Job, places: Places, entity: Entity, tables: Mapping[str, Any]) -> tuple[RunRow, bool]:
        self.belief.check("The job's claim")
        context = RunContext(
            environment=places.environment,
            places=places,
            run_key=job.run_key,
            job_id=job.id,
            request_id=job.source.partition("pipeline:")[2],
            attempt=job.attempt,
            worker=job.worker,
            host=self.agent.host,
            agent=self.agent.name,
            source=job.source,
            metadata_version=places.project.metadata_version,
            git_commit=release.git_commit(places.project.root),
            clock=self.clock,
            ids=self.ids,
            still_mine=lambda: self.belief.check("The job's claim"),
            memory_limit=self.agent.memory_limit,
            backfill=job.backfill,
        )
        upset = next((name for name in entity.upstream if not _fine(tables.get(name))), "")
        if upset:
            return skipped_row(
                entity, context, f"{upset} {tables[upset]['state']}, so {entity.name} was not run"
            ), False
        outcome = run_table(places.project, entity, context)
        return outcome.row, outcome.retryable

    def _store(self, job: Job, tables: Mapping[str, Any]) -> None:
        """Store the row of the table that ended last, with the progress that says so."""
        for row in self._unstored:
            self.jobs.progress(job, tables, row_text(row.to_json()))
        self._unstored.clear()

    def _end(self, tables: Mapping[str, Any], problems: list[tuple[RunRow, bool]]) -> End:
        rows = tuple(row_text(row.to_json()) for row in self._unstored)
        failed = [(row, retryable) for row, retryable in problems if row.status is RunStatus.FAILED]
        if not failed:
            return End(tables, rows)
        first = failed[0][0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return End(
            tables,
            rows,
            error=f"{first.entity}: {first.error}{more}",
            category=first.category,
            retryable=any(retryable for _, retryable in failed),
        )


def _fine(progress: Mapping[str, Any] | None) -> bool:
    """An upstream table that is not part of this job, or is done in it, holds nobody back."""
    return progress is None or progress.get("state") in DONE
