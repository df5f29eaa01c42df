"""`why` of what is in this home's queue: jobs, and the schedules that make them.

Guarantees: the facts are those that this home's agent, and a person at its commands, would judge with; what only a job's
worker knows is answered as anybody else would, and said.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from fdagent.cli.control import request_ended, request_of
from fdagent.cli.homes import queue, schedules_of
from fdagent.cli.reasons.told import Explained, Mailroom, Named
from fdagent.cli.where import Where, running_agent
from fdagent.cli.words import reason

if TYPE_CHECKING:
    from fdagent.fleet.schedules import View
    from fdagent.queue.jobs import Jobs
    from models.job import Job, JobFacts

DAY_SECONDS = 86_400.0
NONE_RUNS = "No agent runs in this home: start it with `fdagent run`."


def find_jobs(place: Where, env: str, name: str) -> Iterator[Named]:
    """The jobs whose id is, or begins with, a name."""
    with queue(place) as jobs:
        for job in () if jobs is None else jobs.find(name):
            if env in ("", job.env):
                yield Named("job", job.env, job.id, partial(_job, place, job.id), exact=job.id == name)


def _job(place: Where, job_id: str) -> list[Explained]:
    from fdagent.errors import NotFound
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.job import JOB

    with queue(place) as jobs:
        job = None if jobs is None else jobs.get(job_id)
        if jobs is None or job is None:
            raise NotFound(f"Job {job_id} is no longer kept.", fix="`fdagent status` lists the jobs.")
        facts = _job_facts(place, jobs, job)
    now = SystemClock().wall()
    notes = tuple(_job_notes(place, job, now))
    return [Explained("job", job.id, job.env, str(job.state), explain(JOB, job, facts, now), notes)]


def _job_facts(place: Where, jobs: "Jobs", job: "Job") -> "JobFacts":
    from dataclasses import replace

    from fdagent.config.settings import Agent
    from fdagent.queue.jobs import left_facts
    from fdagent.stores.sightings import Sightings
    from fdagent.system import SystemClock, SystemProcesses
    from models.status import OPEN

    agent = Agent() if place.settings is None else place.settings.agent
    status = request_of(place, job)
    return replace(
        left_facts(job, Sightings(SystemClock()), SystemProcesses()),
        key_free=jobs.key_free(job),
        worker_free=running_agent(place) is not None and len(jobs.running()) < agent.concurrency,
        status_names_us=status is not None and status.state in OPEN and status.agent == place.agent,
        status_final=request_ended(place, job),
        by_a_person=True,
        reason="cancelled",
        retention_seconds=agent.retention_days * DAY_SECONDS,
        # Only its worker learns how the attempt fails, so nothing is held against another one.
        retryable=True,
    )


def _job_notes(place: Where, job: "Job", now: float) -> Iterator[str]:
    from models.job import JobState
    from models.times import lasted

    if job.state is JobState.QUEUED:
        if job.not_before > now:
            yield f"It is due in {lasted(job.not_before - now)}."
        if running_agent(place) is None:
            yield NONE_RUNS
        if place.settings is not None and job.env not in place.settings.agent.environments:
            yield f"This agent's [agent] environments do not have {job.env}, so it never claims the job."
    if job.state is JobState.RUNNING:
        yield f"{job.worker} (pid {job.pid}) runs attempt {job.attempt} of {job.max_attempts}."
        yield (
            "Whether its lease has lapsed knows only who watches it, and how its attempt ends only its worker: the "
            "answers are those of anybody else."
        )
    if job.source.startswith("pipeline:"):
        request = job.source.removeprefix("pipeline:")
        yield f"It stands for the request {request}: `fdagent why {job.env}/{request}` shows that."
    if job.stop:
        yield f"It was asked to stop: it does at the end of the table it is at. {reason(job.stop)}"
    if job.state is JobState.CANCELLED:
        yield f"It was cancelled. {reason(job.reason)}"
    if job.error:
        yield f"Its last error: {job.error}"


def find_schedules(place: Where, env: str, name: str) -> Iterator[Named]:
    """The schedule of that id in this home's agent.toml."""
    for schedule in () if place.settings is None else place.settings.schedules:
        if schedule.id == name and env in ("", schedule.env):
            yield Named("schedule", schedule.env, name, lambda: _schedule(place, name))


def _schedule(place: Where, name: str) -> list[Explained]:
    """The schedule, and of a shared one its newest slot."""
    from fdagent.fleet.schedules import explain
    from fdagent.system import SystemClock

    now = SystemClock().wall()
    with schedules_of(place, writes=False) as schedules:
        view = next(view for view in schedules.views(now) if view.schedule.id == name)
    schedule = view.schedule
    serves = place.settings is not None and schedule.env in place.settings.agent.environments
    answers = explain(view, served=serves and running_agent(place) is not None)
    found = Explained("schedule", name, schedule.env, "waiting", answers, tuple(_schedule_notes(place, view)))
    return [found, *_newest_slot(place, view)]


def _schedule_notes(place: Where, view: "View") -> Iterator[str]:
    from fdagent.fleet.schedules import times_of
    from models.times import lasted

    yield f"It runs {times_of(view.schedule).words}."
    if view.next_due is not None and view.next_due > view.now:
        yield f"It is next due at {view.shown(view.next_due)}, in {lasted(view.next_due - view.now)}."
    if view.last is not None:
        yield f"Its last due time, {view.shown(view.last.due)}: {view.outcome}."
    if running_agent(place) is None:
        yield NONE_RUNS


def _newest_slot(place: Where, view: "View") -> list[Explained]:
    """The slot of a shared schedule that may be posted now, or the request that it was posted as."""
    from fdagent.cli.reasons.mail import explain_request
    from fdagent.cli.where import control_root
    from fdagent.fleet.records import request_cell
    from fdagent.fleet.slots import slot_at
    from fdagent.why import explain
    from machines.slot import SLOT
    from models.slot import SlotFacts
    from models.step import ABSENT

    schedule = view.schedule
    if not schedule.shared or view.problem:
        return []
    store = control_root(place, schedule.env)
    offset = store.clock_offset()
    if offset is None:
        return []
    slot = slot_at(schedule, view.now + offset)
    if slot is None:
        return []
    if request_cell(store, slot.id).read()[0] is not None:
        return explain_request(Mailroom(place, schedule.env, store), slot.id)
    facts = SlotFacts(store_now=view.now + offset, new=slot.request())
    notes = ["Whichever agent that has the schedule looks first posts it."]
    if view.note:
        notes.append(f"This agent does not: {view.note}.")
    return [Explained("slot", slot.id, schedule.env, ABSENT, explain(SLOT, None, facts, view.now), tuple(notes))]
