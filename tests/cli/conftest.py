"""A person at a machine without any configuration."""

import signal

import pytest
from cli_kit import Person


@pytest.fixture
def bare(tmp_path, monkeypatch, capsys):
    """They stand in an empty folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("FABRIC_DESKTOP_HOME", "FABRIC_DESKTOP_AGENT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("fdagent.config.find.LINUX_CONFIG", str(tmp_path / "nowhere.toml"))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield Person(folder, capsys)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def person(bare):
    """They stand in a promoted project."""
    bare.set_up()
    return bare
