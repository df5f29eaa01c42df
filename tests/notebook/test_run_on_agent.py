"""The pipeline notebook against a live agent: it ends as the request does."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from notebook_kit import NOTEBOOK, client, printed

from fdagent.project.scaffold import write_scaffold

pytestmark = pytest.mark.process
AGENT = """
[agent]
name = "etl-01"
project = "."
environments = ["dev"]
home = "home"
status_seconds = 1
poll_seconds = 1
[pipeline]
enabled = true
entities = ["bronze.*", "silver.*"]
"""
START_SECONDS = 20.0


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    write_scaffold(folder)
    (folder / "agent.toml").write_text(AGENT)
    fdagent(folder, "promote", "dev", "--yes")
    return folder


@pytest.fixture
def agent(project):
    """A live agent, seen to be announced."""
    daemon = subprocess.Popen(
        [sys.executable, "-P", "-m", "fdagent", "run", "--config", str(project / "agent.toml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for((control(project) / "agents" / "etl-01.json").exists)
    yield daemon
    daemon.send_signal(signal.SIGTERM)
    try:
        daemon.wait(20)
    finally:
        daemon.kill()
        daemon.wait(10)


def fdagent(folder: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-P", "-m", "fdagent", *words], cwd=folder, check=True, capture_output=True, timeout=60
    )


def control(project: Path) -> Path:
    return project / ".local" / "dev" / "_control"


def wait_for(true) -> None:
    until = time.monotonic() + START_SECONDS
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def test_a_run_that_succeeds_exits_with_the_final_status(project, agent, tmp_path):
    book = client(tmp_path, control(project), request_id="run-1", entities="bronze.orders, silver.orders")
    book.execute()
    status = json.loads((control(project).parent / "exit.json").read_text())
    assert (status["state"], status["agent"], status["id"]) == ("succeeded", "etl-01", "run-1")
    assert {table["entity"]: table["state"] for table in status["tables"]} == {
        "bronze.orders": "succeeded",
        "silver.orders": "succeeded",
    }
    assert "succeeded on etl-01" in printed(book)


def test_an_activity_that_is_tried_again_waits_for_the_same_request(project, agent, tmp_path):
    for _ in range(2):
        client(tmp_path, control(project), request_id="run-1", entities="bronze.orders").execute()
    assert len(list((control(project) / "requests").glob("*.json"))) == 1


def test_a_run_that_fails_raises_with_the_reason(project, agent, tmp_path):
    for file in (project / "landing").glob("*.csv"):
        file.unlink()
    with pytest.raises(CellExecutionError, match=r"Request run-2 is failed: bronze\.orders: .*file"):
        client(tmp_path, control(project), request_id="run-2", entities="bronze.orders").execute()
    assert not (control(project).parent / "exit.json").exists()


def test_an_entity_that_the_agents_may_not_run_is_rejected_with_the_reason(project, agent, tmp_path):
    with pytest.raises(CellExecutionError, match="Request run-3 is rejected"):
        client(tmp_path, control(project), request_id="run-3", entities="gold.revenue_by_customer").execute()


def test_a_timeout_asks_for_a_cancel_and_says_how_far_it_was(project, tmp_path):
    with pytest.raises(CellExecutionError, match=r"TimeoutError.*waiting for an agent"):
        client(tmp_path, control(project), request_id="run-4", timeout_minutes=0.02).execute()
    assert json.loads((control(project) / "cancel" / "run-4.json").read_text())["asked_by"] == "pipeline: timeout"


def test_an_activity_that_is_cancelled_asks_for_a_cancel(project, tmp_path):
    book = client(tmp_path, control(project), request_id="run-5")
    asked = control(project) / "requests" / "run-5.json"

    def interrupt() -> None:
        wait_for(asked.exists)
        time.sleep(0.5)  # the kernel is between two looks by then, wherever it is
        os.kill(book.km.provisioner.pid, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(CellExecutionError, match="KeyboardInterrupt"):
        book.execute()
    thread.join(30)
    assert (control(project) / "cancel" / "run-5.json").exists()


def test_without_a_request_id_nothing_is_posted(project, tmp_path):
    with pytest.raises(CellExecutionError, match="request_id is empty"):
        client(tmp_path, control(project)).execute()
    assert not (control(project) / "requests").exists()


def test_the_notebook_is_valid_and_has_no_output():
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    assert all(not cell.get("outputs") for cell in book.cells)
