"""`kill -9` of a daemon, its worker, or both: at named points, and at random moments."""

import random

import pytest
from daemon_kit import Agent, Calm, fault, make_site, one_effect_each, orphans, until
from random_kills import kill_at_random

from models.job import JobState

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.xdist_group("kills")]

SEED = 20270115
RANDOM_KILLS = 9
ATTEMPTS = 20
ORDERS = "LH_Silver/Tables/orders"
COMMIT = "fdagent.engine.tables.delta:DeltaTablePort.commit"
JOBS = "fdagent.queue.jobs:Jobs."
WORKER_POINTS = [
    (f"{JOBS}claim", "after", ""),
    ("fdagent.work.leases:TableLease.acquire", "before", "silver.orders"),
    ("fdagent.work.leases:TableLease.acquire", "after", "silver.orders"),
    (COMMIT, "before", ORDERS),
    (COMMIT, "after", ORDERS),
    ("fdagent.work.leases:TableLease.release", "before", "silver.orders"),
    (f"{JOBS}progress", "before", ""),
    (f"{JOBS}progress", "after", ""),
    (f"{JOBS}finish", "before", ""),
    (f"{JOBS}finish", "after", ""),
    ("fdagent.engine.runlog:append_rows", "before", ""),
    ("fdagent.engine.runlog:append_rows", "after", ""),
    (f"{JOBS}drop_batch", "after", ""),
]
DAEMON_POINTS = [
    ("fdagent.fleet.presence:Presence.tick", "after", 0),
    ("fdagent.daemon.main:Staff.orders", "before", 0),
    ("fdagent.work.supervisor:Supervisor.start", "after", 0),
    ("fdagent.daemon.duties:Staffing.tick", "after", 8),
]
BOTH_POINTS = [(f"{JOBS}claim", "after", ""), (COMMIT, "before", ORDERS), (COMMIT, "after", ORDERS)]


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return Calm(tmp_path_factory.mktemp("calm") / "project")


def next_job(agent: Agent) -> str:
    """The next delivery, the first apart, and a job for it."""
    if agent.site.jobs_asked:
        agent.site.deliver()
    return agent.ask(attempts=ATTEMPTS)


def right_in_the_end(agent: Agent, calm) -> None:
    site = agent.site
    agent.flushed()
    assert until(lambda: not agent.leases(), "no table is leased")
    agent.stop()
    assert not orphans(agent.home)
    found = site.tables()
    for name, rows in calm.tables(site.delivered).items():
        assert found[name] == rows, name
    one_effect_each(site, site.jobs_asked)
    assert {str(agent.job(job).state) for job in site.jobs_asked} == {"succeeded"}


@pytest.mark.parametrize("part", [0, 1, 2, 3], ids=lambda part: f"part{part + 1}")
def test_a_worker_killed_at_a_named_point_leaves_the_tables_of_an_undisturbed_run(agents, tmp_path, calm, part):
    agent = agents(make_site(tmp_path / "project"))
    # Four at a time: a fifth bad end within a minute would be followed by a slow start.
    points = WORKER_POINTS[part * 4 : part * 4 + 4]
    marks = [tmp_path / f"mark{number}" for number in range(len(points))]
    faults = [
        fault(at, "kill", marks[number], when=when, text=text, needs=f"{marks[number]}.armed")
        for number, (at, when, text) in enumerate(points)
    ]
    agent.start(*faults)
    for number, (at, when, _) in enumerate(points):
        marks[number].with_suffix(".armed").touch()
        job = agent.ended(next_job(agent))
        assert until(marks[number].exists, f"{when} {at} was never reached")
        ended = (at, when) == (f"{JOBS}finish", "after") or "runlog" in at or "drop" in at
        assert job.attempt == (1 if ended else 2), (at, when)
        # Else what is left of this job's rows would be the next one's to flush.
        agent.flushed()
    until(lambda: len(agent.log("worker_ended")) >= len(points), "the end of each was told")
    right_in_the_end(agent, calm)


@pytest.mark.parametrize(("at", "when", "skip"), DAEMON_POINTS, ids=lambda value: str(value).rpartition(":")[2])
def test_a_daemon_killed_at_a_named_point_is_followed_by_one_that_goes_on(agents, tmp_path, calm, at, when, skip):
    agent = agents(make_site(tmp_path / "project"))
    mark = tmp_path / "mark"
    job = next_job(agent)
    agent.start(fault(at, "kill", mark, when=when, role="daemon", skip=skip))
    assert agent.wait() == -9
    assert mark.exists()
    agent.start()
    agent.ended(job)
    right_in_the_end(agent, calm)


@pytest.mark.parametrize(("at", "when", "text"), BOTH_POINTS, ids=lambda value: str(value).rpartition(":")[2])
def test_a_daemon_and_its_worker_killed_together_are_followed_by_ones_that_go_on(
    agents, tmp_path, calm, at, when, text
):
    agent = agents(make_site(tmp_path / "project"))
    mark = tmp_path / "mark"
    job = next_job(agent)
    agent.start(fault(at, "kill both", mark, when=when, text=text))
    assert agent.wait() == -9
    assert agent.job(job).state is JobState.RUNNING
    agent.start()
    assert agent.ended(job).attempt == 2
    right_in_the_end(agent, calm)


def test_kills_at_random_moments_leave_the_tables_of_undisturbed_runs(agents, tmp_path, calm):
    agent = agents(make_site(tmp_path / "project"))
    dice = random.Random(SEED)
    print(f"seed {SEED}")
    hits = kill_at_random(agent, lambda: next_job(agent), kills=RANDOM_KILLS, dice=dice)
    assert sum(hits.values()) == RANDOM_KILLS
    assert min(hits.values()) >= 2, f"one of them was hardly killed: {hits}"
    right_in_the_end(agent, calm)
