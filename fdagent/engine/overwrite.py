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
    deleted = snapshot.rows if snapshot.rows is not None else target.duck.number(f"SELECT count(*) FROM {_old(target)}")
    return Moved(adds, snapshot.files, new, inserted=sum(file.rows for file in adds), deleted=deleted)


def changes_nothing(target: Target, moved: Moved) -> bool:
    """Does an overwrite leave the very rows that were there?"""
    says = [name for name in target.shape.names if name not in META]
    return moved.inserted == moved.deleted and bool(says) and _equal(target.duck, _old(target), moved.changed, says)


def _old(target: Target) -> str:
    return parquet(target.shape.fields, [target.snapshot.path(file) for file in target.snapshot.files])


def _equal(duck: Duck, old: str, new: str, says: list[str]) -> bool:
    """Do two relations of equally many rows have the same rows, each as often?"""
    columns = idents(says)
    fingerprints = [duck.row(f"SELECT sum(hash({columns})::HUGEINT) FROM {relation}") for relation in (old, new)]
    if fingerprints[0] != fingerprints[1]:
        return False
    return not duck.rows(f"SELECT 1 FROM (SELECT {columns} FROM {old} EXCEPT ALL SELECT {columns} FROM {new}) LIMIT 1")
