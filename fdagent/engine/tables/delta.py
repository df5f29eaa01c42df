"""The table port over a real Delta table in a local folder.

Guarantees
- `open` pins one version; everything a snapshot answers is of that version, and `commit` asks for exactly the next one
  (`max_commit_retries=0`).
- `commit` puts the data files and, after it, the log on disk (fsync), so that what landed survives a power loss.
- An answer is only an answer: a refusal is Conflict where the version is taken; Denied and DiskFull are raised only
  while the version is still free; everything else is Unknown, with delta-rs's own words.

Does not decide whether anything landed: `landing.py` opens the table anew for that. A table with more than reader 1 and
writer 2 asks for, with partitions, or that is append-only by its own property is read but never written.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake import Field as DeltaField
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction, Transaction

from fdagent.engine.change import Change, DataFile, commit_info
from fdagent.engine.schema import STATS_PROPERTY, Field
from fdagent.errors import Conflict, Denied, DiskFull, NotATable, SchemaRefused, Unavailable, Unknown
from fdagent.ports import Author, Clock, Note

if TYPE_CHECKING:
    from arro3.core import Table as ArrowTable

LOG = "_delta_log"
RECENT_COMMITS = 20
"""How far back the latest commit infos are read first; the whole log only when they don't hold it."""
LOG_DAYS = 30
TRANSACTION_DAYS = 400
"""How long run keys are remembered: over the longest deadline (366 days) and 30 days more."""
CHECKPOINT_EVERY = 10
LEAST_FREE_BYTES = 1024 * 1024

PROPERTIES = {
    "delta.logRetentionDuration": f"interval {LOG_DAYS} days",
    "delta.setTransactionRetentionDuration": f"interval {TRANSACTION_DAYS} days",
    "delta.checkpointInterval": str(CHECKPOINT_EVERY),
}

_ONCE = CommitProperties(max_commit_retries=0)
_HOOKS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


@dataclass(frozen=True)
class Snapshot:
    """One pinned version; `handle` is None while there is no table."""

    folder: Path
    handle: DeltaTable | None = None

    @cached_property
    def version(self) -> int:
        """The pinned version; -1 when there is no table."""
        return -1 if self.handle is None else self.handle.version()

    @cached_property
    def id(self) -> str:
        """The table's own id: another one means that the table was made anew."""
        return "" if self.handle is None else str(self.handle.metadata().id)

    @cached_property
    def fields(self) -> tuple[Field, ...] | None:
        """The columns; None when there is no table. A nested type is given as text that no batch has."""
        if self.handle is None:
            return None
        return tuple(Field(field.name, _type_text(field.type), field.nullable) for field in self.handle.schema().fields)

    @cached_property
    def never_loaded(self) -> bool:
        """Is it as this program created it: no row, and a whole log without a load? Then nothing depends on its columns."""
        if self.handle is None or self.version >= RECENT_COMMITS or self.files:
            return False
        configured = self.handle.metadata().configuration
        own = PROPERTIES.items() <= configured.items() and STATS_PROPERTY not in configured
        infos = self.handle.history(RECENT_COMMITS) if own else []
        return len(infos) == self.version + 1 and not any("app_id" in info for info in infos)

    @cached_property
    def actions(self) -> "ArrowTable | None":
        """The version's files with their statistics, flattened; None when there are none."""
        if self.handle is None:
            return None
        found = self.handle.get_add_actions(flatten=True)
        return found if found.num_rows else None

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        """The version's files."""
        if self.actions is None:
            return ()
        columns = [self.actions[name].to_pylist() for name in ("path", "size_bytes", "num_records")]
        return tuple(DataFile(path, size, rows) for path, size, rows in zip(*columns, strict=True))

    @property
    def rows(self) -> int | None:
        """Rows of the version by its statistics; None where a file has none."""
        counts = [file.rows for file in self.files]
        return None if None in counts else sum(count or 0 for count in counts)

    def stats(self, end: Literal["min", "max"], column: str) -> dict[str, Any]:
        """Each file's least or greatest value of a column, by the file's path, where its statistics say."""
        if self.actions is None or f"{end}.{column}" not in self.actions.schema.names:
            return {}
        columns = (self.actions[name].to_pylist() for name in ("path", f"{end}.{column}"))
        return {path: value for path, value in zip(*columns, strict=True) if value is not None}

    def path(self, file: DataFile) -> str:
        """Where a file lies on disk: the log writes paths as URLs."""
        return str(self.folder / unquote(file.path))

    @property
    def raw_parquet(self) -> bool:
        """Do its Parquet files hold exactly its rows and columns: no deletion vectors, partitions, renamed columns?"""
        if self.handle is None:
            return True
        features = set(self.handle.protocol().reader_features or ())
        mapped = self.handle.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
        return not (
            features & {"deletionVectors", "columnMapping"} or mapped or self.handle.metadata().partition_columns
        )

    def infos(self) -> Iterator[Mapping[str, Any]]:
        """Commit infos, newest first, as far back as the log still goes; the whole log is read only when asked for."""
        if self.handle is None:
            return
        recent = self.handle.history(RECENT_COMMITS)
        yield from recent
        if len(recent) == RECENT_COMMITS:
            yield from self.handle.history()[RECENT_COMMITS:]

    def has_txn(self, app_id: str) -> bool:
        """Does this version hold a transaction of `app_id`?"""
        return self.handle is not None and self.handle.transaction_version(app_id) is not None

    @property
    def committed_ms(self) -> int:
        """When the version was committed, by its writer's clock, in milliseconds since the epoch; 0 when not known."""
        recent = self.handle.history(1) if self.handle is not None else []
        return int(recent[0].get("timestamp", 0)) if recent else 0

    def require_writable(self, entity: str) -> None:
        """Refuse a table whose rules this version would not keep.

        Raises:
            SchemaRefused: Says which.
        """
        if self.handle is None:
            return
        protocol, metadata = self.handle.protocol(), self.handle.metadata()
        problems = []
        if protocol.min_reader_version > 1 or protocol.min_writer_version > 2:
            asks = f"reader {protocol.min_reader_version} and writer {protocol.min_writer_version}"
            problems.append(f"it asks for {asks}, this version writes tables of reader 1 and writer 2")
        if metadata.partition_columns:
            problems.append(f"it is partitioned by {', '.join(metadata.partition_columns)}")
        if metadata.configuration.get("delta.appendOnly") == "true":
            problems.append("its property delta.appendOnly is true")
        if any("delta.invariants" in field.metadata for field in self.handle.schema().fields):
            problems.append("a column has an invariant (delta.invariants)")
        if problems:
            raise SchemaRefused(
                f"The table of {entity} can't be written: {'; '.join(problems)}.",
                fix="Another writer made it so; write into a table of its own, or undo that.",
            )


