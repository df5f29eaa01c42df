"""Append: the computed rows come to those that are there.

Guarantees: files are only added, so the change holds on any later version with the same marks and columns, and a busy
writer of the same table can't starve it.
"""

from fdagent.engine.duck import idents
from fdagent.engine.sources.tables import parquet
from fdagent.engine.target import Moved, Target


def append(target: Target, rows: str) -> Moved:
    """Add rows.

    Args:
        target: The pinned table.
        rows: The relation of the table's columns to add.
    """
    adds = target.write(f"SELECT {idents(target.shape.names)} FROM {rows}", "0")
    changed = parquet(target.shape.fields, [str(target.snapshot.folder / file.path) for file in adds])
    return Moved(adds, (), changed, inserted=sum(file.rows for file in adds))
