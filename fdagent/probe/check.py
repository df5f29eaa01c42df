"""`fdagent check`: everything an agent relies on that can be seen from this machine.

Guarantees: each look is by itself, so one that fails hides no other; nothing is changed but three records of its own
in each control folder that is there (`store.py`). Asks no network.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fdagent.config.against import check_against_project
from fdagent.config.settings import Settings
from fdagent.errors import FdagentError, ProjectError
from fdagent.fleet.release import open_control, promoted_version
from fdagent.ports import Clock, Ids, Store
from fdagent.probe import machine
from fdagent.probe.findings import Finding, Level, error, errors_of, ok, warning
from fdagent.probe.home import home, space
from fdagent.probe.secrets import secrets
from fdagent.probe.store import probe
from fdagent.project.load import load_project
from fdagent.project.model import Environment, Project
from fdagent.project.places import Places
from fdagent.project.release import check_promoted
from fdagent.stores.storeclock import skew


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at: agent.toml's settings (None: there is none, or it can't be read), the project, the home."""

    settings: Settings | None
    project: Path
    home: Path
    environ: Mapping[str, str]


def check_machine(settings: Settings | None, environ: Mapping[str, str], clock: Clock) -> list[Finding]:
    """What can be looked at whatever is wrong with agent.toml."""
    return [*machine.tools(), *machine.time_zone(settings, environ, clock)]


def check(subject: Subject, clock: Clock, ids: Ids) -> list[Finding]:
    """Look at all of it."""
    return [
        *_project(subject, clock, ids),
        *check_machine(subject.settings, subject.environ, clock),
        *home(subject.home, clock, ids),
        *([] if subject.settings is None else secrets(subject.settings, subject.environ)),
    ]


def _project(subject: Subject, clock: Clock, ids: Ids) -> Iterator[Finding]:
    try:
        project = load_project(subject.project)
    except ProjectError as err:
        yield from errors_of("project", err)
        return
    yield ok("project", f"{project.root}: {len(project.entities)} entities, metadata {project.metadata_version[:12]}….")
    try:
        yield space("disk of the project", project.root)
    except OSError as err:
        yield warning("disk of the project", f"How much room is left can't be told: {err.strerror}.", "")
    yield from _rules(subject.settings, project)
    for environment in _environments(subject.settings, project):
        yield from _environment(project, environment, clock, ids)


def _rules(settings: Settings | None, project: Project) -> list[Finding]:
    """agent.toml beside the project."""
    if settings is None:
        return []
    problems = check_against_project(settings, project)
    fix = "Correct agent.toml or the project; docs/agent-toml.md explains every key."
    fits = ok("agent.toml and project", f"{settings.file} fits the project.")
    return [error("agent.toml and project", sentence, fix) for sentence in problems] or [fits]


def _environments(settings: Settings | None, project: Project) -> list[Environment]:
    """Those that this agent runs and the project has; without agent.toml: the local ones."""
    if settings is None:
        return [one for _, one in sorted(project.environments.items()) if one.target == "local"]
    return [project.environments[name] for name in settings.agent.environments if name in project.environments]


def _environment(project: Project, environment: Environment, clock: Clock, ids: Ids) -> Iterator[Finding]:
    what = f"promoted {environment.name}"
    try:
        store = open_control(Places(project, environment), clock=clock, ids=ids)
        promoted = promoted_version(store)
    except FdagentError as err:
        yield from errors_of(what, err)
        return
    try:
        check_promoted(project, environment, promoted)
        yield ok(what, f"{environment.name} runs this very version of the project.")
    except FdagentError as err:
        yield from errors_of(what, err)
    # Where nothing was promoted there is no control folder, and looking makes none.
    if promoted:
        yield from control(f"control folder {environment.name}", store, ids)


def control(what: str, store: Store, ids: Ids) -> list[Finding]:
    """Does a control root keep its conditions, and is its clock this machine's?"""
    found = [finding for finding in probe(store, ids) if finding.level is not Level.OK]
    shown = [Finding(one.level, what, one.sentence, one.fix) for one in found]
    if not shown:
        shown = [ok(what, "Conditional create, replace and delete hold.")]
    return [*shown, _offset(what, store.clock_offset())]


def _offset(what: str, offset: float | None) -> Finding:
    found = skew(offset)
    if found is not None:
        make = error if found.wrong else warning
        return make(what, found.sentence, "Set this machine's clock, and keep it set (NTP).")
    return ok(what, "Its clock is this machine's." if offset is not None else "Its clock is not measured yet.")
