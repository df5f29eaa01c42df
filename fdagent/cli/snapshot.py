"""A home at one moment: what `status` tells, as values.

Guarantees: jobs, counts and schedules are of one moment of the queue file; reading makes nothing and changes nothing;
what is read is bounded, however long the history or the log is. Needs neither typer nor rich.

Knows only this home: what other agents and the shared folder say is for `agents` and `queue`.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdagent.cli.homes import empty_jobs, has_queue, job_as_json, open_jobs, schedules_over, view_as_json
from fdagent.cli.where import Where, looking_at_home, running_agent
from models.times import stamp

if TYPE_CHECKING:
    from fdagent.fleet.schedules import View
    from fdagent.ports import Clock
    from fdagent.queue.jobs import Jobs
    from models.job import Job

LAST = 20
"""Finished jobs that are told."""
LOG_SECONDS = 3600.0
LOG_BYTES = 256 * 1024
"""How much of the log's end is looked through for warnings."""
LOG_WARNINGS = 5
ROWS_SECONDS = 900.0
"""Run-log rows that wait longer than this are told."""
LATE_SECONDS = 120.0
"""A due time that nobody has looked at for this long is told."""
SEARCHED = 10_000
"""Jobs that a search looks through: the unfinished, and the newest that finished."""
FOUND = 50


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a person should know: a sentence, its kind for programs, and when it was (None: it is so now)."""

    level: str
    kind: str
    sentence: str
    at: float | None = None
    times: int = 1
    """How often the same was said."""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        at = None if self.at is None else stamp(self.at)
        return {"level": self.level, "kind": self.kind, "sentence": self.sentence, "at": at, "times": self.times}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A home at one moment. Times are seconds since the epoch."""

    place: Where
    now: float
    pid: int | None
    """Of the agent that runs here: 0 where it can't be told, None when none runs."""
    draining: bool
    """A person asked it to stop."""
    counts: Mapping[str, int]
    running: "Sequence[Job]" = ()
    waiting: "Sequence[Job]" = ()
    """The first of them; `counts` has their number."""
    finished: "Sequence[Job]" = ()
    schedules: "Sequence[View]" = ()
    warnings: Sequence[Warned] = ()

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "at": stamp(self.now),
            "agent": self.place.agent,
            "home": str(self.place.home),
            "project": str(self.place.project),
            "live": self.pid is not None,
            "pid": self.pid or None,
            "draining": self.draining,
            "counts": dict(self.counts),
            "schedules": [view_as_json(view) for view in self.schedules],
            "unfinished": [job_as_json(job) for job in (*self.running, *self.waiting)],
            "finished": [job_as_json(job) for job in self.finished],
            "warnings": [warned.to_json() for warned in self.warnings],
        }


