"""The ledger of due times: what became of each one of an agent's own schedules, and up to where all have an outcome.

Guarantees
- What becomes of due times is read, decided and written in one transaction, with the job it makes: a due time has its
  outcome and its job, or neither. No due time gets a second entry, and none is lost between two.
- A lost queue file doesn't run everything again: after each change the marks and pauses are also in `dues.json` in the
  home (replaced whole, on disk), and the newer of the two counts. A crash between both leaves the file one due time
  behind; a due time that runs again because of it finds its tables done, by its run key.
- The newest `KEPT` entries of each schedule are kept. What is older than them counts as dealt with for ever.

Does not know when anything is due, or what a schedule is: `fleet/schedules.py` decides.
"""

import errno
import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from operator import attrgetter
from pathlib import Path

from fdagent.errors import DiskFull, GaveUp, HomeDenied
from fdagent.queue.jobs import Jobs
from fdagent.stores.filelock import system_files
from models.job import Job

FILE = "dues.json"
KEPT = 1000
"""Entries of each schedule that are kept: two and a half years of a daily one, most of a day of one a minute."""
ID_TRIES = 3
"""New ids for a job, should one be taken."""
MAX_FILE_BYTES = 16 * 1024 * 1024
FOREVER = 253_402_300_799.0
"""9999-12-31T23:59:59Z: the end of a pause that only a person ends."""


class Outcome(StrEnum):
    """What became of a due time."""

    RAN = "ran"
    """It has a job, and how that ended is the job's to say."""
    SKIPPED = "skipped"
    """The last run was still queued or running."""
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one schedule has come; times are seconds since the epoch by this machine's wall clock."""

    id: str
    rule: str = ""
    """What its times were when they were last counted; another rule, or none, is counted from when it is seen."""
    mark: float = 0.0
    """Every due time up to here has its outcome, or was before the schedule was first seen."""
    floor: float = 0.0
    """Up to here it is not known any more which due times had one: the mark never goes back behind it."""
    paused_until: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One due time and its outcome, which is also that of the `missed` others since the mark of that moment."""

    schedule: str
    due: float
    outcome: Outcome
    since: float
    until: float
    """The missed ones are later than `since` and not later than this, itself aside."""
    missed: int
    noted_at: float
    job_id: str = ""
    """The job that it has, or that it was skipped for."""

    @property
    def words(self) -> str:
        """As a person reads it."""
        said = "skipped: still running" if self.outcome is Outcome.SKIPPED else str(self.outcome)
        if not self.missed:
            return said
        if self.outcome is Outcome.PAUSED:
            return f"paused, as {self.missed} before it"
        return f"{said}; missed: {self.missed} collapsed"


@dataclass(frozen=True, slots=True)
class Settled:
    """What a look at a schedule's due times decides: how far it is now, new entries, and old ones that change."""

    standing: Standing
    entries: tuple[Entry, ...] = ()
    """Each that RAN wants a job; where an unfinished one is there, it becomes SKIPPED."""
    corrected: tuple[Entry, ...] = ()


Book = Callable[[float, float], list[Entry]]
"""The entries that are due later than one moment and not later than another, oldest first."""
Decide = Callable[[Standing, Book], Settled | None]
"""One that was never seen stands at nothing: no rule, no mark."""

_STANDING = tuple(field.name for field in fields(Standing))
_ENTRY = tuple(field.name for field in fields(Entry))
_values = attrgetter(*_ENTRY)


