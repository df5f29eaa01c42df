"""Two projects that name one home: no job of one ever runs in the other's folder."""

import json
import shutil

import pytest
from cli_agent_kit import Desk

from fdagent.daemon.home import taken
from fdagent.project.scaffold import write_scaffold
from fdagent.queue.belongs import folder_of
from fdagent.queue.db import Database


@pytest.fixture
def other(desk, tmp_path, monkeypatch):
    """Gives commands from another project with the same home; `desk` goes on from its own."""
    folder = tmp_path / "other"
    write_scaffold(folder)
    assert desk("promote", "dev", "--yes", "--project", str(folder)).code == 0

    def give(*words: str):
        return desk(*words, "--project", str(folder))

    give.folder = folder
    return give


def owner(desk: Desk) -> str:
    database = Database(desk.home)
    folder = folder_of(database)
    database.close()
    return folder


@pytest.mark.parametrize(
    "words",
    [("enqueue", "dev"), ("run", "--until-idle"), ("run",)],
    ids=["enqueue", "run until idle", "run"],
)
def test_while_a_job_of_one_project_waits_the_other_is_refused_and_neither_is_changed(desk, other, words):
    desk("enqueue", "dev")
    waiting = desk("status", "--json").json["unfinished"]
    said = other(*words)
    assert said.code == 4
    assert str(desk.project) in said.err
    assert str(other.folder) in said.err
    assert "FABRIC_DESKTOP_HOME" in said.err
    assert desk("status", "--json").json["unfinished"] == waiting
    assert not (other.folder / ".local/dev/LH_Bronze").exists()
    assert desk("run", "--until-idle").code == 0


@pytest.mark.parametrize("event", ["cancel", "retry"])
def test_a_wish_about_another_projects_job_is_refused(desk, other, event):
    job = desk("enqueue", "dev", "--json").json["id"]
    if event == "retry":
        desk("cancel", job)
    said = other(event, job)
    assert said.code == 4
    assert "a job would run in the wrong one" in said.err


def test_looking_from_the_other_project_is_allowed_and_warns(desk, other):
    desk("enqueue", "dev")
    [warned] = [one for one in other("status", "--json").json["warnings"] if one["kind"] == "another_project"]
    assert str(desk.project) in warned["sentence"]
    assert all(one["kind"] != "another_project" for one in desk("status", "--json").json["warnings"])


def test_an_idle_home_goes_over_to_the_other_project_and_back(desk, other):
    desk("enqueue", "dev")
    assert desk("run", "--until-idle").code == 0
    assert other("enqueue", "dev").code == 0
    assert owner(desk) == str(other.folder)
    assert desk("enqueue", "dev").code == 4
    assert other("run", "--until-idle").code == 0
    assert desk("enqueue", "dev").code == 0
    assert owner(desk) == str(desk.project)


def test_with_run_log_rows_left_to_write_it_does_not_go_over(desk, other, monkeypatch):
    from fdagent.engine import runlog

    def fails(*_args, **_more):
        raise OSError("no")

    desk("enqueue", "dev")
    with monkeypatch.context() as patched:
        patched.setattr(runlog, "append_rows", fails)
        desk("run", "--until-idle")
    assert other("enqueue", "dev").code == 4
    desk("run", "--until-idle")
    assert other("enqueue", "dev").code == 0


def test_while_an_agent_runs_its_home_goes_over_to_nobody(desk, other):
    desk("enqueue", "dev")
    desk("run", "--until-idle")
    with taken(desk.home, desk.clock):
        assert other("enqueue", "dev").code == 4
        assert "Nothing was waiting" in other("run", "--until-idle").out
    assert owner(desk) == str(desk.project)


def test_a_project_that_was_moved_takes_its_jobs_along(desk, tmp_path, monkeypatch):
    desk("enqueue", "dev")
    moved = tmp_path / "moved"
    monkeypatch.chdir(tmp_path)
    shutil.move(desk.project, moved)
    monkeypatch.chdir(moved)
    assert desk("run", "--until-idle").code == 0
    assert [job["state"] for job in desk("status", "--json").json["finished"]] == ["succeeded"]


def test_a_link_to_the_project_is_the_project(desk, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(desk.project)
    desk("enqueue", "dev")
    assert desk("enqueue", "dev", "--project", str(link)).code == 0


def test_a_refusal_is_json_for_programs(desk, other):
    desk("enqueue", "dev")
    said = other("enqueue", "dev", "--json")
    assert (said.code, json.loads(said.out)["exit_code"]) == (4, 4)
