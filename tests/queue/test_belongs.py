"""Whose a queue is, when two processes ask at once."""

import pytest
from fakes import FakeClock, FakeIds

from fdagent.errors import Refused
from fdagent.queue import belongs
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from models.job import Job, JobFacts, JobState
from models.step import Refusal


@pytest.fixture
def queue(tmp_path):
    """A queue with a job of nobody's project yet, and a second connection to it."""
    one, two = Database(tmp_path / "home"), Database(tmp_path / "home")
    Jobs(one, clock=FakeClock(), ids=FakeIds()).enqueue(Job("j1", JobState.QUEUED, "op", "dev", "j1", "j1"))
    yield one, two
    one.close()
    two.close()


def racing(monkeypatch, other, project):
    """The next look finds the queue to be nobody's, and the other process is first to write."""
    real = belongs.folder_of

    def look(database):
        found = real(database)
        monkeypatch.setattr(belongs, "folder_of", real)
        belongs.adopt(other, project)
        return found

    monkeypatch.setattr(belongs, "folder_of", look)


def test_two_processes_of_one_project_that_start_at_once_both_go_on(queue, tmp_path, monkeypatch):
    one, two = queue
    (tmp_path / belongs.PROJECT_FILE).touch()
    racing(monkeypatch, two, tmp_path)
    belongs.adopt(one, tmp_path)
    assert belongs.folder_of(one) == belongs.named(tmp_path)


def test_of_two_projects_that_start_at_once_the_second_is_refused(queue, tmp_path, monkeypatch):
    one, two = queue
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / belongs.PROJECT_FILE).touch()
    racing(monkeypatch, two, tmp_path / "first")
    with pytest.raises(Refused, match="first"):
        belongs.adopt(one, tmp_path / "second")


def test_what_is_left_of_another_project_does_not_go_over_with_the_queue(tmp_path):
    """Its finished jobs could be tried again here, and their keys would be taken for this project's."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / belongs.PROJECT_FILE).touch()
    database = Database(tmp_path / "home")
    belongs.adopt(database, tmp_path / "first")
    jobs = Jobs(database, clock=FakeClock(), ids=FakeIds(), project=tmp_path / "first")
    jobs.enqueue(Job("j1", JobState.QUEUED, "op", "dev", "j1", "j1"))
    jobs.ask("j1", "cancel", JobFacts(reason="cancelled"))
    belongs.adopt(database, tmp_path / "second")
    jobs = Jobs(database, clock=FakeClock(), ids=FakeIds(), project=tmp_path / "second")
    assert jobs.get("j1") is None
    assert jobs.counts() == {}
    assert not isinstance(jobs.enqueue(Job("j2", JobState.QUEUED, "op", "dev", "j1", "j1"), once=True), Refusal)
    database.close()
