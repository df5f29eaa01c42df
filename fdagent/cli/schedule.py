"""`schedule list`, `pause` and `resume`: when an agent's schedules run, what became of their due times, and a pause."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from fdagent.cli.homes import people_audit, schedules_of, view_as_json
from fdagent.cli.options import Config, Json, Project, given
from fdagent.cli.where import Where, where
from fdagent.errors import UsageError
from models.ids import shown
from models.times import stamp

if TYPE_CHECKING:
    from fdagent.fleet.schedules import Schedules, View

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


def _meaning(schedules: "Schedules", schedule_id: str) -> str:
    """What a pause of it means, as the end of a sentence."""
    if any(one.shared for one in schedules.settings.schedules if one.id == schedule_id):
        return (
            "this agent posts none of its due times meanwhile. Other agents that share it go on: pause it there, too."
        )
    return "what is due meanwhile is not run."


@schedule.command()
def pause(
    schedule_id: Id,
    until: Annotated[
        str | None,
        typer.Option(
            callback=given,
            help="When it ends by itself: 2027-01-15T09:00:00Z, or '2027-01-15 09:00' local time.",
        ),
    ] = None,
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Pause a schedule: what is due meanwhile is not run, and not made up for. It lasts over restarts."""
    from fdagent.queue.dues import FOREVER

    now = _now()
    end = moment(until, now) if until else FOREVER
    place = where(project, config)
    with schedules_of(place, writes=True) as schedules:
        schedules.pause(schedule_id, end)
        schedules.dues.save()
        _noted(place, schedules, schedule_id, "pause", f"paused until {stamp(end)}")
        view = _view(schedules, schedule_id, now)
    if as_json:
        print(json.dumps(view_as_json(view), indent=2))
    else:
        ends = f"until {view.shown(end)}" if until else f"until `fdagent schedule resume {schedule_id}`"
        print(f"Paused {schedule_id} {ends}: {_meaning(schedules, schedule_id)}")


@schedule.command()
def resume(schedule_id: Id, project: Project = None, config: Config = None, as_json: Json = False) -> None:
    """End a pause; what was due meanwhile is not made up for. Also counts anew from now after a wrong clock."""
    now = _now()
    place = where(project, config)
    with schedules_of(place, writes=True) as schedules:
        was = _view(schedules, schedule_id, now)
        schedules.resume(schedule_id, now)
        schedules.dues.save()
        _noted(place, schedules, schedule_id, "resume", "not paused")
        view = _view(schedules, schedule_id, now)
    if as_json:
        print(json.dumps(view_as_json(view), indent=2))
        return
    due = f"It is next due at {view.shown(view.next_due)}." if view.next_due else f"It is not run: {view.note}."
    print(f"{'Resumed' if was.note != view.note else 'Nothing held up'} {schedule_id}. {due}")


def _noted(place: Where, schedules: "Schedules", schedule_id: str, event: str, to: str) -> None:
    """Note it beside the charts' transitions, though a pause is no record with a chart."""
    from fdagent.commit import Transition

    people_audit(place)(Transition("schedule", event, "", to, schedule_id, schedules.dues.jobs.ids.new()))


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


def show(views: "Sequence[View]") -> None:
    """Print a table of schedules."""
    from fdagent.cli.view import grid
    from fdagent.fleet.schedules import times_of

    rows = [
        (
            view.schedule.id,
            view.schedule.env,
            times_of(view.schedule).words,
            _plain(view, view.next_due),
            _plain(view, view.last.due if view.last else None),
            view.outcome,
            view.note,
        )
        for view in views
    ]
    columns = ("id", "env", "runs", "next due", "last due", "what became of it", "note")
    grid("Schedules", columns, rows, wrap=("runs", "what became of it", "note"))


def _plain(view: "View", seconds: float | None) -> str:
    """A time in the schedule's own zone, which its rule names beside it."""
    return "" if seconds is None else view.shown(seconds).partition(" (")[0]


def _view(schedules: "Schedules", schedule_id: str, now: float) -> "View":
    chosen = schedules.named(schedule_id)
    return next(view for view in schedules.views(now) if view.schedule == chosen)


def _now() -> float:
    from fdagent.system import SystemClock

    return SystemClock().wall()
