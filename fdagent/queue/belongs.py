"""Which metadata project a queue's jobs are of: one home may be named by two projects, and no job may run in the other.

Guarantees: the first write into a queue says whose it is; from then on each transaction of another project is refused
whole. A queue goes over to another project only when nothing is left in it that could still run or be written for the
old one, or when the old one's folder is gone (it was moved), in one transaction with that look. What is still there of
another project's finished jobs and due times is deleted with it: its tables and their run log say what happened.

Compares folders, not contents: a project that is checked out twice is two projects.
"""

import os
import sqlite3
from pathlib import Path

from fdagent.errors import Refused
from fdagent.queue.db import Database

PROJECT_FILE = "layers.toml"
_LEFT = """select exists (select 1 from job where state = 'queued') or exists (select 1 from job where state = 'running')
    or exists (select 1 from run_row)"""


def folder_of(database: Database) -> str:
    """The project's folder; empty when nothing was written yet."""
    rows = database.rows("select folder from project")
    return str(rows[0]["folder"]) if rows else ""


def named(project: Path) -> str:
    """A project's folder as a queue names it: without links, and as text whatever its bytes are."""
    return os.path.realpath(project).encode("utf-8", "backslashreplace").decode()


def require(transaction: sqlite3.Connection, folder: str) -> None:
    """Go on only in the project's own queue; one that is nobody's yet becomes its own. `folder`: see `named`.

    Raises:
        Refused: The queue is another project's.
    """
    known = transaction.execute("select folder from project").fetchone()
    if known is None:
        transaction.execute("insert into project (only, folder) values (1, ?)", (folder,))
    elif known["folder"] != folder:
        raise _refusal(known["folder"], folder)


def adopt(database: Database, project: Path) -> None:
    """Make the queue this project's, where nothing of another one is left in it.

    Raises:
        Refused: Another project has jobs that are not finished, or run-log rows that are not written.
    """
    folder = named(project)
    if folder_of(database) == folder:
        return
    with database.write(durable=True) as transaction:
        known = transaction.execute("select folder from project").fetchone()
        if known is not None and known["folder"] == folder:
            return  # another process of this project was first
        if known is not None and (Path(known["folder"]) / PROJECT_FILE).is_file():
            if transaction.execute(_LEFT).fetchone()[0]:
                raise _refusal(known["folder"], folder)
            # Not moved: another's. Its keys and ids would be taken for this one's, and its jobs could be tried again here.
            for table in ("job", "schedule", "due"):
                transaction.execute(f"delete from {table}")
        transaction.execute("insert or replace into project (only, folder) values (1, ?)", (folder,))


def _refusal(theirs: str, ours: str) -> Refused:
    return Refused(
        f"The queue of this home is of the project {theirs}, and this is {ours}: a job would run in the wrong one.",
        fix="Name another home for this project (FABRIC_DESKTOP_HOME, or [agent] home), or give the command with "
        f"--project {theirs}. Once nothing is left to run or to write there, an idle home goes over by itself.",
    )
