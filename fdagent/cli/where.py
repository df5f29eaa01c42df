"""Which metadata project and which home a command works on.

Guarantees: with an agent.toml (`--config`, FABRIC_DESKTOP_AGENT_CONFIG, or the platform's place) its project and home are
used. Without one, the project is the nearest folder upwards that holds a `layers.toml` (or the one that `--project`
names), the home is FABRIC_DESKTOP_HOME or `<project>/.local/agent`, and the agent is called as its host.
"""

import contextlib
import getpass
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fdagent.config.find import HOME_VARIABLE, agent_name, find_config, find_home
from fdagent.errors import HomeDenied, UsageError

if TYPE_CHECKING:
    from fdagent.config.settings import Settings
    from fdagent.ports import Store

PROJECT_FILE = "layers.toml"


@dataclass(frozen=True, slots=True)
class Where:
    """The project's folder, the home, who works there, and the agent.toml if there is one."""

    project: Path
    home: Path
    agent: str
    host: str
    settings: "Settings | None" = None


def where(project: Path | None, config: Path | None = None) -> Where:
    """Find them.

    Args:
        project: What `--project` named: that folder, whatever agent.toml says. None: look.
        config: What `--config` named.

    Raises:
        UsageError: There is no project.
        ConfigError: The agent.toml has problems.
    """
    windows = sys.platform == "win32"
    host = socket.gethostname()
    file = None if project is not None and config is None else find_config(config, os.environ, windows=windows)
    if file is not None:
        from fdagent.config.load import load_settings

        settings = load_settings(file, host=host)
        home = find_home(settings.agent.home, os.environ, windows=windows)
        folder = settings.agent.project if project is None else _named(project)
        return Where(folder, home, settings.agent.name, host, settings)
    folder = _upwards() if project is None else _named(project)
    variable = os.environ.get(HOME_VARIABLE)
    home = Path(variable).absolute() if variable else folder / ".local" / "agent"
    return Where(folder, home, agent_name(host), host)


def person() -> str:
    """Who gives the command: the name of this user, or its number where it has none, as in a container."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"user {os.getuid()}" if sys.platform != "win32" else "somebody"


@contextlib.contextmanager
def looking_at_home(home: Path) -> Iterator[None]:
    """Turn what the system says of a home into a sentence.

    Raises:
        HomeDenied: This user may not look.
    """
    try:
        yield
    except OSError as err:
        raise HomeDenied(
            f"The home folder {home} can't be looked at: {(err.strerror or type(err).__name__).lower()}.",
            fix="Give the command as the agent's own user.",
        ) from err


def running_agent(place: Where) -> int | None:
    """The pid of the agent that runs in a home, 0 where it can't be told yet; None when none does."""
    from fdagent.daemon.home import daemon_pid

    with looking_at_home(place.home):
        return daemon_pid(place.home)


def control_root(place: Where, env: str) -> "Store":
    """The shared records of an environment.

    Raises:
        ProjectError: The project can't be read.
        NotFound: It has no such environment.
        UsageError: This version can't reach it.
    """
    from fdagent.fleet.release import open_control
    from fdagent.project.load import load_project
    from fdagent.project.places import Places, environment_named
    from fdagent.system import SystemClock, SystemIds

    project = load_project(place.project)
    return open_control(Places(project, environment_named(project, env)), clock=SystemClock(), ids=SystemIds())


def _named(project: Path) -> Path:
    if not (project / PROJECT_FILE).is_file():
        raise UsageError(
            f"{project} is not a metadata project: it has no {PROJECT_FILE}.",
            fix="Name a project's folder, or make one with `fdagent init`.",
        )
    return project.resolve()


def _upwards() -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise UsageError(
        f"No metadata project is in {here} or above it: there is no {PROJECT_FILE}.",
        fix="Change into a project, name one with --project, or make one with `fdagent init`.",
    )
