"""Overwrite: the table becomes exactly the computed rows, in one commit.

Guarantees: a table that already has exactly these rows (where they came from and when aside) is left alone, so that a
run that changes nothing makes no version and nobody downstream reads it anew. Equal is decided row by row; a sum of
hashes only spares that where it says "different".
"""

from fdagent.engine.duck import Duck, idents
from fdagent.engine.sources.csv import META
from fdagent.engine.sources.tables import parquet
from fdagent.engine.target import Moved, Target


def overwrite(target: Target, rows: str) -> Moved:
    """Replace everything.

    Args:
        target: The pinned table.
        rows: The relation of the table's columns that is to be all of it.
    """
    snapshot, fields = target.snapshot, target.shape.fields
    adds = target.write(f"SELECT {idents(target.shape.names)} FROM {rows}", "0")
    new = parquet(fields, [str(snapshot.folder / file.path) for file in adds])
    old = parquet(fields, [snapshot.path(file) for file in snapshot.files])
    inserted = sum(file.rows for file in adds)
    try:
        deleted = snapshot.rows if snapshot.rows is not None else target.duck.number(f"SELECT count(*) FROM {old}")
        says = [name for name in target.shape.names if name not in META]
        if deleted == inserted and _equal(target.duck, old, new, says):
            target.discard(adds)
            return Moved((), (), parquet(fields, []))
    except BaseException:
        target.discard(adds)
        raise
    return Moved(adds, snapshot.files, new, inserted=inserted, deleted=deleted)


def _equal(duck: Duck, old: str, new: str, says: list[str]) -> bool:
    """Do two relations of equally many rows have the same rows, each as often?"""
    columns = idents(says)
    if not columns:
        return False
    fingerprints = [duck.row(f"SELECT sum(hash({columns})::HUGEINT) FROM {relation}") for relation in (old, new)]
    if fingerprints[0] != fingerprints[1]:
        return False
    return not duck.rows(f"SELECT 1 FROM (SELECT {columns} FROM {old} EXCEPT ALL SELECT {columns} FROM {new}) LIMIT 1")
