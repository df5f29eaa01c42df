"""Agents that share one control root, as most tests of this folder start with."""

import pytest
from fleet_kit import Fleet


@pytest.fixture
def fleet():
    return Fleet()


@pytest.fixture
def a(fleet):
    agent = fleet.agent("etl-01")
    agent.tick()
    return agent


@pytest.fixture
def b(fleet):
    agent = fleet.agent("etl-02")
    agent.tick()
    return agent
