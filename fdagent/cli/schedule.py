"""`schedule list`, `pause` and `resume`: when an agent's schedules run, what became of their due times, and a pause."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdagent.cli.job import open_jobs, queue_of
from fdagent.cli.options import Config, Json, Project
from fdagent.cli.where import Where, where
from fdagent.errors import UsageError
from models.ids import shown
from models.times import stamp

if TYPE_CHECKING:
    from fdagent.fleet.schedules import Schedules, View
    from fdagent.queue.jobs import Jobs

schedule = typer.Typer(no_args_is_help=True, help="When the schedules run; a schedule can be paused.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The schedule's id in agent.toml.")]


@schedule.command("list")
def list_schedules(project: Project = None, config: Config = None, as_json: Json = False) -> None:
    """List the schedules: when they are due, what became of the last time, and what keeps one from running."""
    place = where(project, config)
    views = views_of(place)
    if as_json:
        print(json.dumps({"agent": place.agent, "schedules": [view_as_json(view) for view in views]}, indent=2))
    elif views:
        show(views)
    else:
        print("There are no schedules: [[schedule]] in an agent.toml makes one.")


@schedule.command()
def pause(
    schedule_id: Id,
    until: Annotated[
        str, typer.Option(help="When it ends by itself: 2027-01-15T09:00:00Z, or '2027-01-15 09:00' local time.")
    ] = "",
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Pause a schedule: what is due meanwhile is not run, and not made up for. It lasts over restarts."""
    from fdagent.queue.dues import FOREVER

    now = _now()
    end = moment(until, now) if until else FOREVER
    with schedules_of(where(project, config), writes=True) as schedules:
        schedules.pause(schedule_id, end)
        schedules.dues.save()
        view = _view(schedules, schedule_id, now)
    if as_json:
        print(json.dumps(view_as_json(view), indent=2))
    else:
        from fdagent.cli.view import when

        ends = f"until {when(end)}" if until else f"until `fdagent schedule resume {schedule_id}`"
        print(f"Paused {schedule_id} {ends}: what is due meanwhile is not run.")


@schedule.command()
def resume(schedule_id: Id, project: Project = None, config: Config = None, as_json: Json = False) -> None:
    """End a pause; what was due meanwhile is not made up for. Also counts anew from now after a wrong clock."""
    now = _now()
    with schedules_of(where(project, config), writes=True) as schedules:
        was = _view(schedules, schedule_id, now)
        schedules.resume(schedule_id, now)
        schedules.dues.save()
        view = _view(schedules, schedule_id, now)
    if as_json:
        print(json.dumps(view_as_json(view), indent=2))
        return
    from fdagent.cli.view import when

    due = f"It is next due at {when(view.next_due)}." if view.next_due else f"It is not run: {view.note}."
    print(f"{'Resumed' if was.note != view.note else 'Nothing held up'} {schedule_id}. {due}")


@contextlib.contextmanager
def schedules_of(place: Where, *, writes: bool) -> Iterator["Schedules"]:
    """The schedules of a home; reading makes nothing, and sees what was saved beside a queue that is not there.

    Raises:
        UsageError: There is no agent.toml.
    """
    from fdagent.fleet.schedules import Schedules
    from fdagent.queue.dues import Dues

    if place.settings is None:
        raise UsageError(
            "There is no agent.toml, and schedules stand nowhere else.",
            fix="Name one with --config; deploy/agent.example.toml shows every key.",
        )
    jobs = open_jobs(place) if writes else queue_of(place)
    there = jobs is not None
    jobs = jobs or _empty_jobs()
    try:
        dues = Dues(jobs, place.home)
        if not there:
            dues.adopt_file()
        yield Schedules(place.settings, dues, jobs.ids)
    finally:
        jobs.database.close()


def _empty_jobs() -> "Jobs":
    """A queue that is nowhere."""
    import sqlite3

    from fdagent.queue.db import Database
    from fdagent.queue.jobs import Jobs
    from fdagent.system import SystemClock, SystemIds

    database = Database.over(sqlite3.connect(":memory:", isolation_level=None))
    return Jobs(database, clock=SystemClock(), ids=SystemIds())


def views_of(place: Where) -> "list[View]":
    """Every schedule as it is now; none without an agent.toml, or where it has none."""
    if place.settings is None or not place.settings.schedules:
        return []
    with schedules_of(place, writes=False) as schedules:
        return schedules.views(_now())


def moment(text: str, now: float) -> float:
    """What `--until` says, in epoch seconds: ISO 8601, in this machine's time where it names no zone.

    Raises:
        UsageError: It is no such time, or has passed.
    """
    from dateutil.tz import resolve_imaginary

    from fdagent.fleet.due import zone_named

    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = resolve_imaginary(found.replace(tzinfo=zone_named("")))
        seconds = found.timestamp()
    except (ValueError, OverflowError) as err:
        raise UsageError(
            f"--until {shown(text)} is no time.",
            fix="Write it as 2027-01-15T09:00:00Z, or in this machine's time as '2027-01-15 09:00'.",
        ) from err
    if seconds <= now:
        raise UsageError(f"--until {shown(text)} has passed.", fix="Name a time that is to come, or leave it out.")
    return seconds


def view_as_json(view: "View") -> dict[str, Any]:
    """A schedule for programs: its part of the agent's record, and what only this home knows."""
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


def show(views: "Sequence[View]") -> None:
    """Print a table of schedules."""
    from fdagent.cli.view import grid, when
    from fdagent.fleet.schedules import times_of

    rows = [
        (
            view.schedule.id,
            view.schedule.env,
            times_of(view.schedule).words,
            when(view.next_due),
            when(view.last.due) if view.last else "",
            view.outcome,
            view.note,
        )
        for view in views
    ]
    columns = ("id", "env", "runs", "next due", "last due", "what became of it", "note")
    grid("Schedules", columns, rows, wrap=("runs", "what became of it", "note"))


def _view(schedules: "Schedules", schedule_id: str, now: float) -> "View":
    chosen = schedules.named(schedule_id)
    return next(view for view in schedules.views(now) if view.schedule == chosen)


def _now() -> float:
    from fdagent.system import SystemClock

    return SystemClock().wall()
