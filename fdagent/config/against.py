"""agent.toml beside the metadata project it names: what neither of them can tell alone.

Guarantees: every problem is one sentence in the shape of those of `load.py`; the order is that of the settings. Does
not look at Fabric, and not at what is promoted.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from fdagent.config.schedules import Schedule
from fdagent.config.settings import Settings
from fdagent.project.graph import downstream
from fdagent.project.model import Environment, Project
from fdagent.project.problems import did_you_mean, found, printable

_GLOB = frozenset("*?[")


def check_against_project(settings: Settings, project: Project) -> tuple[str, ...]:
    """What keeps an agent with these settings from running this project; empty when nothing does."""
    lines = [
        *_environments(settings, project.environments),
        *_identity(settings, project.environments),
        *_workspaces(settings, project.environments),
        *_entities(settings, project),
    ]
    return tuple(printable(f"{settings.file.name}, {line}{'' if line.endswith('?') else '.'}") for line in lines)


def _environments(settings: Settings, known: Mapping[str, Environment]) -> Iterator[str]:
    """Every environment that is named is one of the project's."""
    named = [("[agent] environments", env) for env in settings.agent.environments]
    for number, route in enumerate(settings.routes, start=1):
        named += [(f"[[incidents.route]] {number} ({route.name}) envs", env) for env in route.envs]
    for place, env in named:
        if env not in known:
            yield f"{place}: {found(env)} is no environment of the project{did_you_mean(env, known)}"


def _fabric(settings: Settings, known: Mapping[str, Environment]) -> list[Environment]:
    ours = [known[env] for env in settings.agent.environments if env in known]
    return [env for env in ours if env.target == "fabric"]


def _identity(settings: Settings, known: Mapping[str, Environment]) -> Iterator[str]:
    """Only local environments go without an identity."""
    if settings.identity.kind == "none":
        for env in _fabric(settings, known):
            yield f'[identity] kind: found "none", but {found(env.name)} lies in Fabric; expected another kind'


def _workspaces(settings: Settings, known: Mapping[str, Environment]) -> Iterator[str]:
    """Where the allowed workspaces are listed, they hold those of every environment that is run."""
    allowed = settings.agent.workspaces
    for env in _fabric(settings, known) if allowed else ():
        for what, workspace in (("workspace", env.workspace), ("keys_workspace", env.keys_workspace)):
            if workspace and workspace not in allowed:
                yield f"[agent] workspaces: the {what} of {found(env.name)}, {workspace}, is not among them"


def _entities(settings: Settings, project: Project) -> Iterator[str]:
    """Every name and glob means an entity, and what a shared schedule runs is served here."""
    for word in settings.pipeline.entities:
        if not _matches(word, project):
            yield f"[pipeline] entities: {_no_entity(word, project)}"
    for number, schedule in enumerate(settings.schedules, start=1):
        place = f"[[schedule]] {number} ({schedule.id}) "
        for word in schedule.entities:
            if not _matches(word, project):
                yield f"{place}entities: {_no_entity(word, project)}"
        refused = _refused(schedule, settings.pipeline.entities, project)
        if refused:
            more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
            key = "cascade" if schedule.cascade else "entities"
            yield f"{place}{key}: would run {found(refused[0])}{more}, which [pipeline] entities doesn't allow"


def _refused(schedule: Schedule, allowed: tuple[str, ...], project: Project) -> list[str]:
    """What a shared schedule would ask for and this agent wouldn't run."""
    if not schedule.shared or not allowed:
        return []
    chosen = {name for word in schedule.entities for name in _matches(word, project)}
    if schedule.cascade:
        chosen |= downstream(project, chosen)
    return sorted(name for name in chosen if not any(fnmatchcase(name, glob) for glob in allowed))


def _matches(word: str, project: Project) -> set[str]:
    if _GLOB.isdisjoint(word):
        return {word} & project.entities.keys()
    return {name for name in project.entities if fnmatchcase(name, word)}


def _no_entity(word: str, project: Project) -> str:
    if not _GLOB.isdisjoint(word):
        return f"{found(word)} matches no entity"
    return f"{found(word)} is no entity{did_you_mean(word, project.entities)}"
