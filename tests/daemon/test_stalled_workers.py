"""Workers that stand still past their leases while they hold a job and a table: all at once, each in an agent of its own."""

import signal
from pathlib import Path

import pytest
from daemon_kit import Agent, Calm, fault, make_site, one_effect_each, orphans, until, worker_here

from models.job import JobState

pytestmark = [pytest.mark.process, pytest.mark.long]

LEASE = 4.0
"""The job's span: believed for two seconds, renewed every 1.3 s."""
SPANS = 3
ORDERS = "LH_Silver/Tables/orders"
COMMIT = "fdagent.engine.tables.delta:DeltaTablePort.commit"
CHECK = "fdagent.work.tablehold:TableHolds.check"
AFTER_THE_START = 3
"""The check at the beginning of each table's run is passed: bronze.orders has two, then that of the next table."""


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return Calm(tmp_path_factory.mktemp("calm") / "project").tables(1)


@pytest.fixture(scope="module")
def stalled(tmp_path_factory):
    """Agents by what happens to their worker, each with one job that has begun."""
    folder = tmp_path_factory.mktemp("stalled")
    faults = {
        "stopped": [fault(COMMIT, "stop", folder / "stopped.mark", text=ORDERS)],
        "stopped with its agent": [fault(COMMIT, "stop", folder / "both.mark", text=ORDERS)],
        "lock": [
            fault(CHECK, f"hold the lock {SPANS * LEASE}", folder / "lock.mark", skip=AFTER_THE_START),
            # It looks for another job once it is through with this one.
            fault(
                "fdagent.work.worker:Work._claim", "nothing", folder / "through.mark", needs=f"{folder / 'lock.mark'}"
            ),
        ],
        "slow": [fault(CHECK, f"wait {folder / 'go'}", folder / "slow.mark", skip=AFTER_THE_START)],
    }
    agents = {name: Agent(make_site(folder / name.replace(" ", "-"))).start(*some) for name, some in faults.items()}
    try:
        for agent in agents.values():
            agent.ask(lease=LEASE)
        for name, agent in agents.items():
            until(Path(faults[name][0]["mark"]).exists, f"{name}: the fault came")
            if name not in ("stopped", "slow"):
                # A daemon that works would end such a worker: these two are to go on by themselves.
                agent.signal(signal.SIGSTOP)
        yield {**agents, "folder": folder}
    finally:
        for agent in agents.values():
            agent.close()


def right_in_the_end(agent: Agent, calm) -> None:
    agent.flushed()
    until(lambda: not agent.leases(), "no table is leased")
    agent.stop()
    assert not orphans(agent.home)
    assert agent.site.tables() == calm
    one_effect_each(agent.site, agent.site.jobs_asked)


def test_a_stopped_worker_is_ended_and_its_job_is_run_by_another(stalled, calm):
    agent = stalled["stopped"]
    job = agent.ended("job000")
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    assert "gave no sign of life for 4 s" in agent.told("job_recovered")["message"]
    assert "lost its job" in agent.told("worker_stalled")["message"]
    right_in_the_end(agent, calm)


def test_a_worker_that_goes_on_after_its_job_was_run_by_another_writes_nothing(stalled, calm):
    agent = stalled["stopped with its agent"]
    until(lambda: agent.worker().status() == "stopped", "the worker stands still")
    with worker_here(agent.site) as other:

        def recovered() -> bool:
            other.recover()
            return agent.job("job000").state is JobState.QUEUED

        until(recovered, "the job's lease has lapsed")
        other.until_idle()
    job = agent.job("job000")
    assert (job.state, job.attempt, job.worker) == (JobState.SUCCEEDED, 2, "calm/1")
    agent.worker().send_signal(signal.SIGCONT)
    agent.signal(signal.SIGCONT)
    assert "stood down" in agent.told("job", "stood down")["message"]
    assert agent.job("job000") == job, "a final state never changes"
    right_in_the_end(agent, calm)


def test_native_code_that_keeps_the_interpreter_for_three_spans_loses_the_job_and_commits_nothing(stalled, calm):
    agent = stalled["lock"]
    assert agent.running("job000").attempt == 1
    before = {name: rows for name, rows in agent.site.tables().items() if rows}
    assert "bronze.orders" in before
    until((stalled["folder"] / "through.mark").exists, "the worker is through with the job")
    assert {name: rows for name, rows in agent.site.tables().items() if rows} == before
    agent.signal(signal.SIGCONT)
    assert "stood down" in agent.told("job", "stood down")["message"]
    job = agent.ended("job000")
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    right_in_the_end(agent, calm)


def test_a_table_that_takes_three_spans_runs_once(stalled, calm):
    agent = stalled["slow"]
    first = agent.running("job000")
    until(
        lambda: agent.job("job000").renewals >= SPANS * 3 and len(agent.leases()) == 1, "it is renewed again and again"
    )
    (stalled["folder"] / "go").touch()
    job = agent.ended("job000")
    assert (job.state, job.attempt, job.worker, job.pid) == (JobState.SUCCEEDED, 1, first.worker, first.pid)
    assert not agent.log("job_recovered")
    right_in_the_end(agent, calm)
