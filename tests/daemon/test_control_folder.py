"""A control folder that can't be used for a while: the agent goes on, and its beats come back."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_kit import make_site, one_effect_each, until

from models.job import JobState

pytestmark = [pytest.mark.process, pytest.mark.long]

PATIENT = {"backoff_seconds": 1, "max_backoff_seconds": 1, "max_attempts": 50}


@contextlib.contextmanager
def replaced_by_a_file(folder: Path):
    """The folder is a file for as long as a block."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("a file")
    yield
    folder.unlink()
    aside.rename(folder)


@contextlib.contextmanager
def away(folder: Path):
    """The folder is not there for as long as a block, though somebody makes another one."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    yield
    if folder.exists():
        subprocess.run(["rm", "-rf", str(folder)], check=True)
    aside.rename(folder)


@contextlib.contextmanager
def read_only(folder: Path):
    """The folder can only be read for as long as a block; for root too."""
    words = ["mount", "--bind", "-o", "ro", str(folder), str(folder)]
    if (
        sys.platform != "linux"
        or os.geteuid() != 0
        or subprocess.run(words, capture_output=True, check=False).returncode
    ):
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def told_once_and_beats_again(agent, before) -> None:
    until(lambda: (agent.record() or {}).get("heartbeat_at", "") > before["heartbeat_at"], "it beats again")
    agent.told("presence", "can be used again")
    troubles = [line for line in agent.log("presence") if "could not be written" in line["message"]]
    assert len(troubles) == 1, "the same trouble is told once, not at each beat"
    assert agent.record()["instance"] == before["instance"]


def test_an_agent_goes_on_while_its_control_folder_is_away_and_runs_the_job_once_it_is_back(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"), retry=PATIENT).start().up()
    before = until(agent.record, "it is announced")
    with replaced_by_a_file(agent.site.places.control):
        agent.told("presence", "could not be written; it is tried again")
        job = agent.ask(attempts=50)
        agent.told("job", "can't be read")
        assert agent.job(job).category == "Network"
    told_once_and_beats_again(agent, before)
    assert agent.ended(job).state is JobState.SUCCEEDED
    agent.flushed()
    agent.stop()
    assert agent.record()["state"] == "stopped"
    one_effect_each(agent.site, [job])


def test_an_agent_goes_on_while_its_control_folder_is_read_only_and_takes_jobs_once_it_is_not(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start().up()
    before = until(agent.record, "it is announced")
    with read_only(agent.site.places.control):
        agent.told("presence", "could not be written; it is tried again")
        refused = agent.ended(agent.ask(attempts=50))
        # To be refused is nothing that passes by itself: no attempt is wasted, and the job says what to do.
        assert (refused.state, refused.attempt, refused.category) == (JobState.FAILED, 1, "Access")
        assert "Give this account the right to read and write there" in refused.error
    told_once_and_beats_again(agent, before)
    assert agent.ended(agent.ask()).state is JobState.SUCCEEDED
    agent.stop()


def test_an_agent_starts_and_stops_without_its_control_folder(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"))
    with replaced_by_a_file(agent.site.places.control):
        agent.start().up()
        agent.told("presence", "could not be written")
        agent.stop()
    assert "stopped" in {line["event"] for line in agent.log()}
    agent.start().up()
    until(agent.record, "it is announced once it can be")
    agent.stop()


def test_a_control_folder_that_was_away_is_announced_in_anew(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start().up()
    before = until(agent.record, "it is announced")
    with away(agent.site.places.control):
        until(agent.record, "it announces itself in the folder that is there")
    until(
        lambda: (agent.record() or {}).get("heartbeat_at", "") > before["heartbeat_at"], "it beats in the old one again"
    )
    agent.stop()
