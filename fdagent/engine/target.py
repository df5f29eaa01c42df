"""The table a run writes, pinned, and what a load mode did to it.

Guarantees: files of one attempt have names of their own, so that a lost attempt's can be removed without a look at
anybody else's. Commits nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fdagent.engine.change import DataFile, NewFile
from fdagent.engine.duck import Duck, explained
from fdagent.engine.schema import Shape
from fdagent.engine.tables.delta import Snapshot
from fdagent.engine.write import write
from fdagent.errors import TransformFailed


@dataclass(frozen=True, slots=True)
class Moved:
    """What a load mode did: files, counts, and the relation of new and changed rows."""

    adds: tuple[NewFile, ...]
    removes: tuple[DataFile, ...]
    changed: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """One entity's table at one version, for one attempt. `keys`: columns that always have statistics."""

    duck: Duck
    snapshot: Snapshot
    entity: str
    shape: Shape
    attempt_id: str
    keys: tuple[str, ...] = ()

    def write(self, query: str, part: str) -> tuple[NewFile, ...]:
        """Write rows as data files of this attempt; `part` tells this call's files from its others.

        Raises:
            TransformFailed: The entity's SQL fails on its data.
            SchemaRefused, DiskFull: See `write.write`.
        """
        with explained(TransformFailed, f"The rows of {self.entity} can't be computed"):
            return write(
                self.duck,
                query,
                self.snapshot.folder,
                f"part-{self.attempt_id}-{part}",
                fields=self.shape.fields,
                keys=self.keys,
            )

    def discard(self, files: Sequence[NewFile]) -> None:
        """Remove files that were written and will not be committed."""
        for file in files:
            (self.snapshot.folder / file.path).unlink(missing_ok=True)
