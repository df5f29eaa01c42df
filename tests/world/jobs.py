"""Duties of an agent's workers over the production queue, and what must hold of its rows.

A worker takes back what nobody runs any more, claims, believes, runs one table and ends the attempt.
"""

import sqlite3
from typing import Any

from fdagent.errors import FdagentError, StoodDown
from fdagent.queue.cell import COLUMNS, from_row
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.sightings import Sightings
from models.job import FINAL, Job, JobFacts, JobState
from models.step import Refusal

from .landing import landing
from .ports import rows_of as contents
from .process import Me, Violation
from .scope import BASE, Machine, Monitor
from .state import State

TICK = 3.0
SPAN = 6.0
JOB = Job("j1", JobState.QUEUED, "asked", "dev", run_key="j1", dedupe_key="j1", lease_seconds=SPAN, max_attempts=2)


class _Still:
    """The clock and ids with which a world's first queue is filled."""

    def wall(self) -> float:
        return BASE

    def elapsed(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None: ...

    def new(self) -> str:
        return "asked"

    def fraction(self) -> float:
        return 0.5


def machine_with(*jobs: Job, place: str = "m") -> Machine:
    """A machine whose queue holds these."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    queue = Jobs(Database.over(connection), clock=_Still(), ids=_Still())
    for job in jobs:
        assert not isinstance(queue.enqueue(job), Refusal)
    return Machine(place=place, rows=contents(connection))


def work(me: Me) -> str | None:
    """Take back what nobody runs any more, then claim a job, or wait for one."""
    seen = me.memory.setdefault("sightings", Sightings(me.clock))
    for left in me.queue().recover(seen, me.processes):
        me.saw(f"recovered as {left.state}")
    started = me.clock.elapsed()
    pid = me.processes.pid()
    job = me.queue().claim(Worker(me.name, me.processes.place(), pid, float(pid)))
    if job is None:
        if me.idle():
            return "rest"  # as a worker ends that has nothing left to do
        me.clock.sleep(TICK)
        return "work"
    me.memory["job"] = job
    me.believe(f"the claim of {job.id}", job.lease_seconds).confirmed(started)
    return None


def renew(me: Me) -> str | None:
    """One renewal, a tick after the claim."""
    job = me.memory["job"]
    belief = me.beliefs[f"the claim of {job.id}"]
    me.clock.sleep(TICK)
    started = me.clock.elapsed()
    if isinstance(me.queue().renew(job, lapsed=not belief.held()), Refusal):
        belief.end()
        me.saw("claim lost")
        return "work"
    belief.confirmed(started)
    return None


def run(me: Me) -> str | None:
    """Land the job's table while the claim is believed in, and end the attempt."""
    job: Job = me.memory.pop("job")
    name = f"the claim of {job.id}"
    event, facts = "succeed", JobFacts()
    try:
        landing(me, job.run_key, still_mine=lambda me: me.beliefs[name].check("The claim"))
    except StoodDown:
        me.saw("stood down")
        del me.beliefs[name]
        return "work"
    except FdagentError as err:
        event = "retry" if job.attempt < job.max_attempts else "bury"
        facts = JobFacts(retryable=True, error=str(err), category=str(err.category))
    me.beliefs[name].end()
    del me.beliefs[name]
    if isinstance(me.queue().finish(job, event, facts, rows=[f'{{"attempt":{job.attempt}}}'])[0], Refusal):
        me.saw("end refused")
    return "work"


def rest(me: Me) -> None:
    """Every job has ended; so does this worker."""


def ask_to_stop(me: Me) -> None:
    """A person wants it stopped."""
    if not isinstance(me.queue().ask("j1", "ask_to_stop", JobFacts(reason="cancelled")), Refusal):
        me.saw("stop asked")


def rows_of(state: State, machine: str) -> list[Job]:
    """The jobs in a machine's queue."""
    return [from_row(row) for row in state.machines[machine].rows[0]]


class JobFinals(Monitor):
    """P9 for jobs: a final state never changes by itself (but what was handed over may come back), attempts stay within their bound, and what a row says ran has
    one batch of run-log rows at most."""

    def check(self, state: State) -> None:
        for name, machine in state.machines.items():
            if state.ghost.get(("rows of", name)) is machine.rows:
                continue
            before = {row[0]: row for row in state.ghost.get(("rows of", name), ((), ()))[0]}
            for row in machine.rows[0]:
                self._judge(
                    dict(zip(COLUMNS, before.get(row[0], row), strict=True)), dict(zip(COLUMNS, row, strict=True))
                )
            batches = [tuple(row)[1:3] for row in machine.rows[1]]
            if len(set(batches)) != len(batches):
                raise Violation(f"a table of one attempt has two run-log rows in {name}'s queue")
            state.ghost["rows of", name] = machine.rows

    def _judge(self, was: dict[str, Any], now: dict[str, Any]) -> None:
        came_back = (was["state"], was["reason"], now["state"]) == ("cancelled", "handed_over", "queued")
        if was["state"] in FINAL and now["state"] != was["state"] and not came_back:
            raise Violation(f"job {now['id']} was {was['state']} and became {now['state']}")
        if now["state"] == "succeeded" and was["state"] == "running" and _by(now["op"]) != _by(was["claim"]):
            raise Violation(f"job {now['id']}, claimed by {_by(was['claim'])}, was ended by {_by(now['op'])}")
        if now["attempt"] > now["max_attempts"]:
            raise Violation(f"job {now['id']} has attempt {now['attempt']} of {now['max_attempts']}")


def _by(op: str) -> str:
    """Which start drew this id."""
    return op.rpartition("x")[0]


def ended(state: State) -> bool:
    """Is every job final?"""
    return all(job.state in FINAL for name in state.machines for job in rows_of(state, name))
