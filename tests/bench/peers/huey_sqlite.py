"""huey's SQLite queue, emptied of no-op tasks by one worker: `huey_sqlite.py <folder> <jobs>`.

The loop is what huey's own worker thread does with each task (dequeue, execute), without its thread and its polling.
"""

import json
import sys
import time
from pathlib import Path

import huey

folder, jobs = Path(sys.argv[1]), int(sys.argv[2])
queue = huey.SqliteHuey(filename=str(folder / "huey.db"), fsync=True)
ran = 0


@queue.task()
def noop():
    global ran  # noqa: PLW0603 - a task is a function, and this is what it does
    ran += 1


for _ in range(jobs):
    noop()
started = time.perf_counter()
while (task := queue.dequeue()) is not None:
    queue.execute(task)
seconds = time.perf_counter() - started
assert ran == jobs, f"{ran} of {jobs} ran"

read = queue.storage.conn.execute
settings = (
    f"huey {huey.__version__}: SqliteHuey(fsync=True), the rest as it comes (journal_mode="
    f"{read('pragma journal_mode').fetchone()[0]}, synchronous={read('pragma synchronous').fetchone()[0]}); it deletes "
    f"a job before it runs it, so a job whose worker dies is gone"
)
print(json.dumps({"per_second": jobs / seconds, "settings": settings}))
