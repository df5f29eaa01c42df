"""One table of a run, from its sources to its row in the run log.

Guarantees: the table's change lands at most once for the run key (`landing.py`); a refusal, a missing source, a busy
table and a mistake in this program all end as a `failed` row with a category and a sentence; only StoodDown, and what
stops a process, pass through. Rows that were refused are in quarantine before the data commit, and rows of attempts
that did not land are gone after it. Does not retry, lease or store the row: the caller does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fdagent.engine.change import Change
from fdagent.engine.landing import AlreadyDone, Landed, Landing, land
from fdagent.engine.runlog import last_marks, stamp_ms
from fdagent.errors import Category, FdagentError, StoodDown, TransformFailed
from fdagent.ports import Clock, Ids, Note
from fdagent.project.model import Entity, Environment, Project
from fdagent.project.places import Places
from models.run import CheckResult, RunRow, RunStatus

if TYPE_CHECKING:
    from fdagent.engine.compute import Computing
    from fdagent.engine.duck import Duck

LONGEST_ERROR = 2000


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a table's run needs to know of the job it is part of.

    Args:
        environment: Where.
        places: Where its tables lie.
        run_key: What makes a repeated run the same one; an id that a lost queue would not make anew.
        still_mine: Raises StoodDown when this run was taken from us; asked before each commit.
        memory_limit: DuckDB's, such as `512MB`; empty: its own.
        backfill: Rebuild from all source rows, as one overwriting commit, marks reset.
        spill: Where larger-than-memory work and copies of files go; None: the system's temporary folder.
        progress: Told the entity and the rows read so far.
    """

    environment: Environment
    places: Places
    run_key: str
    clock: Clock
    ids: Ids
    still_mine: Callable[[], None]
    job_id: str = ""
    request_id: str = ""
    attempt: int = 1
    worker: str = ""
    host: str = ""
    agent: str = ""
    source: str = ""
    metadata_version: str = ""
    git_commit: str = ""
    memory_limit: str = ""
    backfill: bool = False
    spill: Path | None = None
    progress: Callable[[str, int], None] = lambda _entity, _rows: None

    @property
    def app_id(self) -> str:
        """The transaction that says that the run key's effect is in a table."""
        return f"fdagent/{self.run_key}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The row, and whether another attempt may end differently."""

    row: RunRow
    retryable: bool = False


def run_table(project: Project, entity: Entity, context: RunContext) -> Outcome:
    """Run one table.

    Raises:
        StoodDown: The run was taken from us; nothing further was written.
    """
    row = _begun(entity, context)
    started = context.clock.elapsed()
    try:
        row, retryable = _landed(project, entity, context, row), False
    except StoodDown:
        raise
    except FdagentError as err:
        row, retryable = _failed(row, err.category, _sentence(err, project, entity)), err.retryable
    except Exception as err:  # noqa: BLE001  # a mistake of ours ends one table, in words, not the agent
        row, retryable = _failed(row, Category.CODE, f"{type(err).__name__}: {err}"), False
    ended = context.clock.elapsed()
    stamped = replace(
        row, finished_at=stamp_ms(context.clock.wall()), duration_ms=max(0, round((ended - started) * 1000))
    )
    return Outcome(stamped, retryable)


def skipped_row(entity: Entity, context: RunContext, reason: str) -> RunRow:
    """The row of a table that was not run, because one it reads did not get ready."""
    return replace(_begun(entity, context), status=RunStatus.SKIPPED, error=reason)


def _begun(entity: Entity, context: RunContext) -> RunRow:
    now = stamp_ms(context.clock.wall())
    return RunRow(
        run_id=context.ids.new(),
        job_id=context.job_id,
        request_id=context.request_id,
        run_key=context.run_key,
        env=context.environment.name,
        entity=entity.name,
        layer=entity.layer.name,
        mode=entity.load.mode,
        status=RunStatus.FAILED,
        started_at=now,
        finished_at=now,
        duration_ms=0,
        attempt=context.attempt,
        worker=context.worker,
        host=context.host,
        agent=context.agent,
        source=context.source,
        metadata_version=context.metadata_version,
        git_commit=context.git_commit,
    )


def _sentence(err: FdagentError, project: Project, entity: Entity) -> str:
    """What happened and what to do; a transform's failure says which file it stands in."""
    if not isinstance(err, TransformFailed):
        return str(err)
    file = entity.sql_file or entity.file
    file = file.relative_to(project.root) if file.is_relative_to(project.root) else file
    return f"{err.what} It is declared in {file.as_posix()}. {err.fix}".rstrip()


