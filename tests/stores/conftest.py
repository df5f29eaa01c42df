from collections.abc import Callable
from dataclasses import dataclass

import azurite
import pytest

from fdagent.ports import Store
from fdagent.stores.local import LocalStore
from fdagent.stores.memory import MemoryStore
from fdagent.system import SystemClock, SystemIds


@pytest.fixture(scope="session")
def http_server(tmp_path_factory):
    yield from _running("http", tmp_path_factory)


@pytest.fixture(scope="session")
def https_server(tmp_path_factory):
    yield from _running("https", tmp_path_factory)


def _running(kind, tmp_path_factory):
    azurite.need()
    server = azurite.Azurite(kind, tmp_path_factory.mktemp(f"azurite-{kind}"))
    server.start()
    yield server
    server.stop()


@dataclass
class Backend:
    """A store under test, and how another process would open the same one."""

    name: str
    store: Store
    open: Callable[[], Store]


@pytest.fixture(
    params=[
        "memory",
        "local",
        pytest.param("azurite-http", marks=pytest.mark.azurite),
        pytest.param("azurite-https", marks=pytest.mark.azurite),
    ]
)
def backend(request, tmp_path) -> Backend:
    if request.param == "memory":
        memory = MemoryStore(SystemClock())
        return Backend("memory", memory, lambda: memory)
    if request.param == "local":
        make = lambda: LocalStore(tmp_path / "_control", clock=SystemClock(), ids=SystemIds())  # noqa: E731
        return Backend("local", make(), make)
    server = request.getfixturevalue(request.param.removeprefix("azurite-") + "_server")
    container = server.new_container()
    return Backend(request.param, server.store(container), lambda: server.store(container))


@pytest.fixture
def store(backend) -> Store:
    return backend.store


def pytest_terminal_summary(terminalreporter):
    """Skipped is easily overlooked: say what was not tested."""
    skipped = [
        report for report in terminalreporter.stats.get("skipped", []) if azurite.MISSING in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.section("not tested")
        terminalreporter.line(f"{len(skipped)} tests against Azurite were skipped. {azurite.MISSING}.")