class Dues:
    """The ledger as the scheduler, a person's commands and the agent's record use it.

    Args:
        jobs: The queue whose file holds it.
        home: Where `dues.json` lies; None: nowhere.
        tell: Told in a sentence when that file can't be read.
    """

    def __init__(self, jobs: Jobs, home: Path | None, tell: Callable[[str], None] = lambda _: None) -> None:
        self.jobs, self._tell = jobs, tell
        self._file = None if home is None else home / FILE
        self._adopted = False
        self.unsaved = False
        """The table has changed since the file was written."""

    def standings(self) -> dict[str, Standing]:
        """How far each schedule is that was ever seen."""
        rows = self.jobs.database.rows(f"select {', '.join(_STANDING)} from schedule")
        return {row["id"]: Standing(*row) for row in rows}

    def entries(self, schedule: str, after: float = -math.inf, until: float = math.inf) -> list[Entry]:
        """The entries kept of a schedule, due later than `after` and not later than `until`, oldest first."""
        return [_entry(row) for row in self.jobs.database.rows(_BETWEEN, schedule, after, until)]

    def last(self, schedule: str, until: float) -> Entry | None:
        """The newest entry that is due not later than `until`."""
        rows = self.jobs.database.rows(_LAST, schedule, until)
        return _entry(rows[0]) if rows else None

    def settle(self, schedule: str, decide: Decide, job_for: Callable[[float], Job]) -> Settled | None:
        """Let one look at a schedule's due times be decided, and write it with its jobs in the same transaction.

        Args:
            schedule: Whose.
            decide: Asked with what is there; None: nothing changes.
            job_for: The job of a due time.

        Returns:
            What was written, each entry with its job and final outcome.
        """
        self.adopt_file()
        with self.jobs.write(durable=True) as transaction:

            def book(after: float, until: float) -> list[Entry]:
                return [_entry(row) for row in transaction.execute(_BETWEEN, (schedule, after, until))]

            found = decide(_standing(transaction, schedule) or Standing(schedule), book)
            if found is None:
                return None
            written = tuple(self._with_job(transaction, entry, job_for) for entry in found.entries)
            transaction.executemany(_CORRECT, [(e.until, e.missed, e.schedule, e.due) for e in found.corrected])
            transaction.executemany(_INSERT, [_values(entry) for entry in written])
            standing = _pruned(transaction, found.standing)
            _put(transaction, standing)
        self.unsaved = True
        return Settled(standing, written, found.corrected)

    def change(self, schedule: str, change: Callable[[Standing], Standing]) -> Standing:
        """Change how far a schedule is, or its pause; one that was never seen stands at nothing."""
        with self.jobs.write(durable=True) as transaction:
            standing = change(_standing(transaction, schedule) or Standing(schedule))
            _put(transaction, standing)
        self.unsaved = True
        return standing

    def adopt(self, others: Iterable[Standing]) -> list[Standing]:
        """Take over what another place knows of schedules: what is unknown or older here; those that counted.

        A mark that the ledger has an entry for is not newer: the clock was set back since.
        """
        self.adopt_file()
        return self._adopt(others)

    def adopt_file(self) -> None:
        """Take over what `dues.json` knows; once, and before anything is written over it."""
        if self._adopted or self._file is None:
            return
        try:
            found = _from_text(self._file.read_bytes())
        except FileNotFoundError:
            found, self.unsaved = [], True
        except (OSError, ValueError, RecursionError) as err:
            self._tell(f"{self._file} can't be read and is written anew: {err}")
            found, self.unsaved = [], True
        self._adopt(found)
        self._adopted = True

    def _adopt(self, others: Iterable[Standing]) -> list[Standing]:
        counted = []
        with self.jobs.write(durable=True) as transaction:
            for other in others:
                mine = _standing(transaction, other.id)
                standing = _newer(mine, other, lambda due, id_=other.id: _known(transaction, id_, due))  # type: ignore[misc]
                if standing is not None:
                    _put(transaction, standing)
                    counted.append(standing)
        self.unsaved = self.unsaved or bool(counted)
        return counted

    def save(self) -> None:
        """Write `dues.json` anew.

        Raises:
            HomeError: It can't be written; the ledger itself is whole.
        """
        self.adopt_file()
        if self._file is not None:
            # Under the queue's lock, so that of two processes the one that read later writes later.
            with self.jobs.database.write(durable=False) as transaction:
                rows = transaction.execute(f"select {', '.join(_STANDING)} from schedule order by id")
                _replace(self._file, _as_text([Standing(*row) for row in rows]))
        self.unsaved = False

    def _with_job(self, transaction: sqlite3.Connection, entry: Entry, job_for: Callable[[float], Job]) -> Entry:
        if entry.outcome is not Outcome.RAN:
            return entry
        sql = "select id from job where dedupe_key = ? and state in ('queued', 'running')"
        for _ in range(ID_TRIES):
            new = job_for(entry.due)
            if isinstance(self.jobs.put(transaction, new), Job):
                return replace(entry, job_id=new.id)
            unfinished = transaction.execute(sql, (new.dedupe_key,)).fetchone()
            if unfinished is not None:
                return replace(entry, outcome=Outcome.SKIPPED, job_id=unfinished["id"])
        raise GaveUp(f"Schedule {entry.schedule} found no id for a job that no other job has.")