def _failed(row: RunRow, category: Category, sentence: str) -> RunRow:
    return replace(row, status=RunStatus.FAILED, category=str(category), error=sentence[:LONGEST_ERROR])


def _landed(project: Project, entity: Entity, context: RunContext, row: RunRow) -> RunRow:
    from fdagent.engine.duck import Duck

    with Duck(memory_limit=context.memory_limit, spill=context.spill) as duck:
        computing = _computing(duck, project, entity, context, row)
        landing = land(
            computing.port,
            app_id=context.app_id,
            note=computing.note,
            compute=computing.compute,
            keeps=computing.keeps,
            still_mine=context.still_mine,
            clock=context.clock,
            ids=context.ids,
        )
        row = _told(row, landing, computing)
        attempt_id = _whose(landing)
        return _settled(row, computing, attempt_id) if attempt_id else row


def _computing(duck: "Duck", project: Project, entity: Entity, context: RunContext, row: RunRow) -> "Computing":
    from fdagent.engine.compute import Computing
    from fdagent.engine.quarantine import Quarantine
    from fdagent.engine.sources.read import Reader
    from fdagent.engine.tables.delta import DeltaTablePort

    def note(attempt_id: str) -> Note:
        return Note(
            app_id=context.app_id,
            attempt_id=attempt_id,
            run_key=context.run_key,
            agent=context.agent,
            job_id=context.job_id,
            attempt=context.attempt,
            run_id=row.run_id,
        )

    clock, places = context.clock, context.places
    at = row.started_at
    return Computing(
        duck=duck,
        port=DeltaTablePort(places.table(entity), clock),
        entity=entity,
        reader=Reader(duck, project, places, entity, at, clock),
        quarantine=Quarantine(
            duck,
            DeltaTablePort(places.quarantine(entity), clock),
            entity.name,
            row.run_id,
            context.run_key,
            at,
            clock,
            context.ids,
        ),
        note=note,
        still_mine=context.still_mine,
        logged_marks=lambda: last_marks(places, entity.name, clock),
        backfill=context.backfill,
        read_so_far=lambda rows: context.progress(entity.name, rows),
    )


def _told(row: RunRow, landing: Landing[Change], computing: "Computing") -> RunRow:
    """The row with what the landing did."""
    if isinstance(landing, Landed):
        change, counts = landing.change, landing.change.counts
        return replace(
            row,
            status=RunStatus.SUCCEEDED if change.moves_data else RunStatus.NO_CHANGE,
            rows_read=counts.read,
            rows_inserted=counts.inserted,
            rows_updated=counts.updated,
            rows_deleted=counts.deleted,
            rows_quarantined=counts.quarantined,
            files_added=len(change.adds),
            files_removed=len(change.removes),
            version_before=change.base,
            version_after=landing.version,
            watermark_before=change.marks_before,
            watermark_after=change.marks,
            checks=change.checks,
        )
    if isinstance(landing, AlreadyDone):
        return _already(row, landing)
    marks = computing.known.text
    return replace(
        row,
        status=RunStatus.NO_CHANGE,
        rows_read=computing.last_read.rows if computing.last_read else 0,
        version_before=computing.base,
        version_after=computing.base,
        watermark_before=marks,
        watermark_after=marks,
    )


def _already(row: RunRow, landing: AlreadyDone) -> RunRow:
    author = landing.author
    if author is None:
        return replace(row, status=RunStatus.ALREADY_DONE, error="The run key's effect is in the table already.")
    who = f"agent {author.agent or 'unknown'}, attempt {author.attempt}"
    return replace(
        row,
        status=RunStatus.ALREADY_DONE,
        version_after=author.version,
        error=f"The run key's effect is in the table already, as version {author.version} by {who}.",
    )


def _whose(landing: Landing[Change]) -> str:
    """The attempt whose effect is in the table; empty when there is none or it can't be told."""
    if isinstance(landing, Landed):
        return landing.attempt_id
    return landing.author.attempt_id if isinstance(landing, AlreadyDone) and landing.author else ""


def _settled(row: RunRow, computing: "Computing", attempt_id: str) -> RunRow:
    """Clean the quarantine of lost attempts. The data has landed, so a failure here is told beside it."""
    try:
        computing.quarantine.settle(attempt_id)
    except FdagentError as err:
        left = CheckResult(f"rows of lost attempts are still in quarantine: {err}", "warn", 0)
        return replace(row, checks=(*row.checks, left))
    return row
