"""What a command opens in a home: its queue, its schedules, and the log of what people did.

Guarantees: reading makes nothing. Needs neither typer nor rich, so that a look at a home starts fast.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdagent.cli.where import Where, looking_at_home, person, running_agent
from fdagent.errors import UsageError

if TYPE_CHECKING:
    from fdagent.commit import Audit, Transition
    from fdagent.config.settings import Settings
    from fdagent.fleet.schedules import Schedules, View
    from fdagent.queue.db import Database
    from fdagent.queue.jobs import Jobs
    from models.job import Job


def open_jobs(place: Where) -> "Jobs":
    """The queue of a home; made when it is missing. What is changed through it is noted as a person's doing.

    Where it is another project's, what is changed is refused.
    """
    from fdagent.queue.db import Database
    from fdagent.queue.jobs import Jobs
    from fdagent.system import SystemClock, SystemIds

    return Jobs(
        Database(place.home), clock=SystemClock(), ids=SystemIds(), audit=people_audit(place), project=place.project
    )


def take_home(place: Where, database: "Database") -> None:
    """Make the home's queue this project's, where no agent runs in it and nothing of another project is left.

    Raises:
        Refused: Something is left.
    """
    from fdagent.queue import belongs

    if running_agent(place) is None:
        belongs.adopt(database, place.project)


def queue_of(place: Where) -> "Jobs | None":
    """The queue of a home that has one."""
    return open_jobs(place) if has_queue(place) else None


def has_queue(place: Where) -> bool:
    """Is there a queue file?"""
    from fdagent.queue.db import NAME

    with looking_at_home(place.home):
        # No home is in or below a file; opening the queue there says so.
        return (place.home / NAME).exists() or any(folder.is_file() for folder in (place.home, *place.home.parents))


@contextlib.contextmanager
def queue(place: Where) -> Iterator["Jobs | None"]:
    """The queue of a home that has one, closed at the end."""
    jobs = queue_of(place)
    try:
        yield jobs
    finally:
        if jobs is not None:
            jobs.database.close()


@contextlib.contextmanager
def schedules_of(place: Where, *, writes: bool) -> Iterator["Schedules"]:
    """The schedules of a home; reading sees what was saved beside a queue that is not there.

    Raises:
        UsageError: There is no agent.toml.
    """
    settings = settings_of(place)
    jobs = open_jobs(place) if writes else queue_of(place)
    there = jobs is not None
    jobs = jobs or empty_jobs()
    try:
        yield schedules_over(settings, place.home, jobs, adopt=not there)
    finally:
        jobs.database.close()


def settings_of(place: Where) -> "Settings":
    """What agent.toml says.

    Raises:
        UsageError: There is none.
    """
    if place.settings is None:
        raise UsageError(
            "There is no agent.toml, and schedules stand nowhere else.",
            fix="Name one with --config; deploy/agent.example.toml shows every key.",
        )
    return place.settings


def schedules_over(settings: "Settings", home: Path, jobs: "Jobs", *, adopt: bool) -> "Schedules":
    """The schedules of a home over its open queue, or with `adopt` over an empty one that takes `dues.json` over."""
    from fdagent.fleet.schedules import Schedules
    from fdagent.queue.dues import Dues

    dues = Dues(jobs, home)
    if adopt:
        dues.adopt_file()
    return Schedules(settings, dues, jobs.ids)


def empty_jobs() -> "Jobs":
    """A queue that is nowhere."""
    import sqlite3

    from fdagent.queue.db import Database
    from fdagent.queue.jobs import Jobs
    from fdagent.system import SystemClock, SystemIds

    database = Database.over(sqlite3.connect(":memory:", isolation_level=None))
    return Jobs(database, clock=SystemClock(), ids=SystemIds())


def people_audit(place: Where, env: str = "") -> "Audit":
    """Notes each transition that a person's command commits, with who they are, in `<home>/logs/audit-people.<n>.log`.

    What was done stays done where it can't be noted; that is said on stderr. A home that is not there is not made for
    it, since it would be this person's and not the agent's.

    Args:
        place: The home.
        env: Of which environment's control folder the records are; empty: the queue's.
    """

    def note(moved: "Transition") -> None:
        from fdagent.daemon.logs import PEOPLE, Log
        from fdagent.system import SystemClock

        about = {"person": person(), "agent": place.agent, "host": place.host, **({"env": env} if env else {})}
        folder = place.home / "logs"
        if not place.home.exists():
            return
        log = Log(folder, None, about, SystemClock(), name=PEOPLE)
        log.transition(moved)
        if log.lost:
            print(f"That was done, but could not be noted in {folder}: it can't be written.", file=sys.stderr)
        log.close()

    return note


def job_as_json(job: "Job") -> dict[str, Any]:
    """A job for programs: times as text, what only the queue needs left out."""
    from models.times import stamp

    times = ("not_before", "deadline", "created_at", "started_at", "updated_at", "finished_at")
    shown = [
        "id",
        "state",
        "env",
        "entities",
        "cascade",
        "backfill",
        "source",
        "run_key",
        "attempt",
        "max_attempts",
        "worker",
        "stop",
        "reason",
        "error",
        "category",
    ]
    values: dict[str, Any] = {name: getattr(job, name) for name in shown}
    values |= {name: None if getattr(job, name) is None else stamp(getattr(job, name)) for name in times}
    return values | {"state": str(job.state), "entities": list(job.entities), "tables": dict(job.tables)}


def view_as_json(view: "View") -> dict[str, Any]:
    """A schedule for programs: its part of the agent's record, and what only this home knows."""
    from models.times import stamp

    last = view.last
    outcome = None
    if last is not None:
        outcome = {
            "due_at": stamp(last.due),
            "outcome": str(last.outcome),
            "missed": last.missed,
            "job_id": last.job_id or None,
            "words": view.outcome,
        }
    more = {"env": view.schedule.env, "enabled": view.schedule.enabled, "last_outcome": outcome}
    return view.to_record().to_json() | more | {"note": view.note or None}