class DeltaTablePort:
    """The port over one folder.

    Args:
        folder: The table's folder; it need not be there yet.
        clock: For the deletion times in the log.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        if any(sign in str(folder) for sign in "%*?["):
            # delta-rs takes % for an escape, DuckDB the others for a pattern: they would not mean the same folder.
            raise NotATable(
                f"The table's folder {folder} has one of % * ? [ in its path.",
                fix="Put the project into a folder without.",
            )
        self.folder = folder
        self._clock = clock

    def open(self) -> Snapshot:
        """The newest version, pinned.

        Raises:
            NotATable: The folder holds something else, or a log that can't be read.
            Denied: No rights there.
            Unavailable: The folder can't be read for another reason.
        """
        try:
            if not self.folder.exists() or not any(self.folder.iterdir()):
                return Snapshot(self.folder)
            return Snapshot(self.folder, DeltaTable(str(self.folder)))
        except TableNotFoundError as err:
            return self._without_log(err)
        except NotADirectoryError as err:
            raise self._not_a_table("it is a file") from err
        except PermissionError as err:
            raise Denied(f"No rights to read the table's folder {self.folder}.", fix="Give this user access.") from err
        except OSError as err:
            raise Unavailable(f"The table's folder {self.folder} can't be read: {err}.") from err
        except DeltaError as err:
            raise self._not_a_table(f"its log can't be read ({_brief(err)})") from err

    def at(self, version: int) -> Snapshot | None:
        """An older version; None when the log no longer reaches back to it."""
        try:
            return Snapshot(self.folder, DeltaTable(str(self.folder), version=version))
        except (DeltaError, OSError):
            return None

    def has_txn(self, snapshot: Snapshot, app_id: str) -> bool:
        """Does this version hold a transaction of `app_id`?"""
        return snapshot.has_txn(app_id)

    def author(self, snapshot: Snapshot, app_id: str) -> Author | None:
        """Who committed `app_id`, by the commit infos that are still there."""
        for info in snapshot.infos():
            if info.get("app_id") == app_id:
                return Author(
                    attempt_id=str(info.get("attempt_id", "")),
                    agent=str(info.get("agent", "")),
                    attempt=int(info.get("attempt", 0)),
                    version=int(info.get("version", -1)),
                )
        return None

    def commit(self, snapshot: Snapshot, change: Change, note: Note) -> None:
        """Commit the change as version `snapshot.version + 1`, with the run key's transaction.

        Raises:
            Conflict: That version is taken; nothing of this change was written to the log.
            Unknown: It may have landed.
            Denied, DiskFull: It did not land, and trying again would end the same way.
        """
        if snapshot.handle is None:
            raise AssertionError("a change was committed to a table that is not there")
        # The transaction expires some time after `last_updated`. On a machine whose clock is far behind it would be born
        # expired to everybody else, so it is never older than the version below it.
        now = int(self._clock.wall() * 1000)
        removes = [RemoveAction(file.path, True, now, size=file.size, partition_values={}) for file in change.removes]
        adds = [AddAction(file.path, file.size, {}, now, True, file.stats) for file in change.adds]
        with self._answers(snapshot):
            self._sync([self.folder / file.path for file in change.adds], self.folder)
            snapshot.handle.create_write_transaction(
                [*removes, *adds],
                "append",
                snapshot.handle.schema(),
                commit_properties=CommitProperties(
                    max_commit_retries=0,
                    custom_metadata=commit_info(change, note),
                    app_transactions=[Transaction(note.app_id, 1, max(now, snapshot.committed_ms))],
                ),
                post_commithook_properties=_HOOKS,
            )
            self._sync([self._log_file(snapshot.version + 1)], self.folder / LOG)

    def discard(self, change: Change) -> None:
        """Remove the data files this change wrote."""
        for file in change.adds:
            (self.folder / file.path).unlink(missing_ok=True)

    def create(self, fields: Sequence[Field], properties: Mapping[str, str] | None = None) -> None:
        """Create the table, empty; harmless when it is there.

        Raises:
            Denied, DiskFull, Unknown: See `commit`.
        """
        with self._answers(Snapshot(self.folder)):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                DeltaTable.create(
                    str(self.folder),
                    _delta_schema(fields),
                    mode="error",
                    configuration={**PROPERTIES, **(properties or {})},
                    commit_properties=_ONCE,
                )
            except DeltaError:
                if not DeltaTable.is_deltatable(str(self.folder)):
                    raise
            self._sync([self._log_file(0)], self.folder / LOG, self.folder, self.folder.parent)

    def add_columns(self, snapshot: Snapshot, fields: Sequence[Field]) -> None:
        """Add columns to the version that was read.

        Raises:
            Conflict, Unknown, Denied, DiskFull: See `commit`.
        """
        if snapshot.handle is None:
            raise AssertionError("columns were added to a table that is not there")
        with self._answers(snapshot):
            # A handle of its own: delta-rs moves the one it alters to the new version, and a snapshot stays pinned.
            DeltaTable(str(self.folder), version=snapshot.version).alter.add_columns(
                _delta_schema(fields).fields,
                commit_properties=_ONCE,
                post_commithook_properties=_HOOKS,
            )

    def replace_columns(self, snapshot: Snapshot, fields: Sequence[Field]) -> None:
        """Give the version that was read, which was never loaded, these columns in place of its own.

        Raises:
            Conflict, Unknown, Denied, DiskFull: See `commit`.
        """
        with self._answers(snapshot):
            DeltaTable(str(self.folder), version=snapshot.version).create_write_transaction(
                [],
                "overwrite",
                _delta_schema(fields),
                commit_properties=_ONCE,
                post_commithook_properties=_HOOKS,
            )

    def _without_log(self, err: TableNotFoundError) -> Snapshot:
        others = sorted(entry.name for entry in self.folder.iterdir() if entry.name != LOG)
        if others:
            raise self._not_a_table(f"it has {others[0]!r} and no Delta log") from err
        return Snapshot(self.folder)

    def _not_a_table(self, why: str) -> NotATable:
        return NotATable(
            f"{self.folder} is not a Delta table: {why}.", fix="Move it away, or give the entity another name."
        )

    def _log_file(self, version: int) -> Path:
        return self.folder / LOG / f"{version:020d}.json"

    @contextlib.contextmanager
    def _answers(self, snapshot: Snapshot) -> Iterator[None]:
        """Turn what went wrong with a commit on `snapshot` into one of the port's errors."""
        try:
            yield
        except Exception as err:
            if self._log_file(snapshot.version + 1).exists():
                if isinstance(err, CommitFailedError):
                    raise Conflict(f"Version {snapshot.version + 1} of {self.folder} is taken.") from err
                raise Unknown(f"The commit to {self.folder} gave no clear answer: {_brief(err)}.") from err
            if _no_rights(err, self.folder):
                raise Denied(
                    f"No rights to write the table's folder {self.folder}.", fix="Give this user access."
                ) from err
            if _no_room(err, self.folder):
                raise DiskFull(
                    f"No room is left on the disk of {self.folder}.", fix="Free some and run again."
                ) from err
            raise Unknown(f"The commit to {self.folder} gave no clear answer: {_brief(err)}.") from err

    @staticmethod
    def _sync(files: Sequence[Path], *folders: Path) -> None:
        """Put files on disk, and the folders that name them where the system can (not on Windows)."""
        for path in [*files, *(folders if os.name == "posix" else ())]:
            handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _delta_schema(fields: Sequence[Field]) -> DeltaSchema:
    return DeltaSchema([DeltaField(field.name, PrimitiveType(field.type)) for field in fields])


def _type_text(kind: Any) -> str:
    return str(kind.type) if isinstance(kind, PrimitiveType) else str(kind)


def _brief(err: Exception) -> str:
    """delta-rs's own words, without its backtrace."""
    return str(err).strip().split("\n", 1)[0][:300].rstrip(".")


def _no_rights(err: Exception, folder: Path) -> bool:
    log = folder / LOG
    said = str(err).lower()
    return isinstance(err, PermissionError) or "os error 13" in said or (log.exists() and not os.access(log, os.W_OK))


def _no_room(err: Exception, folder: Path) -> bool:
    said = str(err).lower()
    return "os error 28" in said or "no space left" in said or disk_usage(folder).free < LEAST_FREE_BYTES
