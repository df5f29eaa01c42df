"""SIGTERM and SIGINT to `fdagent run --until-idle`."""

import json
import os
import signal
import subprocess
import time

import psutil
import pytest
from process_kit import EVENTS, LONGEST_SECONDS, Site, command
from step_server import said

from models.job import JobState
from models.run import RunStatus

pytestmark = pytest.mark.process

ENDLESS = """
[source]
files = "{landing}/orders_*.csv"
[transform]
sql = "select count(*) as n from {source} a, range(9999999) b, range(99999) c where sin(b.range + c.range) < 2"
[load]
mode = "overwrite"
"""
STOPPING = "Stopping after the table that runs"
INTERRUPTED = 130


@pytest.fixture
def site(tmp_path) -> Site:
    made = Site(tmp_path / "project")
    made.entity("silver.order_events", EVENTS)
    made.promote()
    made.deliver()
    return made


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_running_table_end_and_leaves_the_others_for_the_next_start(server, site, number):
    job, next_job = site.ask(), site.ask()
    step = {"do": "wait", "table": "LH_Silver/Tables/order_events", "method": "commit", "when": "before"}
    pid = server.start(site, step)
    said(site.root / "out", "at the step")
    os.kill(pid, number)
    said(site.root / "out", STOPPING)
    (site.root / "out.go").touch()
    assert server.end() == INTERRUPTED
    assert site.done(job) == ["bronze.orders", "silver.order_events"]
    assert (site.job(job).state, site.job(next_job).attempt) == (JobState.QUEUED, 0)
    assert "Stopped. What is left of the job runs at the next start." in (site.root / "out").read_text()
    assert len(site.rows("LH_Silver", "order_events")) == 6
    assert site.rows("LH_Silver", "orders") == []

    site.run()
    ended = site.job(job)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 1), "a stop uses up no attempt"
    assert len(site.rows("LH_Silver", "orders")) == 5
    log = [row for row in site.log() if row.job_id == job]
    assert sorted(row.entity for row in log) == sorted(site.places.project.entities)
    assert {row.status for row in log} <= {RunStatus.SUCCEEDED, RunStatus.NO_CHANGE}


def test_a_second_signal_ends_a_run_at_once_and_nothing_of_its_table_is_written(site):
    site.entity("gold.endless", ENDLESS)
    site.promote()
    job = site.ask("gold.endless")
    with (site.root / "out").open("w") as out:
        process = subprocess.Popen(
            command("run", "--until-idle", "--project", str(site.root)), stdout=out, stderr=subprocess.STDOUT
        )
    try:
        said(site.root / "out", "attempt 1 of 3")
        calculating(process.pid)
        process.send_signal(signal.SIGINT)
        said(site.root / "out", STOPPING)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONGEST_SECONDS) == INTERRUPTED
    finally:
        process.kill()
    last = (site.root / "out").read_text().splitlines()[1:]
    assert last == [f"{STOPPING}, if one does; once more to stop at once.", "Stopped."]
    assert site.rows("LH_Gold", "endless") == []
    assert site.job(job).state is JobState.RUNNING, "its process is gone, so the next start takes it back"

    site.entity("gold.endless", ENDLESS.replace("9999999", "1").replace("99999", "1"))
    site.promote()
    out = site.run()
    assert f"job {job} recovered" in out
    assert site.job(job).state is JobState.SUCCEEDED
    assert len(site.rows("LH_Gold", "endless")) == 1


def calculating(pid: int) -> None:
    """Wait until a process has used more than a start takes, so that DuckDB is at work."""
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        if psutil.Process(pid).cpu_times().user > 2:
            return
        time.sleep(0.05)
    raise AssertionError("it never calculated")


def hold(site: Site, table: str) -> None:
    """A lease of another machine's agent that nobody knows to be gone."""
    lease = {"table": table, "op": "x", "agent": "ghost", "host": "elsewhere", "job_id": "g1", "seconds": 3600}
    file = site.places.control / f"leases/{table}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(lease), encoding="utf-8")


def test_a_signal_ends_the_wait_for_a_table_that_another_agent_holds(site):
    hold(site, "bronze.orders")
    job = site.ask("bronze.orders")
    process = site.start()
    end = time.monotonic() + LONGEST_SECONDS
    while site.job(job).state is not JobState.RUNNING:
        assert time.monotonic() < end, "it never began"
        time.sleep(0.02)
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == INTERRUPTED
    assert (site.job(job).state, site.job(job).tables["bronze.orders"]["state"]) == (JobState.QUEUED, "waiting")


def test_one_pass_waits_for_a_table_as_long_as_agent_toml_says_and_names_its_holder(site, tmp_path):
    hold(site, "bronze.orders")
    config = tmp_path / "agent.toml"
    config.write_text(
        f'[agent]\nname = "etl-01"\nproject = "{site.root}"\nhome = "{tmp_path / "home"}"\nenvironments = ["dev"]\n'
        "table_lease_seconds = 5\n[retry]\nbackoff_seconds = 900\n"
    )
    words = ("--config", str(config))
    subprocess.run(command("enqueue", "dev", "bronze.orders", *words), check=True, capture_output=True)
    process = subprocess.Popen(command("run", "--until-idle", *words), stdout=subprocess.PIPE, text=True)
    seen = []
    for line in process.stdout:
        seen.append(line)
        if "is busy" in line:
            break
    process.kill()
    process.communicate(timeout=20)
    assert "bronze.orders is busy: ghost on elsewhere holds it for job g1" in "".join(seen)
    assert "it was waited for 5 s" in "".join(seen)
