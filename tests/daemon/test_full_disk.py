"""A home whose disk is full, on a small file system of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_kit import fault, make_site, one_effect_each, until
from process_kit import command

from models.job import JobState

pytestmark = [pytest.mark.process, pytest.mark.long]

BYTES = 1024 * 1024
COMMIT = "fdagent.engine.tables.delta:DeltaTablePort.commit"


@pytest.fixture
def small(tmp_path):
    """A folder of one MiB."""
    folder = tmp_path / "home"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={BYTES}", "fdagent-test", str(folder)]
    if (
        sys.platform != "linux"
        or os.geteuid() != 0
        or subprocess.run(words, capture_output=True, check=False).returncode
    ):
        pytest.skip("no small file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Fill a file system to the last byte; the file that does."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    assert os.statvfs(folder).f_bavail == 0
    return ballast


def test_a_full_disk_under_the_queue_stops_the_work_in_a_sentence_and_room_lets_it_go_on(agents, tmp_path, small):
    agent = agents(make_site(tmp_path / "project"), home=small)
    go, mark = tmp_path / "go", tmp_path / "mark"
    agent.start(fault(COMMIT, f"wait {go}", mark, text="LH_Silver/Tables/orders")).up()
    job = agent.ask()
    until(mark.exists, "the worker is in the middle of a table")
    ballast = fill(small)
    go.touch()
    until(lambda: f"No room is left for {small}" in agent.said(), "the worker says so")
    until(lambda: "Recovery failed and is tried again: No room is left" in agent.said(), "the daemon says so")
    assert agent.job(job).state is JobState.RUNNING, "nothing could be said about it"
    words = command("enqueue", "dev", "--config", str(agent.config))
    refused = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert "No room is left" in refused.stderr
    assert agent.process.poll() is None, "the daemon is still there"
    ballast.unlink()

    ended = agent.ended(job)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2)
    agent.told("duty_works", "Recovery")
    kept = [json.dumps(line) for line in agent.log()]
    lost = [line for line in agent.said().splitlines() if line not in kept]
    said = [line["message"] for line in agent.log("lines_lost")]
    assert bool(lost) == bool(said), "what the disk had no room for is counted"
    assert sum(int(message.split()[0]) for message in said) == len(lost)
    assert "Traceback" not in agent.said()
    assert agent.said().count("Recovery failed") == 1, "told once, not at each turn"
    agent.flushed()
    agent.stop()
    one_effect_each(agent.site, [job])


def test_a_daemon_does_not_start_on_a_full_disk_and_leaves_the_home_free(agents, tmp_path, small):
    agent = agents(make_site(tmp_path / "project"), home=small)
    ballast = fill(small)
    agent.start()
    assert agent.wait() == 1
    assert f"No room is left for {small}" in agent.said()
    assert "Traceback" not in agent.said()
    ballast.unlink()
    agent.start().up()
    agent.stop()
