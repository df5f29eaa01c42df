"""Where agent.toml is, where the agent's home is, and what the agent is called.

Guarantees: a file that was named, on the command line or in the environment, is the one that is used, there or not;
only the platform's own place may be empty. A place that can't be looked at is not taken for an empty one. Reads no
file.
"""

import re
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath

from models.ids import MAX_LENGTH, id_problem

CONFIG_VARIABLE = "FABRIC_DESKTOP_AGENT_CONFIG"
HOME_VARIABLE = "FABRIC_DESKTOP_HOME"
LINUX_CONFIG = "/etc/fabric-desktop/agent.toml"
LINUX_HOME = "/var/lib/fabric-desktop"
WINDOWS_FOLDER = "FabricDesktop"

_PROGRAM_DATA = ("PROGRAMDATA", r"C:\ProgramData")


def find_config(named: Path | None, environ: Mapping[str, str], *, windows: bool) -> Path | None:
    """The agent.toml to use; None when none is named and the platform's place has none.

    Args:
        named: What `--config` named.
        environ: The environment variables.
        windows: Is this Windows?
    """
    if named is not None:
        return named
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE])
    usual = _program_data(environ, "agent.toml") if windows else Path(LINUX_CONFIG)
    try:
        usual.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return usual  # it may be there: loading it says why it can't be read
    return usual


def find_home(configured: Path | None, environ: Mapping[str, str], *, windows: bool) -> Path:
    """The agent's home: FABRIC_DESKTOP_HOME, else `agent.home`, else the platform's place."""
    if environ.get(HOME_VARIABLE):
        return Path(environ[HOME_VARIABLE]).absolute()
    if configured is not None:
        return configured
    return _program_data(environ) if windows else Path(LINUX_HOME)


def agent_name(host: str) -> str:
    """The name of an agent that was given none: the host's, made an id that may be part of a path (rule C8)."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", host).strip(".")[:MAX_LENGTH].rstrip(".")
    if name and id_problem(name):  # only a Windows device's name is left
        name = f"agent-{name}"[:MAX_LENGTH].rstrip(".")
    return name or "agent"


def _program_data(environ: Mapping[str, str], *inner: str) -> Path:
    variable, usual = _PROGRAM_DATA
    return Path(str(PureWindowsPath(environ.get(variable) or usual, WINDOWS_FOLDER, *inner)))
