"""SIGTERM, a second signal, a drain, and two daemons on one home."""

import shutil
import signal
import subprocess
import time

import psutil
import pytest
from daemon_kit import Agent, fault, make_site, one_effect_each, orphans, until
from process_kit import command

from fdagent.daemon.agent import DRAIN
from models.job import JobState

pytestmark = pytest.mark.process

ORDERS = "LH_Silver/Tables/orders"
COMMIT = "fdagent.engine.tables.delta:DeltaTablePort.commit"
AT_ONCE_SECONDS = 5.0


def waiting(agents, tmp_path, **settings) -> tuple[Agent, str]:
    """An agent whose worker waits in the middle of a table until the file `go` is there; its job."""
    agent = agents(make_site(tmp_path / "project"), **settings)
    mark = tmp_path / "mark"
    agent.start(fault(COMMIT, f"wait {tmp_path / 'go'}", mark, text=ORDERS))
    job = agent.ask()
    until(mark.exists, "the worker is in the middle of a table")
    return agent, job


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "drain", "drain and SIGTERM"])
def test_a_stop_lets_the_table_end_gives_the_job_back_uncounted_and_takes_no_more(agents, tmp_path, how):
    agent, job = waiting(agents, tmp_path)
    if how.startswith("drain"):
        agent.jobs.set_wish(DRAIN, "now")
    else:
        agent.signal(getattr(signal, how))
    agent.told("stopping")
    if how == "drain and SIGTERM":
        agent.signal(signal.SIGTERM)  # the first signal is still the first
    later = agent.ask()
    until(lambda: (agent.record() or {}).get("state") == "stopping", "its record says so")
    (tmp_path / "go").touch()
    assert agent.wait() == 0
    left = agent.job(job)
    assert (left.state, left.attempt) == (JobState.QUEUED, 0), "a stop uses up no attempt"
    assert left.tables["silver.orders"]["state"] == "succeeded"
    assert left.tables["gold.revenue_by_customer"]["state"] == "waiting"
    assert (agent.job(later).state, agent.job(later).attempt) == (JobState.QUEUED, 0)
    assert agent.record()["state"] == "stopped"
    assert not agent.leases()
    assert not orphans(agent.home)

    agent.start()
    assert agent.ended(job).attempt == 1
    agent.ended(later)
    agent.flushed()
    agent.stop()
    one_effect_each(agent.site, [job, later])


def test_a_job_that_does_not_end_in_its_time_is_cut_off_and_finished_by_the_next_start(agents, tmp_path):
    agent, job = waiting(agents, tmp_path, drain_seconds=1)
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    assert "its job runs again" in agent.told("worker_killed")["message"]
    assert agent.job(job).state is JobState.QUEUED, "so that what it was asked for could be offered"
    assert not orphans(agent.home)
    agent.start()
    ended = agent.ended(job)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2)
    agent.flushed()
    agent.stop()
    one_effect_each(agent.site, [job])


def test_a_second_signal_ends_at_once_and_without_a_goodbye(agents, tmp_path):
    agent, job = waiting(agents, tmp_path)
    agent.signal(signal.SIGTERM)
    agent.told("stopping")
    started = time.monotonic()
    agent.signal(signal.SIGINT)
    assert agent.wait(AT_ONCE_SECONDS) == 0
    assert time.monotonic() - started < AT_ONCE_SECONDS
    assert not orphans(agent.home)
    assert agent.record()["state"] == "stopping"
    assert "Traceback" not in agent.said()
    agent.start()
    assert agent.ended(job).state is JobState.SUCCEEDED
    agent.flushed()
    agent.stop()
    one_effect_each(agent.site, [job])


def test_a_second_daemon_on_a_home_is_refused_with_the_pid_of_the_first(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start().up()
    words = command("run", "--config", str(agent.config))
    second = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 4
    assert f"Another agent (pid {agent.pid}) works in {agent.home}." in second.stderr
    assert second.stdout == ""
    assert agent.ended(agent.ask("bronze.orders")).state is JobState.SUCCEEDED
    agent.stop()
    agent.start().up()
    agent.stop()


@pytest.mark.parametrize("how", ["removed", "moved away", "replaced"])
def test_a_daemon_whose_home_is_gone_says_goodbye_and_ends(agents, tmp_path, how):
    agent = agents(make_site(tmp_path / "project")).start()
    agent.ended(agent.ask())
    workers = [child.pid for child in psutil.Process(agent.pid).children()]
    assert workers
    if how == "removed":
        shutil.rmtree(agent.home)
    else:
        agent.home.rename(tmp_path / "elsewhere")
    if how == "replaced":
        agent.home.mkdir()
        (agent.home / "agent.lock").touch()
    assert agent.process.wait(30) == 1
    assert agent.record()["state"] == "stopped"
    assert "removed or replaced while it ran" in agent.out.read_text(encoding="utf-8")
    assert not [pid for pid in workers if psutil.pid_exists(pid)]


def test_a_daemon_that_was_killed_leaves_a_home_that_the_next_one_can_take(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start().up()
    until(agent.record, "it is announced")
    agent.kill()
    before = agent.record()
    agent.start()
    until(lambda: agent.record()["instance"] != before["instance"], "the next one took its place at once", seconds=5)
    agent.stop()
