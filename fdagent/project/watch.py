"""The project folder as a running agent sees it: read again from time to time, unknown while it can't be read.

Guarantees: what is answered was checked whole, and is at most `SECONDS` old, or `SOON_SECONDS` where it is not the version
that is asked for: a promotion is seen within a poll. A folder that is being changed, or is broken
just now, is None: nothing is served from half a project.
"""

from dataclasses import dataclass, field
from pathlib import Path

from fdagent.errors import FdagentError
from fdagent.ports import Clock
from fdagent.project.load import load_project
from fdagent.project.model import Project

SECONDS = 60.0
SOON_SECONDS = 2.0


@dataclass(slots=True)
class ProjectWatch:
    """One project folder."""

    root: Path
    clock: Clock
    _project: Project | None = field(default=None)
    _read_at: float | None = None

    def project(self, expected: str = "") -> Project | None:
        """The project; None while it can't be loaded.

        Args:
            expected: The metadata version it should have by now, such as the promoted one; empty: any.
        """
        now = self.clock.elapsed()
        other = bool(expected) and (self._project is None or self._project.metadata_version != expected)
        if self._read_at is None or now - self._read_at >= (SOON_SECONDS if other else SECONDS):
            self._read_at = now
            try:
                self._project = load_project(self.root)
            except FdagentError:
                self._project = None
        return self._project

    def version(self) -> str | None:
        """Its metadata version; None while it can't be loaded."""
        project = self.project()
        return None if project is None else project.metadata_version
