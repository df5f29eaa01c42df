"""What the process tests share: no configuration of this machine, and one process that forks runs."""

import pytest
from step_server import Server


@pytest.fixture(autouse=True, scope="session")
def no_configuration():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FABRIC_DESKTOP_HOME", "FABRIC_DESKTOP_AGENT_CONFIG"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def server(no_configuration):
    running = Server()
    yield running
    running.close()
