"""`retry`, `cancel` and `drain`: what a person wishes of a job, and of the agent of this home."""

from typing import TYPE_CHECKING, Annotated

import typer

from fdagent.cli.homes import open_jobs, people_audit, queue
from fdagent.cli.job import find_job
from fdagent.cli.options import Config, Project, number
from fdagent.cli.where import Where, control_root, person, running_agent, where
from fdagent.errors import GaveUp, Refused
from fdagent.ports import Clock

if TYPE_CHECKING:
    from fdagent.queue.jobs import Jobs
    from models.job import Job
    from models.status import Status

PIPELINE = "pipeline:"
"""Begins the source of a job that stands for a request."""
CANCEL_TRIES = 3
"""A job may start, end or be retried between a look at it and the wish."""
DRAIN_POLL_SECONDS = 0.2
MOST_DRAIN_SECONDS = 7 * 86_400.0
DRAIN_MARGIN_SECONDS = 60.0
"""How much longer than `drain_seconds` an agent may take to end: the workers it has to end, its last records."""

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its first letters.")]


def retry(job_id: JobId, project: Project = None, config: Config = None) -> None:
    """Queue a job that failed, died or was cancelled once more, with all its attempts."""
    from models.job import JobFacts
    from models.step import Refusal

    place = where(project, config)
    with queue(place) as jobs:
        found = find_job(jobs, job_id)
        facts = JobFacts(by_a_person=True, status_final=request_ended(place, found))
        answer = None if jobs is None else jobs.ask(found.id, "revive", facts)
    if isinstance(answer, Refusal):
        raise Refused(
            f"Job {found.id} is not tried again: {answer.words}.",
            fix=f"`fdagent why {found.id}` shows what may happen.",
        )
    done = sum(table.get("state") in {"succeeded", "no_change", "already_done"} for table in found.tables.values())
    finished = f" What it finished ({done} of its tables) is not run again." if done else ""
    print(f"Queued {found.id} again.{finished}{_who_runs_it(place)}")


def request_of(place: Where, job: "Job") -> "Status | None":
    """The status of the request that a job stands for; None: it stands for none, or that has no status any more."""
    from fdagent.fleet.asking import status_of

    if not job.source.startswith(PIPELINE):
        return None
    return status_of(control_root(place, job.env), job.source.removeprefix(PIPELINE))


def request_ended(place: Where, job: "Job") -> bool:
    """Has the request that a job stands for ended? A status that was swept had. False: it stands for none."""
    from models.status import FINAL

    if not job.source.startswith(PIPELINE):
        return False
    status = request_of(place, job)
    return status is None or status.state in FINAL


def _who_runs_it(place: Where) -> str:
    return "" if running_agent(place) is not None else " No agent runs in this home: start it with `fdagent run`."


def cancel(job_id: JobId, project: Project = None, config: Config = None) -> None:
    """Cancel a job that waits; ask one that runs to stop after the table it is at."""
    from models.job import FINAL

    place = where(project, config)
    with queue(place) as jobs:
        found = find_job(jobs, job_id)
        if found.source.startswith(PIPELINE) and found.state not in FINAL:
            said = _wished(place, found)
        else:
            said = "" if jobs is None else _cancelled(jobs, found)
    print(said)


def _wished(place: Where, job: "Job") -> str:
    """Wish that the job's request is cancelled, and what to say: the request decides, wherever it is run."""
    from fdagent.fleet.asking import post_cancel
    from fdagent.system import SystemClock, SystemIds

    request = job.source.removeprefix(PIPELINE)
    store = control_root(place, job.env)
    new = post_cancel(
        store, request, by=person(), clock=SystemClock(), ids=SystemIds(), audit=people_audit(place, job.env)
    )
    asked = "Asked" if new else "It was asked before"
    return (
        f"{asked} that request {request} is cancelled: it ends unless it runs already, and a run finishes its tables."
    )


def _cancelled(jobs: "Jobs", found: "Job") -> str:
    """Wish it, and what to say.

    Raises:
        Refused: It has ended.
    """
    from models.job import FINAL, Job, JobFacts, JobState

    for _ in range(CANCEL_TRIES):
        now = jobs.get(found.id)
        if now is None or now.state in FINAL:
            break
        event = "ask_to_stop" if now.state is JobState.RUNNING else "cancel"
        answer = jobs.ask(now.id, event, JobFacts(reason="cancelled"))
        if isinstance(answer, Job) and event == "cancel":
            return f"Cancelled {now.id}: it had not started."
        if isinstance(answer, Job):
            return f"Asked {now.id} to stop: {_then(answer)}."
    now = jobs.get(found.id) or found
    raise Refused(
        f"Job {now.id} can't be cancelled: it is {now.state}.", fix=f"`fdagent job {now.id}` shows how it ended."
    )


def _then(job: "Job") -> str:
    """What follows a wish to stop."""
    from fdagent.queue.jobs import left_facts
    from fdagent.stores.sightings import Sightings
    from fdagent.system import SystemClock, SystemProcesses

    if left_facts(job, Sightings(SystemClock()), SystemProcesses()).process_gone:
        return "its worker is gone, so the agent cancels it when it looks next"
    return "the table that runs is finished first, the others are not run"


def drain(
    wait: Annotated[bool, typer.Option("--wait", help="Come back when the agent has ended.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=MOST_DRAIN_SECONDS,
            callback=number,
            help="Seconds to wait; else agent.toml's drain_seconds and a minute.",
        ),
    ] = None,
    project: Project = None,
    config: Config = None,
) -> None:
    """Ask the agent of this home to stop: no new work, and time for what runs."""
    from fdagent.config.settings import Agent
    from fdagent.daemon.home import DRAIN

    place = where(project, config)
    pid = running_agent(place)
    if pid is None:
        print(f"No agent runs in {place.home}: there is nothing to stop.")
        return
    jobs = open_jobs(place)
    try:
        jobs.set_wish(DRAIN, "asked")
        print(f"Asked the agent{_numbered(pid)} to stop: it takes no new work and gives running jobs their time.")
        if wait:
            patience = (Agent() if place.settings is None else place.settings.agent).drain_seconds
            _wait_for_the_end(place, jobs, pid, patience + DRAIN_MARGIN_SECONDS if timeout is None else timeout)
    finally:
        jobs.database.close()


def _wait_for_the_end(place: Where, jobs: "Jobs", pid: int, seconds: float) -> None:
    from fdagent.daemon.home import DRAIN
    from fdagent.system import SystemClock

    clock: Clock = SystemClock()
    until = clock.elapsed() + seconds
    while (now := running_agent(place)) is not None:
        if pid and now and now != pid:
            break  # it has ended, and its service manager has started another
        pid = pid or now
        if clock.elapsed() >= until:
            raise GaveUp(
                f"The agent{_numbered(pid)} still runs after {seconds:g} s.",
                fix="It ends when its running jobs do, or after its drain_seconds; `fdagent status` shows them.",
            )
        if not jobs.wish(DRAIN):
            jobs.set_wish(DRAIN, "asked")  # an agent that was just starting has cleared the wishes of its last run
        clock.sleep(DRAIN_POLL_SECONDS)
    print("It has ended.")


def _numbered(pid: int) -> str:
    return f" (pid {pid})" if pid else ""
