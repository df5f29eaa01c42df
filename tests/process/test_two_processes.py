"""Two real processes run one queue empty."""

import re
from collections import Counter

import pytest
from modes_kit import ENTITIES, Modes
from step_server import Server

from models.run import RunStatus

pytestmark = pytest.mark.process


def test_two_processes_on_one_queue_run_each_of_twelve_jobs_once(server, tmp_path):
    site = Modes(tmp_path / "project")
    jobs = [site.next(entity) for _ in range(4) for entity in ENTITIES]
    other = Server()
    try:
        server.start(site, out="one")
        other.start(site, out="other")
        assert [server.end(), other.end()] == [0, 0]
    finally:
        other.close()
    begun = [re.findall(r"job (\w+) attempt 1 of 3", (site.root / out).read_text()) for out in ("one", "other")]
    assert all(begun), "one process did everything, so nothing was shared"
    assert sorted(begun[0] + begun[1]) == sorted(jobs)
    ended = [re.findall(r"job (\w+) succeeded", (site.root / out).read_text()) for out in ("one", "other")]
    assert ended == begun
    assert {str(site.job(job).state) for job in jobs} == {"succeeded"}
    log = site.log()
    assert Counter(row.job_id for row in log) == Counter(jobs)
    assert {row.status for row in log} <= {RunStatus.SUCCEEDED, RunStatus.NO_CHANGE}
    assert sum(row.rows_inserted for row in log if row.entity == "bronze.appended") == len(site.good)
    for entity in ENTITIES:
        # All the files were there before the first job, so each was read once, whatever the load mode.
        places = [(f"landing/orders_2027-02-{day:02d}.csv", 8) for day in range(1, 13)]
        amounts = [(file, None) for file, _ in places] if entity == "silver.merged" else []
        site.refused[entity] = Counter([*places, *amounts])
        site.check_rows(entity)
