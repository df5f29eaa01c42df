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
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Resolved:
    """The entities a request means; None when the project doesn't have one of them (`unknown`) or isn't known."""

    entities: tuple[str, ...] | None
    unknown: str = ""
    """Which of them it doesn't have, in a sentence."""


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
        except NotFound as err:
            return Resolved(None, unknown=str(err))
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

    def refusal(self, agent: str, request: Request, resolved: Resolved) -> str:
        """Why the agent of that name would not serve it, for the status of one that nobody serves; empty: it would."""
        if resolved.unknown:
            return f"The promoted version has not all that it names. {resolved.unknown}"
        pipeline, names = self.pipeline, resolved.entities or ()
        reasons = []
        if not pipeline.enabled or self.env not in pipeline.environments:
            reasons.append(f"it serves no request of {self.env}")
        if request.backfill is not None and not pipeline.allow_backfill:
            reasons.append("it allows no backfill ([pipeline] allow_backfill)")
        outside = [name for name in names if covers(self.globs, (name,)) is False]
        if outside:
            more = f" and {len(outside) - MOST_NAMED} more" if len(outside) > MOST_NAMED else ""
            reasons.append(f"it does not serve {', '.join(outside[:MOST_NAMED])}{more} ([pipeline] entities)")
        return f"No agent can serve it. {agent}, which looked last: {', and '.join(reasons)}." if reasons else ""
