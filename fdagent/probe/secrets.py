"""Where an agent's secrets are: the variables that agent.toml names, and the files that only few may read.

Guarantees: a variable's value is looked at only for whether there is one; it reaches no finding. A file's content is
not read, but for the names of the variables that an `agent.env` sets. On Windows, where rights are lists and not bits,
nothing is said about who may read a file.
"""

import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from fdagent.config.settings import Settings
from fdagent.probe.findings import Finding, error, ok, warning

ENV_FILE = "agent.env"
OTHERS = stat.S_IROTH | stat.S_IWOTH | stat.S_IXOTH
MAX_BYTES = 65_536
"""Of an agent.env that is read."""


def secrets(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """Look at every variable and file that these settings name, and at the agent.env beside agent.toml."""
    file = settings.file.parent / ENV_FILE
    found = [*_variables(settings, environ, file)]
    if _exists(file):
        found.append(_rights(ENV_FILE, file))
    certificate = settings.identity.certificate_path
    if certificate is not None:
        found.append(_certificate(certificate))
    return found


def _named(settings: Settings) -> Iterator[tuple[str, str, bool]]:
    """Key, variable, and whether the agent can't sign in without it."""
    identity = settings.identity
    yield "[identity] client_secret_env", identity.client_secret_env, True
    yield "[identity] certificate_password_env", identity.certificate_password_env, True
    yield "[alerts] teams_webhook_env", settings.alerts.teams_webhook_env, False
    for route in settings.routes:
        yield f"[[incidents.route]] {route.name} webhook_env", route.webhook_env, False


def _variables(settings: Settings, environ: Mapping[str, str], file: Path) -> Iterator[Finding]:
    in_file = _set_in(file)
    for key, name, needed in _named(settings):
        what = f"variable {name}"
        if not name:
            continue
        if environ.get(name, "").strip():
            yield ok(what, f"{name}, which {key} names, is set.")
        elif name in in_file:
            yield ok(what, f"{name}, which {key} names, is set by {file} for the service.")
        else:
            yield (error if needed else warning)(
                what,
                f"{name}, which {key} names, is not set here"
                + ("." if in_file or not _exists(file) else f", and {file} does not set it or can't be read."),
                f"Set it for the service: in {file}, or on Windows as an environment variable of the machine.",
            )


def _set_in(file: Path) -> frozenset[str]:
    """The variables that an agent.env gives a value; none when it can't be read."""
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return frozenset()
    parts = [line.strip().removeprefix("export ").partition("=") for line in text.splitlines()]
    return frozenset(
        name.strip() for name, _, value in parts if value.strip().strip("'\"") and not name.startswith("#")
    )


def _certificate(path: Path) -> Finding:
    try:
        with path.open("rb"):
            return _rights("certificate", path)
    except OSError as err:
        return error(
            "certificate",
            f"{path} can't be read: {(err.strerror or type(err).__name__).lower()}.",
            "Put the certificate with its private key there, readable by the agent's user alone.",
        )


def _rights(what: str, path: Path) -> Finding:
    """May anybody but its owner and group do something with it?"""
    try:
        open_to_all = sys.platform != "win32" and path.stat().st_mode & OTHERS
    except OSError as err:
        return warning(what, f"{path} can't be looked at: {err.strerror}.", "Check as the agent's own user.")
    if not open_to_all:
        return ok(what, f"{path} is there.")
    return warning(what, f"{path} may be read or changed by every user of this machine.", f"chmod o= '{path}'")


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:
        return False
