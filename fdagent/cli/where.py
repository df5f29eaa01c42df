"""Which metadata project and which home a command works on.

Guarantees: without an agent.toml, the project is the nearest folder upwards that holds a `layers.toml` (or the one that
`--project` names), the home is `FABRIC_DESKTOP_HOME` or `<project>/.local/agent`, and the agent's name is the host's.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from fdagent.errors import UsageError

HOME_VARIABLE = "FABRIC_DESKTOP_HOME"
PROJECT_FILE = "layers.toml"


@dataclass(frozen=True, slots=True)
class Where:
    """The project's folder, the home, and who works there."""

    project: Path
    home: Path
    agent: str
    host: str


def where(project: Path | None) -> Where:
    """Find them.

    Args:
        project: What `--project` named; None: look upwards from the working folder.

    Raises:
        UsageError: There is no project.
    """
    folder = _project(project)
    home = os.environ.get(HOME_VARIABLE)
    host = socket.gethostname()
    name = "".join(char if char.isalnum() or char in "._-" else "-" for char in host).strip(".")[:64] or "agent"
    return Where(folder, Path(home) if home else folder / ".local" / "agent", name, host)


def _project(named: Path | None) -> Path:
    if named is not None:
        if not (named / PROJECT_FILE).is_file():
            raise UsageError(
                f"{named} is not a metadata project: it has no {PROJECT_FILE}.",
                fix="Name a project's folder, or make one with `fdagent init`.",
            )
        return named.resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise UsageError(
        f"No metadata project is in {here} or above it: there is no {PROJECT_FILE}.",
        fix="Change into a project, name one with --project, or make one with `fdagent init`.",
    )
