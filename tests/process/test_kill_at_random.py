"""`kill -9` of `fdagent run --until-idle` at random moments, again and again, over one project that keeps growing."""

import random
import subprocess
import time

import pytest
from process_kit import DONE, EVENTS, LONGEST_SECONDS, Site

from models.job import JobState
from models.run import RunStatus

pytestmark = pytest.mark.process

SEED = 20270115
KILLS = 20
ROUNDS = 40
"""At most so many deliveries: a run that ends before its moment was not killed, and another must be."""
KILLS_OF_A_JOB = 4
"""One fewer than its attempts: the last one is left alone."""


def site(root) -> Site:
    made = Site(root)
    made.entity("silver.order_events", EVENTS)
    made.promote()
    return made


def kill_at(victim: Site, moment: float) -> bool:
    """Start a run and kill it so many seconds later; did that hit it?"""
    process = victim.start()
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate(timeout=LONGEST_SECONDS)
    return process.returncode == -9


def seconds_of(run) -> float:
    started = time.monotonic()
    run()
    return time.monotonic() - started


@pytest.mark.long
def test_twenty_kills_at_random_moments_leave_the_tables_of_undisturbed_runs(tmp_path):
    calm, victim = site(tmp_path / "calm"), site(tmp_path / "victim")
    dice = random.Random(SEED)
    # One moment in each twentieth of a run, in any order; less time where tables are done already.
    parts = [(number + dice.random()) / KILLS for number in range(KILLS)]
    dice.shuffle(parts)
    hits = 0
    seen = set()
    for number in range(ROUNDS):
        for each in (calm, victim):
            each.deliver()
            each.ask(attempts=KILLS_OF_A_JOB + 1)
        whole = seconds_of(calm.run)
        for _ in range(min(KILLS_OF_A_JOB, KILLS - hits)):
            job = victim.job(victim.jobs_asked[-1])
            moment = parts[hits] * whole * (1 - len(victim.done(job.id)) / 8)
            if job.state is JobState.SUCCEEDED or not kill_at(victim, moment):
                break
            hits += 1
            reached = (str(victim.job(job.id).state), len(victim.done(job.id)))
            seen.add(reached)
            print(
                f"seed {SEED}, delivery {number}: killed after {moment:.2f} s, {reached[0]}, {reached[1]} tables done"
            )
        victim.run()
        if hits == KILLS:
            break
    assert hits == KILLS, "too few of the kills hit a run"
    assert len(seen) >= 4, f"the moments were no different ones: {seen}"
    same_tables(calm, victim)
    same_log(calm, victim)


def same_tables(calm: Site, victim: Site) -> None:
    expected, found = calm.tables(), victim.tables()
    assert all(expected[name] for name in victim.places.project.entities)
    assert expected["quarantine of bronze.orders"]
    assert expected["quarantine of silver.orders"]
    for name, rows in expected.items():
        assert found[name] == rows, name


def same_log(calm: Site, victim: Site) -> None:
    """Each table of each job has exactly one row that finished it; what died before its row shows as already done."""
    assert victim.unflushed() == 0
    expected, found = calm.log(), victim.log()
    assert len({row.run_id for row in found}) == len(found), "a row is doubled"
    for mine, theirs in zip(calm.jobs_asked, victim.jobs_asked, strict=True):
        undisturbed = {row.entity: row for row in expected if row.job_id == mine}
        rows = [row for row in found if row.job_id == theirs]
        assert sorted(row.entity for row in rows) == sorted(undisturbed), rows
        for row in rows:
            assert row.status in DONE
            calm_row = undisturbed[row.entity]
            if row.status is not RunStatus.ALREADY_DONE:
                assert figures(row) == figures(calm_row)
            else:
                assert row.attempt > 1
                assert row.rows_written == 0


def figures(row):
    return (row.status, row.rows_read, row.rows_inserted, row.rows_updated, row.rows_deleted, row.rows_quarantined)