_BETWEEN = f"select {', '.join(_ENTRY)} from due where schedule = ? and due > ? and due <= ? order by due"
_INSERT = f"insert into due ({', '.join(_ENTRY)}) values ({', '.join('?' for _ in _ENTRY)})"
_CORRECT = "update due set until = ?, missed = ? where schedule = ? and due = ?"
_LAST = f"select {', '.join(_ENTRY)} from due where schedule = ? and due <= ? order by due desc limit 1"


def _standing(transaction: sqlite3.Connection, schedule: str) -> Standing | None:
    sql = f"select {', '.join(_STANDING)} from schedule where id = ?"
    row = transaction.execute(sql, (schedule,)).fetchone()
    return None if row is None else Standing(*row)


def _entry(row: sqlite3.Row) -> Entry:
    values = dict(zip(_ENTRY, row, strict=True))
    return Entry(**{**values, "outcome": Outcome(values["outcome"])})


def _put(transaction: sqlite3.Connection, standing: Standing) -> None:
    values = tuple(getattr(standing, name) for name in _STANDING)
    transaction.execute(f"insert or replace into schedule ({', '.join(_STANDING)}) values (?, ?, ?, ?, ?)", values)


def _pruned(transaction: sqlite3.Connection, standing: Standing) -> Standing:
    """Delete entries beyond those that are kept; the standing with the floor that this leaves."""
    sql = "select due from due where schedule = ? order by due desc limit 1 offset ?"
    row = transaction.execute(sql, (standing.id, KEPT)).fetchone()
    if row is None:
        return standing
    transaction.execute("delete from due where schedule = ? and due <= ?", (standing.id, row["due"]))
    floor = max(standing.floor, row["due"])
    return replace(standing, floor=floor, mark=max(standing.mark, floor))


def _known(transaction: sqlite3.Connection, schedule: str, mark: float) -> bool:
    """Has the ledger an entry for this mark? Another place may know it by the whole second only."""
    sql = "select 1 from due where schedule = ? and due >= ? and due <= ?"
    return transaction.execute(sql, (schedule, math.floor(mark), mark)).fetchone() is not None


def _newer(mine: Standing | None, other: Standing, known: Callable[[float], bool]) -> Standing | None:
    """The standing that follows where the other place is ahead; None: it isn't."""
    if mine is None:
        return replace(other, floor=other.mark)
    if other.mark <= mine.mark or known(other.mark):
        return None
    return replace(mine, rule=other.rule, mark=other.mark, floor=other.mark)


def _as_text(standings: list[Standing]) -> str:
    rows = {one.id: {"rule": one.rule, "mark": one.mark, "paused_until": one.paused_until} for one in standings}
    return json.dumps({"schedules": rows}, indent=2, ensure_ascii=False) + "\n"


def _from_text(body: bytes) -> list[Standing]:
    """The standings of the file.

    Raises:
        ValueError: It is not such a file.
    """
    if len(body) > MAX_FILE_BYTES:
        raise ValueError(f"it has {len(body)} bytes")
    found = json.loads(body)
    rows = found.get("schedules") if isinstance(found, dict) else None
    if not isinstance(rows, dict) or not all(_is_row(row) for row in rows.values()):
        raise ValueError("it is not the list of schedules that an agent writes")
    return [Standing(id_, row["rule"], row["mark"], row["mark"], row["paused_until"]) for id_, row in rows.items()]


def _is_row(row: object) -> bool:
    if not isinstance(row, Mapping) or not isinstance(row.get("rule"), str) or "paused_until" not in row:
        return False
    numbers = [row.get("mark"), 0 if row["paused_until"] is None else row["paused_until"]]
    return all(isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers)


def _replace(file: Path, text: str) -> None:
    """All of the new file or all of the old one is there, on disk.

    Raises:
        HomeError: It can't be written.
    """
    aside, files = Path(f"{file}.new"), system_files()
    try:
        with aside.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        files.replace(str(aside), str(file))
        files.sync_folder(str(file.parent))
    except OSError as err:
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"No room is left for {file}.", fix="Free some space; it is written again.") from err
        raise HomeDenied(
            f"{file} can't be written: {err.strerror or err}.", fix="Give this user rights to the home folder."
        ) from err
