"""A queue file that is no queue any more: never read as an empty one in silence."""

import sqlite3
import subprocess

import pytest
from daemon_kit import make_site, until
from process_kit import command

from fdagent.queue.db import NAME
from models.job import JobState

pytestmark = [pytest.mark.process, pytest.mark.long]

PAGE = 4096


def garbage(path) -> bytes:
    return b"this was a queue once\n" * 1000


def half(path) -> bytes:
    content = path.read_bytes()
    return content[: len(content) // 2 + 100]


def zeroed_page(path) -> bytes:
    content = bytearray(path.read_bytes())
    content[2 * PAGE : 4 * PAGE] = bytes(2 * PAGE)
    return bytes(content)


@pytest.mark.parametrize("damage", [garbage, half, zeroed_page], ids=lambda damage: damage.__name__)
def test_a_damaged_queue_file_is_put_aside_and_told_and_an_empty_one_takes_its_place(agents, tmp_path, damage):
    site = make_site(tmp_path / "project")
    agent = agents(site)
    asked = [agent.ask() for _ in range(40)]
    agent.close()
    path = agent.home / NAME
    broken = damage(path)
    path.write_bytes(broken)

    fresh = agents(site).start()
    line = fresh.told("queue_put_aside")
    assert line["level"] == "error"
    (kept,) = agent.home.glob("queue.damaged-*.sqlite3")
    assert kept.read_bytes() == broken
    assert str(kept) in line["message"]
    assert "must be asked for again" in line["message"]
    assert fresh.jobs.get(asked[0]) is None
    assert fresh.ended(fresh.ask()).state is JobState.SUCCEEDED
    fresh.stop()
    assert len(fresh.log("queue_put_aside")) == 1


def test_a_queue_file_without_content_is_told(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"))
    agent.home.mkdir(parents=True)
    (agent.home / NAME).touch()
    agent.start()
    assert "had no content" in agent.told("queue_was_empty")["message"]
    agent.stop()


def test_a_new_home_is_no_damaged_one(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start().up()
    agent.stop()
    assert not agent.log("queue_was_empty")
    assert not agent.log("queue_put_aside")


@pytest.mark.parametrize("change", ["pragma user_version = 99", "pragma application_id = 7"])
def test_a_whole_file_of_another_version_or_program_is_refused_and_left_alone(agents, tmp_path, change):
    agent = agents(make_site(tmp_path / "project"))
    agent.ask()
    agent.close()
    connection = sqlite3.connect(agent.home / NAME)
    connection.execute(change)
    connection.close()
    before = (agent.home / NAME).read_bytes()
    agent.start()
    assert agent.wait() == 1
    assert "not a queue of this version of fdagent" in agent.said()
    assert (agent.home / NAME).read_bytes() == before


def test_a_queue_file_that_is_damaged_under_a_running_agent_ends_it_and_the_next_start_goes_on(agents, tmp_path):
    site = make_site(tmp_path / "project")
    agent = agents(site).start()
    agent.ended(agent.ask("bronze.orders"))
    path = agent.home / NAME
    agent.close_queue()
    with path.open("r+b") as file:
        file.write(garbage(path))
    (agent.home / f"{NAME}-wal").write_bytes(b"")
    assert agent.wait() == 1
    assert "its next start puts the file aside" in agent.told("queue_damaged")["message"]
    until(lambda: not agent.workers(), "no worker is left")
    words = command("enqueue", "dev", "--config", str(agent.config))
    refused = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert "can't be read as a queue" in refused.stderr
    agent.start()
    agent.told("queue_put_aside")
    assert agent.ended(agent.ask()).state is JobState.SUCCEEDED
    agent.stop()
