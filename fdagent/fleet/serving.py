"""What one agent may serve of one environment's mailbox, and what a request resolves to in the promoted project.

Guarantees: pure over the settings and the project as they are given; what can't be told is not served. What this agent
may not serve it leaves to those that may.
"""

from dataclasses import dataclass, field

from fdagent.config.schedules import Pipeline
from fdagent.errors import NotFound
from fdagent.project import graph
from fdagent.project.model import Project
from models.liveness import covers
from models.slot import Request

ALL = ("*",)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The entities a request means; None when the project doesn't have one of them (`unknown`) or isn't known."""

    entities: tuple[str, ...] | None
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Serving:
    """One agent's settings for one environment, with the project it has and the version that is promoted there."""

    env: str
    pipeline: Pipeline
    project: Project | None
    promoted: str
    _known: dict[tuple[tuple[str, ...], bool], Resolved] = field(default_factory=dict, compare=False, repr=False)
    """What was resolved before, of this very project."""

    @property
    def globs(self) -> tuple[str, ...]:
        """The entities it serves, all written as `*`."""
        return self.pipeline.entities or ALL

    @property
    def version_fits(self) -> bool:
        """The project folder is the promoted version."""
        return self.project is not None and bool(self.promoted) and self.project.metadata_version == self.promoted

    def resolve(self, request: Request) -> Resolved:
        """What the request means; nothing is said about another version than the promoted one."""
        if self.project is None or not self.version_fits:
            return Resolved(None)
        asked = (request.entities or (), bool(request.cascade))
        if asked not in self._known:
            self._known[asked] = self._resolve(self.project, *asked)
        return self._known[asked]

    @staticmethod
    def _resolve(project: Project, entities: tuple[str, ...], cascade: bool) -> Resolved:
        try:
            chosen = graph.select(project, entities, cascade=cascade)
        except NotFound:
            return Resolved(None, unknown=True)
        return Resolved(tuple(entity.name for entity in chosen))

    def may_serve(self, request: Request, resolved: Resolved) -> bool:
        """May this agent run it now?"""
        return self.could_serve(request, resolved) and self.version_fits and resolved.entities is not None

    def could_serve(self, request: Request, resolved: Resolved) -> bool:
        """May it by its settings, whatever version it has just now?"""
        return (
            self.pipeline.enabled
            and self.env in self.pipeline.environments
            and (self.pipeline.allow_backfill or request.backfill is None)
            and covers(self.globs, resolved.entities) is not False
        )
