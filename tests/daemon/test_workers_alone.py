"""What workers are to their daemon: processes of their own whose end costs one attempt of one job, and nothing else."""

import os
import re
import signal
from pathlib import Path

import psutil
import pytest
from daemon_kit import fault, make_site, one_effect_each, orphans, until

from fdagent.work.process import ORPHAN_SECONDS
from models.job import JobState

pytestmark = [pytest.mark.process, pytest.mark.long]

ORDERS = "LH_Silver/Tables/orders"
COMMIT = "fdagent.engine.tables.delta:DeltaTablePort.commit"
HEAVY = re.compile(r"pyarrow|duckdb|deltalake|arro3|pydantic")


def libraries(pid: int) -> set[str]:
    """The heavy libraries that a process has mapped."""
    return set(HEAVY.findall(Path(f"/proc/{pid}/maps").read_text()))


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="reads /proc")
def test_a_daemon_never_loads_a_table_library_and_its_workers_do(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start()
    agent.ended(agent.ask())
    assert libraries(agent.worker().pid) >= {"duckdb", "deltalake"}
    assert libraries(agent.pid) == set()
    agent.stop()


def test_each_worker_leads_a_session_of_its_own_and_is_a_child_that_gets_reaped(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"), concurrency=2).start()
    agent.ended(agent.ask("bronze.orders"))
    worker = agent.worker()
    assert os.getsid(worker.pid) == os.getpgid(worker.pid) == worker.pid
    worker.kill()
    agent.told("worker_ended", f"(pid {worker.pid}) was ended by SIGKILL")
    assert not psutil.pid_exists(worker.pid), "it was left as a zombie"
    agent.stop()


@pytest.mark.parametrize("how", ["kill", "segfault"])
def test_the_death_of_one_worker_costs_one_attempt_of_its_job_and_nothing_of_another(agents, tmp_path, how):
    agent = agents(make_site(tmp_path / "project"), concurrency=2)
    go, mark = tmp_path / "go", tmp_path / "mark"
    agent.start(
        fault(COMMIT, f"wait {go}", tmp_path / "waits", text="LH_Bronze"),
        fault(COMMIT, how, mark, text=ORDERS),
    )
    safe = agent.ask("bronze.orders")
    until((tmp_path / "waits").exists, "one worker is in the middle of a table")
    hit = agent.ask("silver.orders")
    agent.told("job_recovered")
    assert mark.exists()
    go.touch()
    assert agent.ended(safe).attempt == 1
    ended = agent.ended(hit)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2)
    name = "SIGKILL" if how == "kill" else "SIGSEGV"
    assert f"{hit} is queued: Its worker" in agent.told("job_recovered")["message"]
    assert agent.told("worker_ended", name)
    agent.flushed()
    agent.stop()


def test_a_job_that_kills_its_worker_each_time_ends_dead_with_the_reason_and_others_are_served(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"))
    agent.start(fault(COMMIT, "kill", tmp_path / "mark", text=ORDERS, times=100))
    poison = agent.ask("bronze.orders", "silver.orders", attempts=3)
    ended = agent.ended(poison)
    assert (ended.state, ended.attempt) == (JobState.DEAD, 3)
    assert re.fullmatch(r"Its worker \(pid \d+\) was ended by SIGKILL \(by a person, .*\)\.", ended.error), ended.error
    assert ended.tables["bronze.orders"]["state"] == "succeeded"
    other = agent.ended(agent.ask("bronze.orders"))
    assert (other.state, other.attempt) == (JobState.SUCCEEDED, 1)
    agent.stop()


def test_a_worker_whose_daemon_is_gone_gives_its_job_back_and_ends(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"))
    go, mark = tmp_path / "go", tmp_path / "mark"
    agent.start(fault("fdagent.work.tablehold:TableHolds.check", f"wait {go}", mark, skip=3))
    job = agent.ask()
    until(mark.exists, "the worker is right before a commit")
    before = agent.site.tables()
    worker = agent.worker()
    agent.kill()
    until(lambda: worker.is_running() and len(worker.threads()) > 1, "the worker outlives it for a moment")
    go.touch()
    until(lambda: not worker.is_running() or worker.status() == "zombie", "it ends", seconds=ORPHAN_SECONDS + 5)
    left = agent.job(job)
    assert (left.state, left.attempt) == (JobState.QUEUED, 0), "not the job's fault, so not its attempt"
    assert agent.site.tables() == before, "nothing was written for a daemon that is gone"
    assert not agent.leases()
    agent.start()
    assert agent.ended(job).attempt == 1
    agent.flushed()
    agent.stop()
    one_effect_each(agent.site, [job])


def test_a_worker_that_never_comes_back_to_ask_is_ended_all_the_same(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"))
    mark = tmp_path / "mark"
    agent.start(fault(COMMIT, f"wait {tmp_path / 'never'}", mark, text=ORDERS))
    job = agent.ask()
    until(mark.exists, "the worker is in native code, as far as anybody knows")
    worker = agent.worker()
    agent.kill()
    until(lambda: not worker.is_running() or worker.status() == "zombie", "it ends", seconds=ORPHAN_SECONDS + 5)
    assert not orphans(agent.home)
    agent.start()
    assert agent.ended(job).state is JobState.SUCCEEDED
    agent.flushed()
    agent.stop()
    one_effect_each(agent.site, [job])


def test_a_warm_worker_takes_the_next_job_and_ends_with_its_daemon(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start()
    pids = {agent.ended(agent.ask("bronze.orders")).pid for _ in range(3)}
    assert len(pids) == 1
    worker = agent.worker()
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    assert not worker.is_running()
    assert "had nothing left to do" in agent.told("worker_ended")["message"]
