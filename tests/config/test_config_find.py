"""Where agent.toml and the home are, on both platforms, and what an agent is called that has no name."""

import sys
from pathlib import Path

import pytest
from config_kit import AGENT, loaded
from hypothesis import example, given
from hypothesis import strategies as st

from fdagent.config import find
from fdagent.config.find import CONFIG_VARIABLE, HOME_VARIABLE, agent_name, find_config, find_home
from models.ids import id_problem


@pytest.fixture
def usual(tmp_path, monkeypatch):
    """The platform's place, in a folder of its own; nothing is there yet."""
    file = tmp_path / "etc" / "agent.toml"
    monkeypatch.setattr(find, "LINUX_CONFIG", str(file))
    return file


def test_the_file_named_on_the_command_line_goes_first_there_or_not(usual, tmp_path):
    environ = {CONFIG_VARIABLE: str(tmp_path / "other.toml")}
    assert find_config(tmp_path / "missing.toml", environ, windows=False) == tmp_path / "missing.toml"


def test_the_file_named_in_the_environment_goes_second_there_or_not(usual, tmp_path):
    usual.parent.mkdir()
    usual.touch()
    assert find_config(None, {CONFIG_VARIABLE: "x/agent.toml"}, windows=False) == Path("x/agent.toml")


def test_an_empty_variable_names_nothing(usual):
    assert find_config(None, {CONFIG_VARIABLE: ""}, windows=False) is None


def test_the_platforms_place_is_used_when_something_is_there(usual):
    assert find_config(None, {}, windows=False) is None
    usual.parent.mkdir()
    assert find_config(None, {}, windows=False) is None
    usual.touch()
    assert find_config(None, {}, windows=False) == usual


def test_a_link_to_nowhere_is_something_that_must_be_read(usual):
    usual.parent.mkdir()
    usual.symlink_to(usual.parent / "gone.toml")
    assert find_config(None, {}, windows=False) == usual


def test_a_place_that_cant_be_looked_at_is_not_taken_for_empty(usual, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", denied)
    assert find_config(None, {}, windows=False) == usual


@pytest.mark.skipif(sys.platform == "win32", reason="the places of Linux")
def test_the_places_of_linux():
    assert find.LINUX_CONFIG == "/etc/fabric-desktop/agent.toml"
    assert find_home(None, {}, windows=False) == Path("/var/lib/fabric-desktop")


@pytest.mark.parametrize(
    ("environ", "folder"),
    [({}, "C:\\ProgramData"), ({"PROGRAMDATA": ""}, "C:\\ProgramData"), ({"PROGRAMDATA": "D:\\PD"}, "D:\\PD")],
)
def test_the_places_of_windows(environ, folder, monkeypatch):
    assert str(find_home(None, environ, windows=True)) == f"{folder}\\FabricDesktop"
    looked_at = []
    monkeypatch.setattr(Path, "lstat", lambda path: looked_at.append(str(path)))
    assert find_config(None, environ, windows=True) == Path(f"{folder}\\FabricDesktop\\agent.toml")
    assert looked_at == [f"{folder}\\FabricDesktop\\agent.toml"]


def test_the_home_in_the_environment_goes_before_the_one_in_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    configured = tmp_path / "configured"
    assert find_home(configured, {HOME_VARIABLE: "/srv/home"}, windows=False) == Path("/srv/home").absolute()
    assert find_home(configured, {HOME_VARIABLE: "home"}, windows=False) == tmp_path / "home"
    assert find_home(configured, {HOME_VARIABLE: ""}, windows=False) == configured


@pytest.mark.parametrize(
    ("host", "name"),
    [("etl-01", "etl-01"), ("etl-01.contoso.com", "etl-01.contoso.com"), ("Büro PC", "B-ro-PC"), ("", "agent"),
     ("...", "agent"), ("con", "agent-con"), ("NUL.contoso.com", "agent-NUL.contoso.com"), ("x" * 100, "x" * 64),
     ("x" * 63 + ".y", "x" * 63), ("a/../b", "a-..-b")],
)  # fmt: skip
def test_an_agent_without_a_name_has_its_hosts(tmp_path, host, name):
    assert agent_name(host) == name
    assert loaded(tmp_path, AGENT).agent.name == "etl-01.contoso.com"


@given(st.text(max_size=100))
@example("com1." + "x" * 62 + ".")
@example("aux.")
def test_any_host_gives_a_name_that_an_agent_may_have(host):
    assert id_problem(agent_name(host)) == ""
