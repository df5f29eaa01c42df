"""Runs the demo project's tables in order, without a queue, and reads what they hold."""

from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from fdagent.engine.runtable import RunContext, run_table
from fdagent.project import graph
from fdagent.project.load import load_project
from fdagent.project.model import Entity
from fdagent.project.places import Places
from fdagent.system import SystemClock, SystemIds
from models.run import RunRow

CLOCK, IDS = SystemClock(), SystemIds()


class Demo:
    """One unpacked demo: `run` runs every table once, under one run key."""

    def __init__(self, folder: Path) -> None:
        project = load_project(folder)
        self.landing = folder / "landing"
        self.places = Places(project, project.environments["dev"])
        self.entities: tuple[Entity, ...] = graph.select(project)

    def run(self) -> dict[str, RunRow]:
        run_key = IDS.new()
        return {
            entity.name: run_table(self.places.project, entity, self._context(run_key)).row for entity in self.entities
        }

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.places.table(self._entity(name)))

    def rows(self, name: str, *columns: str) -> list[dict[str, Any]]:
        return list(self.table(name).to_pyarrow_table(columns=list(columns) or None).to_pylist())

    def values(self, name: str, column: str) -> list[Any]:
        return list(self.table(name).to_pyarrow_table(columns=[column])[column].to_pylist())

    def counts(self) -> dict[str, int]:
        return {entity.name: self.table(entity.name).to_pyarrow_dataset().count_rows() for entity in self.entities}

    def quarantined(self, name: str) -> int:
        folder = self.places.quarantine(self._entity(name))
        return int(DeltaTable(folder).to_pyarrow_dataset().count_rows()) if folder.exists() else 0

    def _entity(self, name: str) -> Entity:
        return next(entity for entity in self.entities if entity.name == name)

    def _context(self, run_key: str) -> RunContext:
        return RunContext(
            environment=self.places.environment,
            places=self.places,
            run_key=run_key,
            clock=CLOCK,
            ids=IDS,
            still_mine=lambda: None,
        )
