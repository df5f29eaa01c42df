"""What the agent does with its jobs: each method is one transaction and, for each job it moves, one arrow of the chart.

Guarantees
- A job moves only by the chart, on the version that was read in the same transaction.
- Finishing one job and claiming the next is one durable transaction; so are a table's run-log row and the progress
  that says the table is done. A row is dropped only by `drop_batch`, after it is in the run log.
- Nothing is claimed for a worker that is asked to stop: the caller doesn't ask.

Does not know what a job does, and starts no process.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fdagent.commit import Audit, Committed, Transition, commit
from fdagent.errors import StoodDown
from fdagent.ports import Clock, Ids, Processes
from fdagent.queue import batches, belongs
from fdagent.queue.batches import Batch
from fdagent.queue.cell import SELECT, JobCell, from_row
from fdagent.queue.db import Database
from machines.job import JOB
from models.job import Job, JobFacts, JobState, reckoned_ahead
from models.step import Refusal

PRUNED_AT_ONCE = 500
_LATEST = SELECT + " where state = 'queued' {} order by not_before desc limit 1"
"""Where nothing is due: the job that would wait longest, which a clock that was ahead may have written."""
LISTED_AT_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Worker:
    """Who runs jobs: its label `<agent>/<n>`, and what must be equal before "its process is gone" may be said.

    `envs`: the environments it may take jobs of; None: all.
    """

    label: str
    place: str
    pid: int
    process_started_at: float
    envs: tuple[str, ...] | None = None


class Seen(Protocol):
    """Sightings: how long this process itself has seen the same version of a row."""

    def seen(self, key: str, version: str) -> None:
        """A row was met at this version."""
        ...

    def unchanged_for(self, key: str, version: str) -> float | None:
        """Seconds this version has been seen for; None when it was never met."""
        ...


class Jobs:
    """The queue as its users see it; with `project`, only where the queue is that project's (`belongs.py`)."""

    def __init__(
        self, database: Database, *, clock: Clock, ids: Ids, audit: Audit | None = None, project: Path | None = None
    ) -> None:
        self.database, self.clock, self.ids, self.audit = database, clock, ids, audit
        self._folder = "" if project is None else belongs.named(project)
        self._moved: list[Transition] = []

    @contextlib.contextmanager
    def write(self, *, durable: bool) -> Iterator[sqlite3.Connection]:
        """One write transaction; its arrows are told to the audit log once it is committed.

        For the other tables of the queue file that change together with a job.
        """
        self._moved.clear()
        with self.database.write(durable=durable) as transaction:
            if self._folder:
                belongs.require(transaction, self._folder)
            yield transaction
        if self.audit is not None:
            for moved in self._moved:
                self.audit(moved)

    def enqueue(self, new: Job, *, once: bool = False) -> Job | Refusal:
        """Put a new job in.

        Args:
            new: The job, queued; `not_before` is at least now, so that the order of claims is the order of asking.
            once: Its dedupe key may never come again while any row of it is kept (requests), not only while
                an unfinished one is there.
        """
        with self.write(durable=True) as transaction:
            return self.put(transaction, new, once=once)

    def put(self, transaction: sqlite3.Connection, new: Job, *, once: bool = False) -> Job | Refusal:
        """`enqueue` as a part of a transaction of `write`."""
        ready = replace(new, not_before=max(new.not_before, self.clock.wall()))
        where = "" if once else "and state in ('queued', 'running')"
        sql = f"select 1 from job where dedupe_key = ? {where} limit 1"

        def facts(_: Job | None) -> JobFacts:
            return JobFacts(key_free=transaction.execute(sql, (new.dedupe_key,)).fetchone() is None, new=ready)

        return _record(self._move(transaction, new.id, "enqueue", facts))

    def claim(self, worker: Worker) -> Job | None:
        """Take the job that has been due longest; None when none is due."""
        with self.write(durable=False) as transaction:
            return self._claim(transaction, worker)

    def finish(
        self, job: Job, event: str, facts: JobFacts, *, rows: Sequence[str] = (), next_for: Worker | None = None
    ) -> tuple[Job | Refusal, Job | None]:
        """End an attempt, with its last run-log rows, and claim the next job in the same transaction.

        Args:
            job: The claimed job.
            event: succeed, fail, retry, bury or cancel.
            facts: What the event needs; the claim is filled in here.
            rows: Run-log rows (JSON) that go with the end.
            next_for: Claim the next job for this worker.

        Returns:
            The finished job, or why it is refused (then nothing is written); and the next job, if one was due.
        """
        with self.write(durable=True) as transaction:
            answer = self._move(transaction, job.id, event, lambda _: replace(facts, claim=job.claim))
            if isinstance(answer, Committed):
                batches.keep(transaction, job.id, job.claim, job.env, rows)
            return _record(answer), None if next_for is None else self._claim(transaction, next_for)

    def progress(self, job: Job, tables: Mapping[str, Any], row: str) -> Job:
        """Keep the run-log row of a table that ended, and say so in the job; the job as it is now.

        Raises:
            StoodDown: The job is no longer this claim's; nothing was written.
        """
        facts = JobFacts(claim=job.claim, believed=True, tables=tables)
        with self.write(durable=True) as transaction:
            now = _record(self._move(transaction, job.id, "renew", lambda _: facts))
            if isinstance(now, Refusal):
                raise StoodDown(f"Job {job.id} is no longer this worker's: {now}.")
            batches.keep(transaction, job.id, job.claim, job.env, (row,))
            return now

    def renew(self, job: Job, *, lapsed: bool, tables: Mapping[str, Any] | None = None) -> Job | Refusal:
        """Show that the job's worker lives. `lapsed`: whether the holder's own belief has ended."""
        facts = JobFacts(claim=job.claim, believed=not lapsed, tables=tables)
        with self.write(durable=False) as transaction:
            return _record(self._move(transaction, job.id, "renew", lambda _: facts))

    def recover(self, seen: Seen, processes: Processes, why: Callable[[Job], str] = lambda _: "") -> list[Job]:
        """Take back every running job that nobody runs any more; the jobs as they are now.

        Args:
            seen: For how long each was seen unchanged.
            processes: Which processes there are.
            why: What is known of the end of its worker, as a sentence; empty: nothing.
        """
        running = self.running()
        for job in running:
            seen.seen(job.id, job.op)
        left = [job for job in running if _is_left(left_facts(job, seen, processes))]
        answers = [self._recover(job.id, why(job), seen, processes) for job in left]
        return [answer for answer in answers if isinstance(answer, Job)]

    def _recover(self, job_id: str, why: str, seen: Seen, processes: Processes) -> Job | Refusal:
        def facts(job: Job | None) -> JobFacts:
            return JobFacts() if job is None else replace(left_facts(job, seen, processes), error=why)

        with self.write(durable=True) as transaction:
            return _record(self._move(transaction, job_id, "recover", facts))

    def ask(self, job_id: str, event: str, facts: JobFacts) -> Job | Refusal:
        """A person's wish about one job: ask_to_stop, cancel, revive."""
        with self.write(durable=True) as transaction:

            def gather(job: Job | None) -> JobFacts:
                return replace(facts, key_free=job is not None and self.key_free(job))

            return _record(self._move(transaction, job_id, event, gather))

    def key_free(self, job: Job) -> bool:
        """May it be queued again: does no other unfinished job have its dedupe key?"""
        sql = "select 1 from job where dedupe_key = ? and id <> ? and state in ('queued', 'running')"
        return not self.database.rows(sql, job.dedupe_key, job.id)

    def prune(self, retention_seconds: float) -> int:
        """Delete jobs that finished longer ago than they are kept and whose rows are in the run log; how many."""
        before = self.clock.wall() - retention_seconds
        sql = """select id from job where finished_at < ?
            and not exists (select 1 from run_row where job_id = job.id) limit ?"""
        with self.write(durable=False) as transaction:
            ids = [row["id"] for row in transaction.execute(sql, (before, PRUNED_AT_ONCE))]
            facts = JobFacts(retention_seconds=retention_seconds)
            moved = [self._move(transaction, job_id, "prune", lambda _: facts) for job_id in ids]
        return sum(isinstance(answer, Committed) for answer in moved)

    def get(self, job_id: str) -> Job | None:
        """One job."""
        rows = self.database.rows(f"{SELECT} where id = ?", job_id)
        return from_row(rows[0]) if rows else None

    def of_key(self, dedupe_key: str) -> Job | None:
        """The newest job of a dedupe key."""
        rows = self.database.rows(f"{SELECT} where dedupe_key = ? order by created_at desc limit 1", dedupe_key)
        return from_row(rows[0]) if rows else None

    def find(self, start: str) -> list[Job]:
        """The jobs whose id begins with `start`; only the one of that very id, where there is one."""
        exact = self.get(start)
        if exact is not None:
            return [exact]
        if not start:
            return []
        # A range, which the index answers; no id holds the last code point.
        sql = f"{SELECT} where id between ? and ? order by id limit 100"
        return [from_row(row) for row in self.database.rows(sql, start, f"{start}\U0010ffff")]

    def running(self) -> list[Job]:
        """The jobs that run."""
        return [from_row(row) for row in self.database.rows(f"{SELECT} where state = 'running'")]

    def due(self, envs: Sequence[str], most: int) -> int:
        """How many queued jobs of these environments are due, counted up to `most`."""
        now, which = self.clock.wall(), _of(envs)
        sql = f"select count(*) from (select 1 from job where state = 'queued' and not_before <= ? {which} limit ?)"
        latest = self.database.rows(_LATEST.format(which), *envs)
        ahead = any(reckoned_ahead(row["updated_at"], now) for row in latest)
        return int(self.database.rows(sql, now, *envs, most)[0][0]) or int(ahead)

    def wish(self, name: str) -> str:
        """What a person wished under this name; empty: nothing."""
        rows = self.database.rows("select value from wish where name = ?", name)
        return str(rows[0]["value"]) if rows else ""

    def set_wish(self, name: str, value: str) -> None:
        """Wish something of the agent of this home, whatever project it has; empty: take it back."""
        with self.database.write(durable=True) as transaction:
            transaction.execute("delete from wish where name = ?", (name,))
            if value:
                transaction.execute("insert into wish (name, value) values (?, ?)", (name, value))

    def unfinished(self) -> list[Job]:
        """Running jobs, then queued ones in the order they are due."""
        sql = f"{SELECT} where state = ? order by not_before limit {LISTED_AT_MOST}"
        return [from_row(row) for state in ("running", "queued") for row in self.database.rows(sql, state)]

    def unfinished_of(self, start: str) -> list[Job]:
        """Unfinished jobs whose dedupe key begins with `start`."""
        sql = f"{SELECT} where state in ('queued', 'running') and dedupe_key between ? and ?"
        return [from_row(row) for row in self.database.rows(sql, start, f"{start}\U0010ffff")]

    def finished(self, last: int) -> list[Job]:
        """The jobs that finished last, newest first."""
        sql = f"{SELECT} where finished_at is not null order by finished_at desc limit ?"
        return [from_row(row) for row in self.database.rows(sql, last)]

    def counts(self, env: str = "") -> dict[str, int]:
        """How many jobs are in each state that has any; of one environment, or of all."""
        which, values = ("where env = ?", (env,)) if env else ("", ())
        sql = f"select state, sum(n) as n from tally {which} group by state"
        found = {row["state"]: row["n"] for row in self.database.rows(sql, *values)}
        return {str(state): found[state] for state in JobState if found.get(state)}

    def next_due(self, envs: Sequence[str] | None = None) -> float | None:
        """When the first queued job of these environments is due, in seconds since the epoch; None: of all."""
        sql = f"select min(not_before) as at from job where state = 'queued' {_of(envs)}"
        at: float | None = self.database.rows(sql, *(envs or ()))[0]["at"]
        return at

    def closed_batches(self) -> list[Batch]:
        """What waits for the run log: the batches that have a name, oldest first, then each environment's other rows."""
        return batches.closed(self.database)

    def oldest_rows(self) -> str:
        """The attempt that is over whose run-log rows have waited longest; empty: none wait."""
        return batches.oldest(self.database)

    def name_batch(self, env: str) -> str:
        """Make a batch of an environment's oldest rows that have no name; its name, empty when there are none.

        Durable, because the append that follows is: after a power loss it must come again under the same name.
        """
        name = self.ids.new()
        with self.write(durable=True) as transaction:
            return name if batches.give_name(transaction, env, name) else ""

    def batch_rows(self, name: str) -> list[str]:
        """The rows of a batch, as JSON texts; none once another worker has dropped them."""
        return batches.texts(self.database, name)

    def drop_batch(self, name: str) -> None:
        """Forget rows that are in the run log now."""
        with self.write(durable=False) as transaction:
            batches.drop(transaction, name)

    def _claim(self, transaction: sqlite3.Connection, worker: Worker) -> Job | None:
        row = self._first_due(transaction, worker.envs)
        if row is None:
            return None
        facts = JobFacts(
            worker_free=True,
            worker=worker.label,
            place=worker.place,
            pid=worker.pid,
            process_started_at=worker.process_started_at,
        )
        answer = _record(self._move(transaction, row["id"], "claim", lambda _: facts, row))
        return None if isinstance(answer, Refusal) else answer

    def _first_due(self, transaction: sqlite3.Connection, envs: Sequence[str] | None) -> sqlite3.Row | None:
        """The row of the job to claim next, of some environments or of all."""
        now, which = self.clock.wall(), _of(envs)
        first = f"{SELECT} where state = 'queued' and not_before <= ? {which} order by not_before limit 1"
        row: sqlite3.Row | None = transaction.execute(first, (now, *(envs or ()))).fetchone()
        if row is None:
            row = transaction.execute(_LATEST.format(which), envs or ()).fetchone()
            row = row if row is not None and reckoned_ahead(row["updated_at"], now) else None
        return row

    def _move(
        self,
        transaction: sqlite3.Connection,
        job_id: str,
        event: str,
        facts: Callable[[Job | None], JobFacts],
        row: sqlite3.Row | None = None,
    ) -> Committed[Job] | Refusal:
        return commit(
            JOB,
            JobCell(transaction, job_id, row),
            event,
            op=self.ids.new(),
            facts=facts,
            clock=self.clock,
            ids=self.ids,
            key=job_id,
            audit=self._moved.append,
            tries=1,
        )


def left_facts(job: Job, seen: Seen, processes: Processes) -> JobFacts:
    """What tells whether a running job is left alone: its lease has lapsed for this reader, or its process is gone."""
    unchanged = seen.unchanged_for(job.id, job.op)
    here = bool(job.place) and job.place == processes.place()
    return JobFacts(
        lapsed=unchanged is not None and unchanged >= job.lease_seconds,
        process_gone=here and processes.started_at(job.pid) != job.process_started_at,
    )


def _of(envs: Sequence[str] | None) -> str:
    """What limits a statement to the jobs of these environments; None: to none."""
    return "" if envs is None else f"and env in ({', '.join('?' for _ in envs)})"


def _is_left(facts: JobFacts) -> bool:
    return facts.lapsed or facts.process_gone


def _record(answer: Committed[Job] | Refusal) -> Job | Refusal:
    if isinstance(answer, Refusal):
        return answer
    if answer.record is None:
        raise AssertionError("a job's arrow that deletes was asked for a job")
    return answer.record


def row_text(row: Mapping[str, Any]) -> str:
    """A run-log row as the queue keeps it."""
    return json.dumps(row, separators=(",", ":"))
