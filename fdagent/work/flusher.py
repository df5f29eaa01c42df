"""Brings run-log rows of attempts that are over from the queue into the run log.

Guarantees
- A row is neither lost nor doubled, whatever is killed when and however many workers of a home do this at once: rows get
  a batch's name in the queue first, durably; that name is the append's transaction; they leave the queue after it.
- A run log that can't be written ends no work: its rows stay, it is tried once a turn for each environment, and told
  once for each reason. While its oldest batch waits, no other is made, so an outage leaves few and large ones.
- While job follows job, rows wait `BUSY_SECONDS` for others to go with: an append costs as much as a small table's run.
  They don't wait for a long job: `meanwhile` brings them while it runs, as an idle worker does, every `LATE_SECONDS`.

Does not know a home that was copied while rows waited in it: each copy brings them once.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fdagent.engine import runlog
from fdagent.errors import in_words
from fdagent.ports import Clock, Ids
from fdagent.project import load
from fdagent.project.places import Places, environment_named
from fdagent.queue.batches import BATCH_ROWS
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from fdagent.work.runner import Wishes
from models.run import RunRow

BUSY_SECONDS = 2.0
"""Between two flushes while there is always a next job."""
LATE_SECONDS = 10.0
"""Between two flushes beside a long job or while nothing is to do: of rows that could not be written, or that another
worker has left."""
LONGEST_JOIN_SECONDS = 30.0


@dataclass(slots=True)
class Flusher:
    """One worker's flushes.

    Args:
        jobs: The queue.
        project: The metadata project's folder.
        wishes: A worker whose daemon is gone writes nothing more.
        trouble: Told what could not be written.
    """

    jobs: Jobs
    project: Path
    wishes: Wishes
    clock: Clock
    ids: Ids
    trouble: Callable[[str], None]
    _late: dict[str, str] = field(default_factory=dict)
    """Why rows could not be brought into an environment's run log the last time, by environment."""
    _flushed_at: float | None = None

    def flush(self) -> None:
        """Bring all rows that wait.

        Raises:
            HomeError, GaveUp: The queue itself can't be used, so there is no going on.
        """
        self._flush(self.jobs)

    def flush_if_due(self) -> None:
        """Flush, unless the last flush was a moment ago; raises as `flush` does."""
        if self._flushed_at is None or self.clock.elapsed() - self._flushed_at >= BUSY_SECONDS:
            self.flush()

    def flush_if_late(self) -> None:
        """Flush now and then, while nothing else is to do; raises as `flush` does."""
        if self._flushed_at is not None and self.clock.elapsed() - self._flushed_at >= LATE_SECONDS:
            self.flush()

    @contextlib.contextmanager
    def meanwhile(self, open_database: Callable[[], Database]) -> Iterator[None]:
        """Around a job: if it takes long, what was left from the ones before is brought from a thread.

        Args:
            open_database: A connection for that thread.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._beside, args=(over, open_database), name="run log", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(LONGEST_JOIN_SECONDS)

    def _beside(self, over: threading.Event, open_database: Callable[[], Database]) -> None:
        wait = BUSY_SECONDS
        while not over.wait(wait):
            wait = LATE_SECONDS
            try:
                with contextlib.closing(open_database()) as database:
                    self._flush(Jobs(database, clock=self.clock, ids=self.ids))
            except Exception as err:  # noqa: BLE001  # the queue, which the worker itself is about to meet, if it lasts
                self.trouble(f"Run-log rows wait until the job that runs has ended. {in_words(err)}")
                return

    def _flush(self, jobs: Jobs) -> None:
        told, self._late = self._late, {}
        try:
            for batch in jobs.closed_batches():
                # Those without a name, the last of an environment, are as many batches as they are large.
                for _ in range(1 if batch.name else -(-batch.rows // BATCH_ROWS)):
                    if self.wishes.orphaned():
                        return
                    if batch.env in self._late:
                        break
                    self._bring(jobs, batch.env, batch.name or jobs.name_batch(batch.env), told)
        finally:
            # From its end, so that a run log which fails slowly does not keep a worker from its jobs.
            self._flushed_at = self.clock.elapsed()

    def _bring(self, jobs: Jobs, env: str, name: str, told: dict[str, str]) -> None:
        """Bring one batch; a nameless one has been brought by another worker meanwhile."""
        if not name:
            return
        texts = jobs.batch_rows(name)
        try:
            project = load.load_project(self.project)
            places = Places(project, environment_named(project, env))
            rows = [RunRow.from_text(text) for text in texts]
            runlog.append_rows(places, name, rows, clock=self.clock, ids=self.ids)
        except Exception as err:  # noqa: BLE001  # DuckDB, Arrow, delta-rs, the system: no log may end the work
            sentence = f"The run log of {env} could not be written; its rows are kept. {in_words(err)}"
            if told.get(env) != sentence:
                self.trouble(sentence)
            self._late[env] = sentence
            return
        jobs.drop_batch(name)
