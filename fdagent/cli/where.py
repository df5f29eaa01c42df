"""Which metadata project and which home a command works on.

Guarantees: with an agent.toml (`--config`, FABRIC_DESKTOP_AGENT_CONFIG, or the platform's place) its project and home are
used. Without one, the project is the nearest folder upwards that holds a `layers.toml` (or the one that `--project`
names), the home is FABRIC_DESKTOP_HOME or `<project>/.local/agent`, and the agent is called as its host.
"""

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fdagent.config.find import HOME_VARIABLE, agent_name, find_config, find_home
from fdagent.errors import UsageError

if TYPE_CHECKING:
    from fdagent.config.settings import Settings

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
