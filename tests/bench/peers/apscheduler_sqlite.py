"""APScheduler with due no-op jobs in SQLite, one worker: `apscheduler_sqlite.py <folder> <jobs> <journal mode>`."""

import json
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_REMOVED
from apscheduler.executors.debug import DebugExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import create_engine, event

WAIT_SECONDS = 60.0

folder, jobs, journal_mode = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
engine = create_engine(f"sqlite:///{folder / 'apscheduler.db'}")


@event.listens_for(engine, "connect")
def durable(connection, _):
    connection.execute(f"pragma journal_mode = {journal_mode}")
    connection.execute("pragma synchronous = full")


def noop():
    pass


counts = {EVENT_JOB_EXECUTED: 0, EVENT_JOB_REMOVED: 0}
done = threading.Event()


def seen(happened):
    counts[happened.code] += 1
    if set(counts.values()) == {jobs}:
        done.set()


# The debug executor runs a job in the scheduler's own thread: one worker, and faster here than a pool of one thread.
scheduler = BackgroundScheduler(
    jobstores={"default": SQLAlchemyJobStore(engine=engine)}, executors={"default": DebugExecutor()}
)
scheduler.add_listener(seen, EVENT_JOB_EXECUTED | EVENT_JOB_REMOVED)
scheduler.start(paused=True)
for _ in range(jobs):
    scheduler.add_job("__main__:noop", misfire_grace_time=None)
started = time.perf_counter()
scheduler.resume()
assert done.wait(WAIT_SECONDS), f"after {WAIT_SECONDS} s: {counts}"
seconds = time.perf_counter() - started
scheduler.shutdown()

settings = (
    f"APScheduler {metadata.version('apscheduler')} on SQLAlchemy {metadata.version('sqlalchemy')}: SQLAlchemyJobStore on "
    f"SQLite with journal_mode={journal_mode}, synchronous=full, DebugExecutor; all due jobs are read at once, each is run "
    f"and then removed"
)
print(json.dumps({"per_second": jobs / seconds, "settings": settings}))
