"""What only a person's look reads of the queue: bounded, and never part of work."""

from fdagent.queue.cell import SELECT, from_row
from fdagent.queue.db import Database
from models.job import Job


def waiting(database: Database, most: int) -> list[Job]:
    """The queued jobs that are due first."""
    sql = f"{SELECT} where state = 'queued' order by not_before limit ?"
    return [from_row(row) for row in database.rows(sql, most)]


def rows_waiting(database: Database) -> tuple[int, float | None]:
    """How many run-log rows of attempts that are over are not in the run log yet, and since when the oldest waits."""
    sql = """select count(*) as n, min(coalesce(j.finished_at, j.updated_at)) as since
        from run_row r join job j on j.id = r.job_id where j.claim <> r.claim"""
    row = database.rows(sql)[0]
    return row["n"], row["since"]