class Sight:
    """Looks at one home, again and again; its queue file is kept open between two looks.

    Args:
        place: The home.
        clock: What time it is.
        waiting: The most waiting jobs that are read.
    """

    def __init__(self, place: Where, clock: "Clock", waiting: int) -> None:
        self._place, self._clock, self._waiting = place, clock, waiting
        self._jobs: Jobs | None = None
        self._file = 0

    @property
    def jobs(self) -> "Jobs | None":
        """The queue, if there is one: another one once an agent has put the old file aside."""
        file = _inode(self._place) if has_queue(self._place) else 0
        if file != self._file:
            self.close()
            self._jobs = open_jobs(self._place) if file else None
            self._file = file
        return self._jobs

    def change(self) -> tuple[int, int | None, tuple[int, ...]]:
        """Differs from the last one when there is something new to see; costs microseconds."""
        jobs = self.jobs
        sizes = tuple(path.stat().st_size for path in _newest_logs(self._place)[-1:])
        return 0 if jobs is None else jobs.database.change(), running_agent(self._place), (self._file, *sizes)

    def look(self) -> Snapshot:
        """Read everything once.

        Raises:
            HomeError: The home or its queue file can't be read.
        """
        place, now, jobs = self._place, self._clock.wall(), self.jobs
        pid = running_agent(place)
        if jobs is None:
            schedules = _unqueued_schedules(place, now)
            warnings = _warnings(place, now, pid, {}, schedules)
            return Snapshot(place, now, pid, False, {}, schedules=schedules, warnings=warnings)
        from fdagent.daemon.home import DRAIN
        from fdagent.queue import belongs, look

        with jobs.database.reading():
            counts = jobs.counts()
            running = jobs.running() if counts.get("running") else []
            waiting = look.waiting(jobs.database, self._waiting) if counts.get("queued") else []
            finished = jobs.finished(LAST)
            schedules = _schedules(place, jobs, now)
            other = belongs.folder_of(jobs.database)
            rows, draining = look.rows_waiting(jobs.database), pid is not None and bool(jobs.wish(DRAIN))
        troubles = [*_another_projects(belongs.named(place.project), other), *_gone(running), *_rows(rows, now)]
        warnings = [*_warnings(place, now, pid, counts, schedules), *troubles]
        return Snapshot(place, now, pid, draining, counts, running, waiting, finished, schedules, warnings)

    def search(self, text: str) -> tuple[list["Job"], bool]:
        """The jobs whose id, environment, entities, tables, source or error hold a text, unfinished and newest first.

        Letters' case doesn't count. At most `FOUND`, among the newest `SEARCHED`.

        Returns:
            The jobs, and whether there may be more.
        """
        jobs, wanted = self.jobs, text.casefold()
        found: list[Job] = []
        if jobs is None:
            return found, False
        with jobs.database.reading():
            looked_at = 0
            for job in (*jobs.unfinished(), *jobs.finished(SEARCHED)):
                looked_at += 1
                if wanted in _words_of(job):
                    found.append(job)
                if len(found) > FOUND:
                    return found[:FOUND], True
        return found, looked_at >= SEARCHED

    def close(self) -> None:
        """Close the queue file."""
        jobs, self._jobs, self._file = self._jobs, None, 0
        if jobs is not None:
            jobs.database.close()


@contextlib.contextmanager
def sight(place: Where, waiting: int) -> Iterator[Sight]:
    """A sight of a home, closed at the end."""
    from fdagent.system import SystemClock

    seeing = Sight(place, SystemClock(), waiting)
    try:
        yield seeing
    finally:
        seeing.close()


def _inode(place: Where) -> int:
    from fdagent.queue.db import NAME

    with contextlib.suppress(OSError):
        # 0 stands for no file, and is what a file system without such numbers says.
        return (place.home / NAME).stat().st_ino or 1
    return 1


def _words_of(job: "Job") -> str:
    errors = [str(at.get("error", "")) for at in job.tables.values()]
    return "\n".join(
        (job.id, job.env, *job.entities, *job.tables, job.source, job.error, job.reason, *errors)
    ).casefold()


def _schedules(place: Where, jobs: "Jobs", now: float, *, adopt: bool = False) -> "list[View]":
    if place.settings is None or not place.settings.schedules:
        return []
    return schedules_over(place.settings, place.home, jobs, adopt=adopt).views(now)


def _unqueued_schedules(place: Where, now: float) -> "list[View]":
    """The schedules beside a queue that is not there: what was saved beside it counts."""
    if place.settings is None or not place.settings.schedules:
        return []
    jobs = empty_jobs()
    try:
        return _schedules(place, jobs, now, adopt=True)
    finally:
        jobs.database.close()


def _warnings(
    place: Where, now: float, pid: int | None, counts: Mapping[str, int], schedules: "Sequence[View]"
) -> list[Warned]:
    found = []
    scheduled = any(view.next_due is not None and not view.schedule.shared for view in schedules)
    if pid is None and (counts.get("queued") or scheduled):
        what = "what waits is not begun" if counts.get("queued") else "no schedule is run"
        found.append(
            Warned("warning", "no_agent", f"No agent runs in this home, so {what}: start it with `fdagent run`.")
        )
    with looking_at_home(place.home):
        found += [
            Warned(
                "error",
                "queue_put_aside",
                f"The queue was damaged and put aside as {kept.name}: what waited in it must be asked for again. "
                "Move the file away once you have looked at it.",
            )
            for kept in sorted(place.home.glob("queue.damaged-*.sqlite3"))
        ]
    return [*found, *_schedule_troubles(schedules, pid, now), *log_warnings(place, now)]


