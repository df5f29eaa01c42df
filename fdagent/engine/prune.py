"""Which files of a version can hold a key of a batch, by their statistics.

Guarantees: a file that is left out holds none of the keys; a file without statistics is never left out. Only types
whose order is the same for every writer are trusted (whole numbers, texts, dates, timestamps); a timestamp's greatest
value is taken a millisecond later, since some writers cut it. One nearest-match join a key column: files times log(keys).
"""

from collections.abc import Sequence

from fdagent.engine.change import DataFile
from fdagent.engine.duck import Duck, ident
from fdagent.engine.schema import Field
from fdagent.engine.tables.delta import Snapshot

TRUSTED = ("long", "integer", "short", "byte", "string", "date", "timestamp")


def candidates(duck: Duck, snapshot: Snapshot, batch: str, key: Sequence[Field]) -> tuple[DataFile, ...]:
    """The files that may hold a row with a key of `batch`."""
    actions = snapshot.actions
    if actions is None:
        return ()
    known = set(actions.schema.names)
    kept = {file.path for file in snapshot.files}
    duck.connection.register("fdagent_files", actions)
    for field in key:
        low, high = f"min.{field.name}", f"max.{field.name}"
        if field.type in TRUSTED and {low, high} <= known:
            kept &= {path for (path,) in duck.rows(_within(batch, field, ident(low), ident(high)))}
    duck.connection.unregister("fdagent_files")
    return tuple(file for file in snapshot.files if file.path in kept)


def _within(batch: str, field: Field, low: str, high: str) -> str:
    name = ident(field.name)
    end = f"{high} + INTERVAL '1 millisecond'" if field.type == "timestamp" else high
    return (
        f"SELECT path FROM fdagent_files WHERE {low} IS NULL OR {high} IS NULL UNION ALL "
        f"SELECT path FROM (SELECT path, {low} AS low, {end} AS high FROM fdagent_files) f "
        f"ASOF JOIN (SELECT DISTINCT {name} AS key FROM {batch}) k ON f.low <= k.key WHERE k.key <= f.high"
    )
