"""`check`: is everything there that an agent relies on?"""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fdagent.cli.options import Config, Json, Project
from fdagent.cli.where import where
from fdagent.errors import ConfigError, FdagentError

if TYPE_CHECKING:
    from fdagent.probe.findings import Finding


NO_FILE = "None is used: the project's local environments run with the defaults."


def check(project: Project = None, config: Config = None, as_json: Json = False) -> int:
    """Look at agent.toml, the project, this machine, the home, the control folders; exit code 1 if one is no good."""
    from fdagent.probe.findings import Level, has_errors

    found = _findings(project, config)
    if as_json:
        lines = [{"level": f.level.value, "what": f.what, "sentence": f.sentence, "fix": f.fix} for f in found]
        counts = {level.value: sum(f.level is level for f in found) for level in Level}
        print(json.dumps({"ok": not has_errors(found), "counts": counts, "findings": lines}, indent=2))
    else:
        from fdagent.cli import fleetview

        fleetview.findings(found)
    return 1 if has_errors(found) else 0


def _findings(project: Path | None, config: Path | None) -> "list[Finding]":
    from fdagent.probe.check import Subject, check_machine
    from fdagent.probe.check import check as look
    from fdagent.probe.findings import errors_of, ok
    from fdagent.system import SystemClock, SystemIds

    clock = SystemClock()
    try:
        place = where(project, config)
    except FdagentError as err:
        what = "agent.toml" if isinstance(err, ConfigError) else "project"
        return [*errors_of(what, err), *check_machine(None, os.environ, clock)]
    settings = place.settings
    file = ok("agent.toml", NO_FILE if settings is None else f"{settings.file} is in order.")
    return [file, *look(Subject(settings, place.project, place.home, os.environ), clock, SystemIds())]