def _schedule_troubles(schedules: "Sequence[View]", pid: int | None, now: float) -> Iterator[Warned]:
    if not schedules:
        return
    from fdagent.fleet.schedules import ahead

    for view in schedules:
        name = view.schedule.id
        early = "" if view.standing is None else ahead(view.standing, now)
        if view.problem:
            yield Warned("error", "schedule", f"Schedule {name} is not run: {view.problem}")
        elif early:
            yield Warned("warning", "schedule", early)
        elif pid is not None and view.next_due is not None and now - view.next_due > LATE_SECONDS:
            sentence = f"Schedule {name} has been due since {stamp(view.next_due)}, and the agent has not looked at it."
            yield Warned("warning", "schedule", sentence)


def _another_projects(ours: str, theirs: str) -> Iterator[Warned]:
    if theirs not in ("", ours):
        sentence = (
            f"The jobs of this home are of the project {theirs}, not of {ours}: nothing can be asked for from here."
        )
        yield Warned("warning", "another_project", sentence)


def _gone(running: "Sequence[Job]") -> Iterator[Warned]:
    """Jobs whose worker is known to be gone."""
    if not running:
        return
    from fdagent.queue.jobs import left_facts
    from fdagent.stores.sightings import Sightings
    from fdagent.system import SystemClock, SystemProcesses

    for job in running:
        if left_facts(job, Sightings(SystemClock()), SystemProcesses()).process_gone:
            sentence = f"The worker of job {job.id} is gone: an agent takes the job back when it looks next."
            yield Warned("warning", "worker_gone", sentence)


def _rows(waiting: tuple[int, float | None], now: float) -> Iterator[Warned]:
    number, since = waiting
    if since is not None and now - since > ROWS_SECONDS:
        yield Warned(
            "warning",
            "run_log_late",
            f"{number} run-log rows wait to be written since {stamp(since)}: they are kept here until the run log of "
            "their environment can be reached.",
            since,
        )


def log_warnings(place: Where, now: float) -> list[Warned]:
    """The newest warnings and errors of the last hour in the agent's log, newest first; the same one said again counts up."""
    found: dict[tuple[str, str], Warned] = {}
    for line in _log_lines(place):
        level, at = line.get("level"), _moment(line.get("ts"))
        if at is None or now - at > LOG_SECONDS:
            break
        event, message = str(line.get("event", "")), str(line.get("message", ""))
        # What was put aside is told as long as it lies there.
        if level not in ("warning", "error") or event == "queue_put_aside":
            continue
        known = found.get((event, message))
        if known is None and len(found) == LOG_WARNINGS:
            continue
        times = 1 if known is None else known.times + 1
        found[event, message] = Warned(str(level), event, message, at if known is None else known.at, times)
    return list(found.values())


def _log_lines(place: Where) -> Iterator[dict[str, Any]]:
    """The lines at the log's end, newest first; what is no line of ours is passed over."""
    left = LOG_BYTES
    for path in reversed(_newest_logs(place)):
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - left, 0))
            text = file.read(left)
        whole = text if size <= left else text.partition(b"\n")[2]
        for line in reversed(whole.splitlines()):
            with contextlib.suppress(ValueError, RecursionError):
                found = json.loads(line)
                if isinstance(found, dict):
                    yield found
        left -= len(text)
        if left <= 0:
            return


def _newest_logs(place: Where) -> list[Path]:
    """The last two files of the log: the newest may have been begun just now."""
    from fdagent.daemon.logs import log_files

    with looking_at_home(place.home):
        return log_files(place.home / "logs")[-2:]


def _moment(text: object) -> float | None:
    from models.errors import BadTime
    from models.times import seconds

    try:
        return seconds(text) if isinstance(text, str) else None
    except BadTime:
        return None
