"""The run log and the check log: Delta tables in LH_Meta, one row per table and run, one per check of it.

Guarantees: a batch of rows is appended once, however often its append is repeated or its answer lost (the batch's name
is the transaction). Rows are read by the files' own times, so that the newest of a long log cost a few files. Does not
compact or clean: the maintainer does.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fdagent.ports import Clock, Ids, Note
from fdagent.project.places import Places
from models.run import CheckResult, RunRow, RunStatus

if TYPE_CHECKING:
    from pathlib import Path

    from fdagent.engine.duck import Duck
    from fdagent.engine.schema import Field
    from fdagent.engine.tables.delta import Snapshot

TIMES = ("started_at", "finished_at")
NEWEST_FIRST = "finished_at"
KNOWS_MARKS = (RunStatus.SUCCEEDED, RunStatus.NO_CHANGE)


def stamp_ms(seconds_since_epoch: float) -> str:
    """A time of the run log as text, UTC, to the millisecond: `2027-01-15T09:00:00.250Z`."""
    moment = datetime.fromtimestamp(round(seconds_since_epoch, 3), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def append_rows(places: Places, batch: str, rows: Sequence[RunRow], *, clock: Clock, ids: Ids) -> None:
    """Append rows of ended tables to the run log, and their checks to the check log.

    Args:
        places: The environment.
        batch: The batch's name: the same name is never appended twice.
        rows: The rows.
        clock: For the landing.
        ids: For the landing.

    Raises:
        TableBusy, Unknown, Denied, DiskFull, NotATable: The rows may not all be there; append the batch again.
    """
    if not rows:
        return
    values = [{**row.to_json(), "checks": json.dumps(row.to_json()["checks"])} for row in rows]
    _append(places.run_log, _run_fields(), values, f"fdagent/run_log/{batch}", clock=clock, ids=ids)
    checks = [
        {
            "run_id": row.run_id,
            "run_key": row.run_key,
            "env": row.env,
            "entity": row.entity,
            "finished_at": row.finished_at,
            "check": check.check,
            "severity": check.severity,
            "rows": check.rows,
        }
        for row in rows
        for check in row.checks
    ]
    if checks:
        _append(places.check_log, _check_fields(), checks, f"fdagent/check_log/{batch}", clock=clock, ids=ids)


def read_rows(places: Places, *, last: int, clock: Clock) -> list[RunRow]:
    """The newest rows of the run log, newest first.

    Raises:
        NotATable, Denied, Unavailable: See the port.
    """
    found = _newest(places.run_log, "true", last, clock)
    return [_row(values) for values in found]


def last_marks(places: Places, entity: str, clock: Clock) -> str | None:
    """The marks after the entity's newest run that finished; None when the log has none."""
    statuses = ", ".join(f"'{status}'" for status in KNOWS_MARKS)
    name = entity.replace("'", "''")
    where = f"entity = '{name}' AND status IN ({statuses}) AND watermark_after <> ''"
    found = _newest(places.run_log, where, 1, clock)
    return str(found[0]["watermark_after"]) if found else None


def _newest(folder: "Path", where: str, last: int, clock: Clock) -> list[dict[str, Any]]:
    from fdagent.engine.duck import Duck
    from fdagent.engine.tables.delta import DeltaTablePort

    snapshot = DeltaTablePort(folder, clock).open()
    if snapshot.handle is None or not snapshot.files:
        return []
    with Duck() as duck:
        found: list[dict[str, Any]] = []
        for rows in _parts(snapshot, last):
            found = duck.dicts(
                f"SELECT * FROM {rows} WHERE {where} ORDER BY {NEWEST_FIRST} DESC, run_id, entity LIMIT {int(last)}"
            )
            if len(found) == last:
                break
        return found


def _parts(snapshot: "Snapshot", last: int) -> list[str]:
    """The newest files that must hold the newest `last` rows; then, should they not do, all of them."""
    from fdagent.engine.metatable import rows_of
    from fdagent.engine.sources.tables import parquet

    actions = snapshot.actions
    ends = {f"min.{NEWEST_FIRST}", f"max.{NEWEST_FIRST}"}
    if actions is None or not ends <= set(actions.schema.names):
        return [rows_of(snapshot)]
    spans = zip(
        snapshot.files,
        actions[f"min.{NEWEST_FIRST}"].to_pylist(),
        actions[f"max.{NEWEST_FIRST}"].to_pylist(),
        strict=True,
    )
    known = sorted((span for span in spans if span[2] is not None), key=lambda span: span[2], reverse=True)
    held, oldest = 0, None
    for file, least, _ in known:
        held += file.rows or 0
        oldest = least if oldest is None else min(oldest, least)
        if held >= last:
            break
    newest = [snapshot.path(file) for file, _, greatest in known if oldest is not None and greatest >= oldest]
    return [parquet(snapshot.fields or (), newest), rows_of(snapshot)]


def _append(
    folder: "Path", fields: "Sequence[Field]", values: list[dict[str, Any]], app_id: str, *, clock: Clock, ids: Ids
) -> None:
    from fdagent.engine.duck import Duck
    from fdagent.engine.metatable import MetaTable
    from fdagent.engine.tables.delta import DeltaTablePort

    table = MetaTable(DeltaTablePort(folder, clock), fields, ("finished_at", "entity", "run_id"), clock, ids)
    with Duck() as duck:
        table.append(
            duck,
            _relation(duck, fields, values),
            app_id=app_id,
            note=lambda own: Note(app_id, own, app_id, "", "", 0, ""),
            still_mine=lambda: None,
        )


def _relation(duck: "Duck", fields: "Sequence[Field]", values: list[dict[str, Any]]) -> str:
    """The rows as a temporary table, their types the log's."""
    from fdagent.engine.duck import ident
    from fdagent.engine.schema import duck_type

    table = duck.name("log rows")
    columns = ", ".join(f"unnest(?::{duck_type(field.type)}[]) AS {ident(field.name)}" for field in fields)
    # Column by column: a statement for each row would take 3 ms of every row.
    given = [[row[field.name] for row in values] for field in fields]
    duck.rows(f"CREATE TEMP TABLE {table} AS SELECT {columns}", given)
    return table


def _run_fields() -> "list[Field]":
    from fdagent.engine.schema import Field

    kinds = {"int": "long", "str": "string", "RunStatus": "string"}
    return [
        Field(name, "timestamp" if name in TIMES else kinds.get(getattr(field.type, "__name__", ""), "string"))
        for name, field in RunRow.__dataclass_fields__.items()
    ]


def _check_fields() -> "list[Field]":
    from fdagent.engine.schema import Field

    texts = [Field(name, "string") for name in ("run_id", "run_key", "env", "entity", "check", "severity")]
    return [*texts, Field("finished_at", "timestamp"), Field("rows", "long")]


def _row(values: dict[str, Any]) -> RunRow:
    """A row of the log as a value; columns of a newer version are left out."""
    known = {name: values[name] for name in RunRow.__dataclass_fields__ if values.get(name) is not None}
    for name in TIMES:
        known[name] = stamp_ms(known[name].timestamp())
    known["status"] = RunStatus(known["status"])
    known["checks"] = tuple(CheckResult(**check) for check in json.loads(known["checks"]))
    return RunRow(**known)
