"""Slowly changing dimension, type 1: each key's newest row, changed in place.

Guarantees
- Inside a batch the newest row by `order_by` wins; equal rows count once; a tie between different rows is never settled
  by chance: all rows of that key go to quarantine, or the load fails, as declared.
- A late row never overwrites a newer one. With an equal `order_by` the row that comes later wins; NULL is older than
  any value.
- Rows are compared column by column, NULLs included (`IS DISTINCT FROM`); where a row came from and when (`_file`,
  `_loaded_at`) does not make it another row. An unchanged row is not written again.
- Files are pruned by statistics, those that hold a changed row are found by their keys and values, and only those are
  rewritten, streaming, a few at a time in the order of their keys: a file keeps its range of keys, so that the next
  merge can prune again.

Several rows of one key in the table (another writer's) become one when that key changes.
"""

from collections.abc import Sequence

from fdagent.engine.change import DataFile, NewFile
from fdagent.engine.duck import Duck, ident, idents, text
from fdagent.engine.prune import candidates
from fdagent.engine.sources.csv import FILE, META
from fdagent.engine.sources.tables import parquet
from fdagent.engine.target import Moved, Target
from fdagent.engine.write import FILE_BYTES
from fdagent.errors import CheckFailed, RunError
from fdagent.project.model import Load

TIE = "several different rows of this key, none of them newest"
TWICE = "several different rows of this key"


def distinct_keys(duck: Duck, rows: str, load: Load, names: Sequence[str], refused: str) -> str:
    """The batch with at most one row a key.

    Args:
        duck: Runs the queries.
        rows: The batch, without NULL keys.
        load: Key, order and what to do with several rows of a key.
        names: The batch's columns.
        refused: A table (file, line, reason, row) that gets the rows that can't be told apart.

    Raises:
        CheckFailed: A key has several different rows and `on_duplicate_key = "fail"`.
    """
    key = idents(load.key)
    repeated = duck.name("repeated keys")
    duck.rows(f"CREATE TEMP TABLE {repeated} AS SELECT {key} FROM {rows} GROUP BY {key} HAVING count(*) > 1")
    if not duck.number(f"SELECT count(*) FROM {repeated}"):
        return rows
    ranked = _ranked(duck, f"{rows} SEMI JOIN {repeated} USING ({key})", load, names)
    if load.on_duplicate_key == "fail":
        _require_single(duck, ranked, load)
    bad, reason = ("tops > 1", TIE) if load.on_duplicate_key == "newest" else ("rivals > 1", TWICE)
    said = f"{reason}: {', '.join(load.key)}"
    file = ident(FILE) if FILE in names else "NULL"
    row = ", ".join(f"{text(name)}: {ident(name)}" for name in names)
    duck.rows(
        f"INSERT INTO {refused} SELECT {file}, NULL, {text(said)}, CAST(to_json({{{row}}}) AS VARCHAR) "
        f"FROM {ranked} WHERE {bad}"
    )
    single = duck.name("batch")
    columns = idents(names)
    duck.rows(
        f"CREATE TEMP TABLE {single} AS SELECT {columns} FROM {rows} ANTI JOIN {repeated} USING ({key}) "
        f"UNION ALL SELECT {columns} FROM {ranked} WHERE top AND NOT {bad}"
    )
    return single


def _ranked(duck: Duck, rows: str, load: Load, names: Sequence[str]) -> str:
    """Different rows of repeated keys: whether each is among its key's newest (`top`), how many are, how many there are."""
    says = [name for name in names if name not in META]
    meta = "".join(f", max({ident(name)}) AS {ident(name)}" for name in names if name in META)
    key = idents(load.key)
    order = ident(load.order_by) if load.order_by else "NULL"
    ranked = duck.name("ranked")
    duck.rows(
        f"CREATE TEMP TABLE {ranked} AS SELECT *, count(*) FILTER (WHERE top) OVER (PARTITION BY {key}) AS tops FROM ("
        f"SELECT *, {order} IS NOT DISTINCT FROM max({order}) OVER (PARTITION BY {key}) AS top, "
        f"count(*) OVER (PARTITION BY {key}) AS rivals "
        f"FROM (SELECT {idents(says)}{meta} FROM {rows} GROUP BY {idents(says)}))"
    )
    return ranked


def _require_single(duck: Duck, ranked: str, load: Load) -> None:
    key = idents(load.key)
    rivals = duck.rows(f"SELECT {key} FROM {ranked} WHERE rivals > 1 GROUP BY {key} ORDER BY {key} LIMIT 1")
    if rivals:
        shown = ", ".join(f"{name} = {value}" for name, value in zip(load.key, rivals[0], strict=True))
        raise CheckFailed(
            f"The batch has different rows of one key ({shown}), and on_duplicate_key is fail.",
            fix="Nothing was written.",
        )


