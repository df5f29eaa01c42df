"""`why`: each arrow open or shut from a record's present state, with every guard's answer.

Guarantees: asks the guards that decide (`fdagent/why.py`), with the facts that this home's agent would gather for a
record that is not its own; what only a watching reader can know is answered as not known, and said. Changes nothing.

Each kind of record has one function in `KINDS`, which knows a word that names one of its kind.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdagent.cli.control import request_ended, request_of
from fdagent.cli.homes import queue
from fdagent.cli.lease import ESTIMATE, seems_lapsed
from fdagent.cli.options import Config, Json, Project
from fdagent.cli.where import Where, control_root, running_agent, where
from fdagent.errors import NotFound

if TYPE_CHECKING:
    from fdagent.ports import Store
    from fdagent.queue.jobs import Jobs
    from fdagent.why import Answer
    from models.job import Job, JobFacts
    from models.lease import Lease, LeaseFacts

DAY_SECONDS = 86_400.0
MAINTENANCE = "_maintenance"
"""The lease that stands for no table."""

ASKED_BY = {
    "job": {
        "claim": "a worker",
        "renew": "its worker",
        "succeed": "its worker",
        "fail": "its worker",
        "retry": "its worker",
        "bury": "its worker",
        "recover": "the agent",
        "ask_to_stop": "fdagent cancel",
        "cancel": "fdagent cancel; its worker",
        "requeue": "the agent",
        "revive": "fdagent retry",
        "prune": "the agent",
    },
    "lease": {
        "acquire": "a worker that needs the table",
        "renew": "its holder",
        "release": "its holder",
        "break": "fdagent lease break",
    },
}
"""Chart -> event -> who asks for it."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One record and what may happen to it: `notes` say what a person should know beside the guards."""

    kind: str
    name: str
    env: str
    state: str
    answers: "list[Answer]"
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "kind": self.kind,
            "name": self.name,
            "env": self.env,
            "state": self.state,
            "arrows": [
                {
                    "event": answer.event,
                    "asked_by": ASKED_BY[self.kind].get(answer.event, ""),
                    "to": answer.dest,
                    "write": answer.write,
                    "open": answer.open,
                    "guards": [
                        {"guard": check.guard, "held": check.held, "sentence": check.sentence}
                        for check in answer.checks
                    ],
                }
                for answer in self.answers
            ],
            "notes": list(self.notes),
        }


def why(
    words: Annotated[list[str], typer.Argument(metavar="ID|ENV/TABLE...", help="A job's id, or a table's lease.")],
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Say what may happen to a job or a lease, what may not, and why not."""
    place = where(project, config)
    found = [_explained(place, word) for word in words]
    if as_json:
        print(json.dumps([one.to_json() for one in found], indent=2))
        return
    from fdagent.cli import fleetview

    for one in found:
        fleetview.why((one.kind, one.name, one.env), one.state, one.answers, ASKED_BY[one.kind], one.notes)


def _explained(place: Where, word: str) -> Explained:
    for kind in KINDS:
        found = kind(place, word)
        if found is not None:
            return found
    raise NotFound(
        f"Nothing is called {word!r}: no job's id begins so, and a lease is named ENV/TABLE.",
        fix="`fdagent status` lists the jobs, `fdagent lease list ENV` the leases.",
    )


def _job(place: Where, word: str) -> Explained | None:
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.job import JOB

    with queue(place) as jobs:
        found = [] if jobs is None else jobs.find(word)
        if jobs is None or not found:
            return None
        if len(found) > 1:
            raise NotFound(f"{len(found)} jobs' ids begin with {word!r}.", fix="Give more letters of it.")
        job, running = found[0], len(jobs.running())
        facts = _job_facts(place, jobs, job, running)
    now = SystemClock().wall()
    notes = _job_notes(place, job, now, worker_free=facts.worker_free)
    return Explained("job", job.id, job.env, str(job.state), explain(JOB, job, facts, now), notes)


def _job_facts(place: Where, jobs: "Jobs", job: "Job", running: int) -> "JobFacts":
    """What this home's agent, and a person at its commands, would judge the job with."""
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
        worker_free=running_agent(place) is not None and running < agent.concurrency,
        status_names_us=status is not None and status.state in OPEN and status.agent == place.agent,
        status_final=request_ended(place, job),
        by_a_person=True,
        reason="cancelled",
        retention_seconds=agent.retention_days * DAY_SECONDS,
        # Only its worker learns how the attempt fails, so nothing is held against another one.
        retryable=True,
    )


