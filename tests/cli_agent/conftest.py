"""A person at a machine of their own, in a promoted project."""

import pytest
from cli_agent_kit import Desk

from fdagent.project.scaffold import write_scaffold


@pytest.fixture
def bare(tmp_path, monkeypatch, capsys):
    """Nothing is promoted yet."""
    project, home = tmp_path / "project", tmp_path / "home"
    write_scaffold(project)
    monkeypatch.chdir(project)
    monkeypatch.delenv("FABRIC_DESKTOP_AGENT_CONFIG", raising=False)
    monkeypatch.setenv("FABRIC_DESKTOP_HOME", str(home))
    monkeypatch.setattr("fdagent.config.find.LINUX_CONFIG", str(tmp_path / "nowhere.toml"))
    return Desk(project, home, capsys)


@pytest.fixture
def desk(bare):
    assert bare("promote", "dev", "--yes").code == 0
    return bare