def merge(target: Target, batch: str, load: Load) -> Moved:
    """Bring a batch of distinct keys into the table.

    Args:
        target: The pinned table.
        batch: A temporary table of the table's columns, at most one row a key.
        load: Key and order.
    """
    duck, fields = target.duck, target.shape.fields
    key_fields = [field for field in fields if field.name in load.key]
    files = candidates(duck, target.snapshot, batch, key_fields)
    key = idents(load.key)
    matched, updates = duck.name("matched"), duck.name("updates")
    old = parquet(fields, [target.snapshot.path(file) for file in files], located=True)
    same, late = _judged(target, load)
    duck.rows(
        f"CREATE TEMP TABLE {matched} AS SELECT {idents(load.key, 'b.')}, t.__file AS n, {same} AS same, {late} AS late "
        f"FROM {old} t JOIN {batch} b USING ({key})"
    )
    duck.rows(
        f"CREATE TEMP TABLE {updates} AS SELECT {key}, min(n) AS n FROM {matched} WHERE NOT same GROUP BY {key} "
        "HAVING NOT bool_or(late)"
    )
    new = f"(SELECT * FROM {batch} ANTI JOIN {matched} USING ({key}))"
    updated, inserted = (duck.number(f"SELECT count(*) FROM {relation}") for relation in (updates, new))
    touched = duck.rows(f"SELECT DISTINCT m.n FROM {matched} m SEMI JOIN {updates} USING ({key})")
    removes = [files[n] for (n,) in touched]
    adds = _rewrite(target, batch, load, files=files, touched={n for (n,) in touched}, updates=updates, new=new)
    _require_all(
        target, adds, removes, f"SELECT count(*) FROM {matched} SEMI JOIN {updates} USING ({key})", updated + inserted
    )
    changed = f"(SELECT * FROM {batch} SEMI JOIN {updates} USING ({key}) UNION ALL SELECT * FROM {new})"
    return Moved(adds, tuple(removes), changed, inserted=inserted, updated=updated)


def _judged(target: Target, load: Load) -> tuple[str, str]:
    """SQL over the table's row `t` and the batch's row `b`: do they say the same; is the batch's the older one?"""
    says = [name for name in target.shape.names if name not in META and name not in load.key]
    same = " AND ".join(f"t.{ident(name)} IS NOT DISTINCT FROM b.{ident(name)}" for name in says) or "true"
    if not load.order_by:
        return same, "false"
    there, here = f"t.{ident(load.order_by)}", f"b.{ident(load.order_by)}"
    return same, f"coalesce({there} > {here}, {here} IS NULL AND {there} IS NOT NULL)"


def _rewrite(
    target: Target, batch: str, load: Load, *, files: Sequence[DataFile], touched: set[int], updates: str, new: str
) -> tuple[NewFile, ...]:
    """Write touched files anew, their changed rows among them, and the new rows behind the last ones."""
    names, key = idents(target.shape.names), idents(load.key)
    adds: list[NewFile] = []
    bins = _bins(target, load.key[0], {n: files[n] for n in touched}) or [[]]
    try:
        for number, members in enumerate(bins):
            parts = []
            if members:
                old = parquet(target.shape.fields, [target.snapshot.path(files[n]) for n in members])
                here = f"(SELECT {key} FROM {updates} WHERE n IN ({', '.join(map(str, members))}))"
                parts = [f"SELECT {names} FROM {old} ANTI JOIN {updates} USING ({key})"]
                parts += [f"SELECT {names} FROM {batch} SEMI JOIN {here} USING ({key})"]
            if number == len(bins) - 1:
                parts.append(f"SELECT {names} FROM {new}")
            adds += target.write(" UNION ALL ".join(parts), f"{number}")
    except BaseException:
        target.discard(adds)
        raise
    return tuple(adds)


def _bins(target: Target, key: str, touched: dict[int, DataFile]) -> list[list[int]]:
    """Files that are rewritten together: neighbours by their least key, up to the size of one data file."""
    least = target.snapshot.stats("min", key)
    order = sorted(
        touched, key=lambda n: (touched[n].path not in least, least.get(touched[n].path, 0), touched[n].path)
    )
    bins: list[list[int]] = []
    room = 0
    for n in order:
        if not bins or touched[n].size > room:
            bins.append([])
            room = FILE_BYTES
        bins[-1].append(n)
        room -= touched[n].size
    return bins


def _require_all(target: Target, adds: Sequence[NewFile], removes: Sequence[DataFile], gone: str, written: int) -> None:
    """Count again before anything is committed: every old row that was not replaced, and every new one, is there."""
    duck = target.duck
    old = parquet(target.shape.fields, [target.snapshot.path(file) for file in removes])
    expected = duck.number(f"SELECT count(*) FROM {old}") - duck.number(gone) + written
    found = sum(file.rows for file in adds)
    if found != expected:
        target.discard(adds)
        raise RunError(f"The rewritten files of {target.entity} have {found} rows where {expected} are due.")
