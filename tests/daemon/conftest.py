"""The daemon's tests use the project that the process tests run."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "process"))


@pytest.fixture(autouse=True, scope="session")
def no_configuration():
    """No configuration of this machine takes part."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FABRIC_DESKTOP_HOME", "FABRIC_DESKTOP_AGENT_CONFIG", "FDAGENT_FAULTS"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def agents():
    """Starts agents (`daemon_kit.Agent`) and sees to it that none outlives its test."""
    from daemon_kit import Agent

    started: list[Agent] = []

    def make(*args: object, **kwargs: object) -> Agent:
        started.append(Agent(*args, **kwargs))
        return started[-1]

    yield make
    for agent in started:
        agent.close()