def _job_notes(place: Where, job: "Job", now: float, *, worker_free: bool) -> tuple[str, ...]:
    from models.job import JobState

    notes = []
    if job.state is JobState.QUEUED:
        if job.not_before > now:
            notes.append(f"It is due in {job.not_before - now:.0f} s.")
        if not worker_free and running_agent(place) is None:
            notes.append("No agent runs in this home: start it with `fdagent run`.")
        if place.settings is not None and job.env not in place.settings.agent.environments:
            notes.append(f"This agent's [agent] environments do not have {job.env}, so it never claims the job.")
    if job.state is JobState.RUNNING:
        notes.append(f"{job.worker} (pid {job.pid}) runs attempt {job.attempt} of {job.max_attempts}.")
        notes.append(
            "Whether its lease has lapsed knows only who watches it, and how its attempt ends only its worker: the "
            "answers are those of anybody else."
        )
    if job.stop:
        notes.append(f"It was asked to stop ({job.stop}): it does at the end of the table it is at.")
    if job.error:
        notes.append(f"Its last error: {job.error}")
    return tuple(notes)


def _lease(place: Where, word: str) -> Explained | None:
    from fdagent.fleet.people import LONGEST_TABLE
    from fdagent.fleet.records import lease_cell, lease_key
    from fdagent.project.load import load_project
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.lease import LEASE
    from models.ids import check_id
    from models.step import ABSENT

    env, slash, table = word.partition("/")
    if not slash:
        return None
    store = control_root(place, env)
    lease, _ = lease_cell(store, check_id(table, "table", longest=LONGEST_TABLE)).read()
    if lease is None and table != MAINTENANCE and table not in load_project(place.project).entities:
        raise NotFound(f"{table} is no table of this project, and nobody holds a lease of it in {env}.")
    answers = explain(LEASE, lease, _lease_facts(lease), SystemClock().wall())
    blob = store.read(lease_key(table))
    notes = () if lease is None else _lease_notes(store, lease, None if blob is None else blob.age)
    return Explained("lease", table, env, ABSENT if lease is None else str(lease.state), answers, notes)


def _lease_facts(lease: "Lease | None") -> "LeaseFacts":
    """What a worker of this machine that has just begun to watch, and a person, would judge the lease with."""
    from fdagent.system import SystemProcesses
    from models.lease import LeaseFacts
    from models.place import process_gone

    if lease is None:
        return LeaseFacts()
    processes = SystemProcesses()
    gone = process_gone(lease, place=processes.place(), started_at=processes.started_at)
    return LeaseFacts(by_a_person=True, named_op=lease.op, process_gone=gone)


def _lease_notes(store: "Store", lease: "Lease", age: float | None) -> tuple[str, ...]:
    """What the store's clock makes of the lease and of its agent."""
    from fdagent.fleet.presence import agent_cell, agent_key
    from models.ids import id_problem
    from models.lease import span_seconds
    from models.liveness import liveness

    notes = [f"{lease.agent or '?'} on {lease.host or '?'} holds it for job {lease.job_id or '?'}, op {lease.op}."]
    span = span_seconds(lease)
    if age is not None and span is not None:
        seems = "has lapsed" if seems_lapsed(lease, age) else "has not lapsed"
        notes.append(
            f"It was renewed {age:.0f} s ago and spans {span:.0f} s, so it seems that it {seems} ({ESTIMATE})."
        )
    if lease.agent and not id_problem(lease.agent):
        record, _ = agent_cell(store, lease.agent).read()
        blob = store.read(agent_key(lease.agent))
        seems = liveness(record, None if blob is None else blob.age)
        notes.append(f"Its agent seems {seems} ({ESTIMATE}).")
    notes.append(f"An {ESTIMATE} decides nothing: a worker goes by what it has itself seen unchanged.")
    return tuple(notes)


Kind = Callable[[Where, str], Explained | None]
KINDS: tuple[Kind, ...] = (_lease, _job)
"""Each answers None for a word that names none of its kind; a kind whose words have a form of their own comes first."""
