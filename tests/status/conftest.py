"""A person in a project with a home that is not made yet."""

import pytest
from status_kit import Home

from fdagent.project.scaffold import write_scaffold


@pytest.fixture
def home(tmp_path, monkeypatch, capsys):
    project, path = tmp_path / "project", tmp_path / "home"
    write_scaffold(project)
    monkeypatch.chdir(project)
    monkeypatch.delenv("FABRIC_DESKTOP_AGENT_CONFIG", raising=False)
    monkeypatch.setenv("FABRIC_DESKTOP_HOME", str(path))
    monkeypatch.setattr("fdagent.config.find.LINUX_CONFIG", str(tmp_path / "nowhere.toml"))
    monkeypatch.setattr("fdagent.config.find.WINDOWS_CONFIG", str(tmp_path / "nowhere.toml"), raising=False)
    return Home(project, path, capsys)
