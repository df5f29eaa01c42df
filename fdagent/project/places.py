"""Where an environment's tables, logs, control records and source files lie.

Guarantees: the paths of a local environment, all under `<project>/.local/<environment>/` except the source files; no
two entities share one. Makes no folder and looks at none.
"""

from dataclasses import dataclass
from pathlib import Path

from fdagent.errors import NotFound, UsageError
from fdagent.project.layers import META
from fdagent.project.model import Entity, Environment, Project
from fdagent.project.problems import nearest, printable
from fdagent.project.references import quarantine_table
from fdagent.project.source import expand

LOCAL_FOLDER = ".local"
CONTROL_FOLDER = "_control"
RUN_LOG, CHECK_LOG = "run_log", "check_log"


def environment_named(project: Project, name: str) -> Environment:
    """The environment of that name.

    Raises:
        NotFound: There is none; the sentence names the nearest one.
    """
    environment = project.environments.get(name)
    if environment is None:
        meant = nearest(name, project.environments)
        raise NotFound(
            f"There is no environment `{printable(name)}` in {project.root}.",
            fix=f"Did you mean `{meant}`?" if meant else f"Known: {', '.join(sorted(project.environments))}.",
        )
    return environment


def require_local(environment: Environment) -> None:
    """Refuse an environment whose tables this version can't write.

    Raises:
        UsageError: Its target is Fabric.
    """
    if environment.target != "local":
        raise UsageError(
            f'Environment `{environment.name}` has `target = "{environment.target}"`, which this version can\'t run.',
            fix='Use an environment with `target = "local"`.',
        )


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one environment of one project.

    Raises:
        UsageError: The environment is not a local one.
    """

    project: Project
    environment: Environment

    def __post_init__(self) -> None:
        require_local(self.environment)

    @property
    def folder(self) -> Path:
        """All that this environment has on this machine, but its source files."""
        return self.project.root / LOCAL_FOLDER / self.environment.name

    @property
    def control(self) -> Path:
        """The control root: the environment's shared records."""
        return self.folder / CONTROL_FOLDER

    def table(self, entity: Entity) -> Path:
        """The folder of an entity's Delta table."""
        return self.folder / entity.layer.lakehouse / "Tables" / (entity.layer.schema or "") / entity.table

    def meta_table(self, name: str) -> Path:
        """The folder of a Delta table in LH_Meta, such as `run_log`."""
        return self.folder / META / "Tables" / name

    @property
    def run_log(self) -> Path:
        """The Delta table with one row per table and run."""
        return self.meta_table(RUN_LOG)

    @property
    def check_log(self) -> Path:
        """The Delta table with each check's result."""
        return self.meta_table(CHECK_LOG)

    def quarantine(self, entity: Entity) -> Path:
        """The Delta table that keeps the rows an entity refused."""
        return self.meta_table(quarantine_table(entity))

    def source_files(self, entity: Entity) -> str:
        """The absolute glob of an entity's source files. The project's own path has no sign of one: see `load.py`.

        Raises:
            ValueError: The entity reads other entities; a caller's mistake.
        """
        if entity.files is None:
            raise ValueError(f"{entity.name} has no source files")
        pattern = expand(entity.files.files, self.environment.vars)
        return str(self.project.root / pattern)
