"""A worker's process: what its daemon tells it over stdin, and what it tells its daemon over stdout.

Guarantees
- The first line of stdin is its orders; each later line is a wish or news (`news.py`). The end of stdin means that the
  daemon is gone: the worker commits nothing more and ends, at the latest `ORPHAN_SECONDS` later, whatever it is in.
- Each line of stdout that it writes is one JSON event. What can't be told any more is dropped, never a reason to fail.
- What stops the whole worker (a full disk under the queue, a mistake of ours) is told in a sentence, without a
  traceback, and ends it with code 1: as with any crash, the job it had runs again.
- Orders hold no secret.

The queue file is where work is handed over; nothing of a job goes through these pipes.
"""

import contextlib
import json
import os
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from fdagent.commit import Transition
from fdagent.errors import in_words
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from fdagent.work.news import News
from fdagent.work.runner import Agent
from fdagent.work.worker import Retry, Told, Work
from models.job import Job
from models.run import RunRow

ORPHAN_SECONDS = 5.0
ORPHANED = 70
"""Exit code of a worker that outlived its daemon."""
STOP = "stop"
TRANSITION = "transition"
"""The event that carries a committed transition, for the audit log."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker needs to know to work: where the queue is, who it works for, and how patiently."""

    home: str
    label: str
    agent: str
    instance: str
    host: str
    project: str
    news: News
    """As it was when the worker was started."""
    memory_limit: str
    table_lease_seconds: float
    backoff_seconds: float
    max_backoff_seconds: float
    idle_seconds: float

    def to_line(self) -> str:
        """As the first line of stdin."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        """From the first line of stdin."""
        values = json.loads(line)
        return cls(**{**values, "news": News.from_line(json.dumps(values["news"]))})


class Daemon:
    """The daemon as its worker sees it: wishes come in, events go out."""

    def __init__(self, wishes: IO[str], events: IO[str], end: Any = os._exit, news: News | None = None) -> None:
        self._events, self._end = events, end
        self.news = news or News()
        """The newest."""
        self._stopping = threading.Event()
        self._gone = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._listen, args=(wishes,), name="wishes", daemon=True)

    def listen(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stopping(self) -> bool:
        """Take no more work."""
        return self._stopping.is_set()

    def orphaned(self) -> bool:
        """The daemon is gone."""
        return self._gone.is_set()

    def tell(self, event: str, **values: Any) -> None:
        """Tell the daemon, which writes the log."""
        with self._writing, contextlib.suppress(OSError, ValueError):
            # On a line of its own, whatever a transform has printed before.
            self._events.write("\n" + json.dumps({"event": event, **values}) + "\n")
            self._events.flush()

    def _listen(self, wishes: IO[str]) -> None:
        for line in wishes:
            if line.strip() == STOP:
                self._stopping.set()
            else:
                # The last line of a daemon that was killed may be half of one; that it has ended is what counts then.
                with contextlib.suppress(ValueError):
                    self.news = News.from_line(line)
        self._stopping.set()
        self._gone.set()
        # Native code may not come back to ask: nothing that is not committed yet may be, so the process can just end.
        timer = threading.Timer(ORPHAN_SECONDS, self._end, (ORPHANED,))
        timer.daemon = True
        timer.start()


def main() -> None:
    """Work for the daemon that started this process."""
    first = sys.stdin.readline()
    if not first:
        sys.exit(ORPHANED)
    orders = Orders.from_line(first)
    daemon = Daemon(sys.stdin, sys.stdout, news=orders.news)
    daemon.listen()
    code = 0
    try:
        with contextlib.closing(Database(Path(orders.home))) as database:
            _work(orders, daemon, database).serve(orders.idle_seconds)
    except Exception as err:  # noqa: BLE001  # whatever it is, the log is told where and not with which values
        daemon.tell("trouble", message=in_words(err))
        code = 1
    # Threads of native libraries don't hold up the end: all that was to be kept is committed.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(ORPHANED if daemon.orphaned() else code)


def _work(orders: Orders, daemon: Daemon, database: Database) -> Work:
    clock, ids, processes = SystemClock(), SystemIds(), SystemProcesses()
    pid = processes.pid()

    def audit(moved: Transition) -> None:
        daemon.tell(TRANSITION, transition=asdict(moved))

    return Work(
        Jobs(database, clock=clock, ids=ids, audit=audit, project=Path(orders.project)),
        Agent(
            orders.agent,
            orders.instance,
            orders.host,
            Path(orders.project),
            orders.memory_limit,
            orders.table_lease_seconds,
        ),
        Worker(orders.label, processes.place(), pid, processes.started_at(pid) or 0.0),
        daemon,
        clock,
        ids,
        processes,
        open_database=lambda: Database(Path(orders.home)),
        retry=Retry(orders.backoff_seconds, orders.max_backoff_seconds),
        told=_told(daemon),
        audit=audit,
        news=lambda: daemon.news,
    )


def _told(daemon: Daemon) -> Told:
    """What the worker does, as events."""

    def job(found: Job, said: str) -> None:
        about = {"job_id": found.id, "env": found.env, "attempt": found.attempt, "source": found.source}
        daemon.tell("job", message=said, **about)

    def row(ended: RunRow) -> None:
        about = {"job_id": ended.job_id, "env": ended.env, "entity": ended.entity, "run_id": ended.run_id}
        written = {"rows_written": ended.rows_written, "duration_ms": ended.duration_ms}
        daemon.tell("table", message=f"{ended.entity} {ended.status}. {ended.error}".strip(), **about, **written)

    return Told(job, row, lambda sentence: daemon.tell("trouble", message=sentence))
