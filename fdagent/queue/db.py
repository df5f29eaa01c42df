"""The queue file and its transactions: the only opener of both.

Guarantees
- A write transaction is taken whole (`BEGIN IMMEDIATE`) under a lock of the operating system, so it never fails for a
  rival's sake and no rival starves; `kill -9` releases both.
- `durable=True` survives power loss once it returned; `durable=False` survives `kill -9`, and what power loss may take
  back costs a re-run only (claims, renewals).
- Checkpoints are part of a commit or of a close, both under that same lock, so two never overlap: overlapping ones could
  damage the file in SQLite before 3.51.3.
- A file that is not a queue of ours is refused in a sentence and left as it is.

Does not work on a network drive.
"""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from fdagent.errors import DiskFull, GaveUp, HomeDenied, HomeError, QueueDamaged, QueueUnreadable
from fdagent.stores.filelock import FileLock

NAME, LOCK = "queue.sqlite3", "queue.lock"
APPLICATION_ID = 0x66646167
"""`fdag`: says in the file's header whose it is."""
SCHEMA_VERSION = 4
"""A later version of the file only has tables more, so an earlier file is brought up to it where it lies."""
BUSY_SECONDS = 30.0
"""How long a write waits for rivals before it gives up; a write transaction takes about a millisecond."""
CHECKPOINT_PAGES = 1000
"""The commit that fills the write-ahead log this far moves it into the file; a log of a few MB is written over and over,
which costs half of making it longer."""


class Database:
    """One connection to the queue file. Not for use by two threads at once: each opens its own.

    Args:
        home: The agent's home folder; made when it is missing.

    Raises:
        HomeDenied: No rights there.
        QueueUnreadable: The file is not a queue of ours.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / NAME
        self._lock: contextlib.AbstractContextManager[object] = FileLock(home / LOCK)
        self._full: bool | None = None
        with self._sentences():
            home.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                self._connection.row_factory = sqlite3.Row
                self._connection.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    @classmethod
    def over(cls, connection: sqlite3.Connection) -> Self:
        """A queue over a connection of the caller's, such as one in memory: no file of ours, so no lock either."""
        self = cls.__new__(cls)
        self.path, self._lock, self._full = Path(":memory:"), contextlib.nullcontext(), None
        self._connection = connection
        self._connection.row_factory = sqlite3.Row
        with self._sentences():
            self._prepare()
        return self

    def _prepare(self) -> None:
        run = self._connection.execute
        found = run("pragma application_id").fetchone()[0], run("pragma user_version").fetchone()[0]
        if found == (APPLICATION_ID, SCHEMA_VERSION):
            return
        with self._lock:
            empty = run("select count(*) from sqlite_schema").fetchone()[0] == 0
            again = run("pragma application_id").fetchone()[0], run("pragma user_version").fetchone()[0]
            if again == (APPLICATION_ID, SCHEMA_VERSION):
                return
            if not empty and not (again[0] == APPLICATION_ID and 0 < again[1] < SCHEMA_VERSION):
                raise QueueUnreadable(
                    f"{self.path} is a SQLite file, but not a queue of this version of fdagent.",
                    fix="Move it away, or name another home folder.",
                )
            from importlib import resources

            run("pragma journal_mode = wal")
            schema = resources.files("fdagent.queue").joinpath("schema.sql").read_text(encoding="utf-8")
            self._connection.executescript(
                f"begin immediate; {schema} pragma application_id = {APPLICATION_ID};"
                f" pragma user_version = {SCHEMA_VERSION}; commit;"
            )

    @contextlib.contextmanager
    def write(self, *, durable: bool) -> Iterator[sqlite3.Connection]:
        """One write transaction; rolled back when the block raises.

        Raises:
            DiskFull, HomeDenied, QueueUnreadable, GaveUp: Nothing was written.
        """
        with self._sentences(), self._lock:
            if durable is not self._full:
                self._connection.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
                self._full = durable
            self._connection.execute("begin immediate")
            try:
                yield self._connection
                self._connection.execute("commit")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Let all that a block reads be of one moment, whatever others commit meanwhile.

        Not for long: what is written meanwhile can't be moved out of the write-ahead log.
        """
        with self._sentences():
            self._connection.execute("begin")
        try:
            yield
        finally:
            with self._sentences():
                if self._connection.in_transaction:
                    self._connection.execute("rollback")

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """Read outside any write transaction of ours: the newest committed rows, or those of the moment of `reading`."""
        with self._sentences():
            return self._connection.execute(sql, values).fetchall()

    def change(self) -> int:
        """A number that differs once another connection has committed since the last call; costs microseconds."""
        return int(self.rows("pragma data_version")[0][0])

    def check(self) -> None:
        """Look the whole file through, which takes seconds for one of a million jobs.

        Raises:
            QueueDamaged: Something in it is wrong, such as a page that belongs to nothing.
        """
        found = str(self.rows("pragma quick_check(1)")[0][0])
        if found != "ok":
            raise _damaged(self.path, found)

    def close(self) -> None:
        """Close the connection; the last one to close moves the write-ahead log into the file."""
        with self._sentences(), self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what SQLite and the file system say into errors a person can act on."""
        try:
            yield
        except sqlite3.Error as err:
            raise _as_sentence(err, self.path) from err
        except (PermissionError, FileExistsError, NotADirectoryError) as err:
            raise HomeDenied(
                f"The home folder {self.path.parent} can't be used: {err.strerror}.",
                fix="Give this user rights to it, or name another with FABRIC_DESKTOP_HOME.",
            ) from err
        except OSError as err:
            if err.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise DiskFull(f"No room is left for {self.path}.", fix="Free some space and try again.") from err


def put_aside(home: Path, name: str) -> Path:
    """Give a damaged queue file and its write-ahead log another name, so that an empty one can take its place.

    Args:
        home: The home, held by the caller.
        name: What to put into the new name.

    Returns:
        The file's new path.

    Raises:
        HomeError: It can't be renamed.
    """
    kept = home / f"queue.{name}.sqlite3"
    try:
        with FileLock(home / LOCK):
            for part in ("", "-wal", "-shm"):
                if Path(f"{home / NAME}{part}").exists():
                    Path(f"{home / NAME}{part}").rename(f"{kept}{part}")
    except OSError as err:
        raise HomeError(
            f"The damaged {home / NAME} can't be put aside: {err.strerror}.",
            fix="Move it away by hand, then start again.",
        ) from err
    return kept


def _damaged(path: Path, what: str) -> QueueDamaged:
    return QueueDamaged(
        f"{path} can't be read as a queue: {what}. It was left as it is.",
        fix="Move it away to start with an empty queue, as an agent does when it starts: "
        "tables that are done are not loaded twice.",
    )


def _as_sentence(err: sqlite3.Error, path: Path) -> HomeError | GaveUp:
    name = getattr(err, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_FULL"):
        return DiskFull(f"No room is left for {path}; nothing was changed.", fix="Free some space and try again.")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return _damaged(path, str(err))
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return HomeDenied(
            f"{path} can't be opened for writing: {err}.",
            fix="Give this user rights to the home folder, or name another with FABRIC_DESKTOP_HOME.",
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return GaveUp(f"{path} was locked for {BUSY_SECONDS:.0f} s.", fix="See which program holds it, then try again.")
    return HomeError(f"{path} could not be used: {err}.", fix="Look at the disk and the file's rights.")
