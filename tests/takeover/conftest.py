"""The takeover tests use the project, the agents' faults and the stores' Azurite of their neighbours."""

import sys
from pathlib import Path

import pytest

for folder in ("process", "daemon", "stores"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))


@pytest.fixture(autouse=True, scope="session")
def no_configuration():
    """No configuration of this machine takes part."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FABRIC_DESKTOP_HOME", "FABRIC_DESKTOP_AGENT_CONFIG", "FDAGENT_FAULTS", "FDAGENT_BLOB_CONTROL"):
            patch.delenv(name, raising=False)
        yield
