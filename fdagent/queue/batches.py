"""Run-log rows in the queue file: which of them go into the run log as one append, and under which name.

Guarantees: a batch has its name, durably, before anybody tries to append it, and neither its name nor its rows change
from then on; so an append that is repeated, by whomever and after whatever crash, is the same one. Only rows of attempts
that are over are named: nothing is added to those. A row and its name leave together.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from fdagent.queue.db import Database

BATCH_ROWS = 5_000
"""A batch gets no further attempt once it has so many rows: one append holds them all in memory."""
_CLOSED = """from run_row r left join job j on j.id = r.job_id
    left join run_batch b on b.job_id = r.job_id and b.claim = r.claim where (j.id is null or j.claim <> r.claim)"""
_NAME = f"""insert into run_batch (job_id, claim, name) select distinct job_id, claim, ? from (
    select r.job_id, r.claim {_CLOSED} and b.name is null and r.env = ? order by r.seq limit ?)"""
_ROWS = "select r.row from run_batch b join run_row r using (job_id, claim) where b.name = ? order by r.seq"


@dataclass(frozen=True, slots=True)
class Batch:
    """Run-log rows of one environment, whose attempts are over; `name`: empty while they have none."""

    env: str
    name: str
    rows: int


def closed(database: Database) -> list[Batch]:
    """What waits for the run log: the batches that have a name, oldest first, then each environment's other rows."""
    sql = f"""select r.env, coalesce(b.name, '') as name, count(*) as n {_CLOSED}
        group by r.env, b.name order by b.name is null, min(r.seq)"""
    return [Batch(row["env"], row["name"], row["n"]) for row in database.rows(sql)]


def oldest(database: Database) -> str:
    """The attempt whose rows have waited longest for the run log; empty: none waits. Reads few rows, however many wait."""
    rows = database.rows(f"select r.job_id, r.claim {_CLOSED} order by r.seq limit 1")
    return f"{rows[0]['job_id']}/{rows[0]['claim']}" if rows else ""


def texts(database: Database, name: str) -> list[str]:
    """The rows of a batch, as JSON, in the order the tables ended; none once another worker has dropped them."""
    return [row["row"] for row in database.rows(_ROWS, name)]


def keep(transaction: sqlite3.Connection, job_id: str, claim: str, env: str, rows: Sequence[str]) -> None:
    """Keep rows of an attempt."""
    transaction.executemany(
        "insert into run_row (job_id, claim, env, row) values (?, ?, ?, ?)",
        [(job_id, claim, env, row) for row in rows],
    )


def give_name(transaction: sqlite3.Connection, env: str, name: str) -> bool:
    """Make a batch of the environment's oldest rows that have no name, of whole attempts; False: there are none."""
    return transaction.execute(_NAME, (name, env, BATCH_ROWS)).rowcount > 0


def drop(transaction: sqlite3.Connection, name: str) -> None:
    """Forget a batch."""
    transaction.execute(
        "delete from run_row where (job_id, claim) in (select job_id, claim from run_batch where name = ?)", (name,)
    )
    transaction.execute("delete from run_batch where name = ?", (name,))
