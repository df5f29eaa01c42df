"""A job's progress as its request's status shows it.

Guarantees: a table that was finished in an earlier hold of the request stays in the status with who finished it and what
that wrote, also once a later hold has found it done already; a table that nothing was said of is not shown. Only states
of the published contract are shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from models.run import RunStatus
from models.status import Status, TableResult

SHOWN = frozenset({*map(str, RunStatus), "running"})
"""A table that only waits, or whose lease could not be had, is none of these."""
FINISHED = frozenset({"succeeded", "no_change", "already_done"})


def results(tables: Mapping[str, Mapping[str, Any]], agent: str, before: Status | None) -> dict[str, Any]:
    """The fields `tables`, `run_ids` and `rows_written` of a status.

    Args:
        tables: The job's progress: per entity its state, rows and run id.
        agent: Who runs the job.
        before: The status as it is.
    """
    earlier = {} if before is None or before.tables is None else {table.entity: table for table in before.tables}
    now = {name: _shown(name, at, agent, earlier.get(name)) for name, at in tables.items() if at.get("state") in SHOWN}
    shown = tuple({name: table for name, table in earlier.items() if name is not None and name not in now}.values())
    shown += tuple(now.values())
    kept = () if before is None or before.run_ids is None else before.run_ids
    return {
        "tables": shown,
        "run_ids": _once([*kept, *(table.run_id for table in shown)]),
        "rows_written": sum(table.rows_written or 0 for table in shown),
    }


def _shown(name: str, at: Mapping[str, Any], agent: str, was: TableResult | None) -> TableResult:
    state = str(at["state"])
    table = TableResult(
        entity=name,
        state=state,
        run_id=at.get("run_id"),
        rows_read=at.get("read"),
        rows_written=at.get("rows"),
        quarantined=at.get("quarantined"),
        by=agent if state in FINISHED else None,
        error=at.get("error") or None,
    )
    if state != RunStatus.ALREADY_DONE:
        return table
    if was is None or was.state not in FINISHED:
        # Its effect is there; who made it did not live to say so.
        return replace(table, by=None)
    return replace(
        table, by=was.by, rows_read=was.rows_read, rows_written=was.rows_written, quarantined=was.quarantined
    )


def _once(ids: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in ids if name))
