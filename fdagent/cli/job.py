"""`enqueue` and `job`: ask for a run, and look at one whole."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from fdagent.cli.homes import job_as_json, open_jobs, queue_of, take_home
from fdagent.cli.options import Config, Json, Project
from fdagent.cli.where import Where, running_agent, where
from fdagent.errors import NotFound, Refused, UsageError

if TYPE_CHECKING:
    from fdagent.queue.jobs import Jobs
    from models.job import Job


def enqueue(
    env: Annotated[str, typer.Argument(help="The environment.")],
    entities: Annotated[list[str] | None, typer.Argument(help="Names or globs such as 'silver.*'; none: all.")] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="And everything downstream.")] = False,
    backfill: Annotated[str, typer.Option(help="'full': rebuild from all source rows.")] = "",
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Put a job into the queue; it works while an agent runs, too."""
    from fdagent.fleet.release import open_control, promoted_version
    from fdagent.project import graph
    from fdagent.project.load import load_project
    from fdagent.project.places import Places, environment_named
    from fdagent.project.release import check_promoted
    from fdagent.system import SystemClock, SystemIds

    if backfill not in {"", "full"}:
        raise UsageError(f"--backfill {backfill!r} is not known.", fix="Use --backfill full.")
    place = where(project, config)
    loaded = load_project(place.project)
    environment = environment_named(loaded, env)
    places = Places(loaded, environment)
    chosen = graph.select(loaded, entities or (), cascade=cascade)
    # Asked here already, since a job of what was not promoted would only fail.
    control = open_control(places, clock=SystemClock(), ids=SystemIds())
    check_promoted(loaded, environment, promoted_version(control))
    job = put(place, env, tuple(entities or ()), cascade=cascade, backfill=bool(backfill))
    if as_json:
        print(json.dumps({"id": job.id, "state": str(job.state), "entities": [entity.name for entity in chosen]}))
        return
    tables = f"{len(chosen)} table{'' if len(chosen) == 1 else 's'}"
    runs = running_agent(place) is not None
    then = "The agent that runs here takes it." if runs else "Run it with `fdagent run --until-idle`."
    print(f"Queued {job.id}: {tables} of {env}. {then}")


def put(place: Where, env: str, entities: tuple[str, ...], *, cascade: bool, backfill: bool) -> "Job":
    """Put a new job into a home's queue; where no agent runs, an idle queue of another project becomes this one's.

    Raises:
        Refused: The queue is another project's.
    """
    from models.job import Job, JobState
    from models.step import Refusal

    jobs = open_jobs(place)
    name = jobs.ids.new()[:12]
    new = Job(
        name,
        JobState.QUEUED,
        jobs.ids.new(),
        env,
        run_key=name,
        dedupe_key=f"cli:{name}",
        entities=entities,
        cascade=cascade,
        backfill=backfill,
        max_attempts=3 if place.settings is None else place.settings.retry.max_attempts,
    )
    take_home(place, jobs.database)
    answer = jobs.enqueue(new)
    if isinstance(answer, Refusal):
        raise Refused(str(answer))
    return answer


def job(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its first letters.")],
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show one job whole: its tables, attempts and errors."""
    found = find_job(queue_of(where(project, config)), job_id)
    if as_json:
        print(json.dumps(job_as_json(found), indent=2))
        return
    from fdagent.cli import view

    view.job(found)


def find_job(jobs: "Jobs | None", job_id: str) -> "Job":
    """The one job whose id begins so.

    Raises:
        NotFound: None, or more than one.
    """
    found = [] if jobs is None else jobs.find(job_id)
    if len(found) != 1:
        what = "No job's id begins" if not found else f"{len(found)} jobs' ids begin"
        raise NotFound(f"{what} with {job_id!r}.", fix="`fdagent status` lists the jobs.")
    return found[0]
