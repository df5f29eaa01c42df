"""A metadata project in a temporary folder, its runs, and its tables read by delta-rs itself."""

import os
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from fakes import FakeClock, FakeIds

from fdagent.engine.runtable import Outcome, RunContext, run_table
from fdagent.project.load import load_project
from fdagent.project.places import Places
from models.run import RunRow, RunStatus

LAYERS = """
format = 1
[bronze]
rank = 1
lakehouse = "LH_Bronze"
[silver]
rank = 2
lakehouse = "LH_Silver"
"""
ENVIRONMENTS = """
format = 1
[dev]
target = "local"
vars = { landing = "landing" }
"""


@dataclass
class World:
    """A project, a clock, and run keys that count."""

    root: Path
    clock: FakeClock = field(default_factory=FakeClock)
    ids: FakeIds = field(default_factory=lambda: FakeIds("attempt"))
    runs: int = 0
    modified: int = 1_700_000_000

    def __post_init__(self) -> None:
        self.write("layers.toml", LAYERS)
        self.write("environments.toml", ENVIRONMENTS)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        return path

    def land(self, name: str, text: str | bytes, *, modified: int | None = None) -> Path:
        """A source file, one second younger than the one before."""
        path = self.write(f"landing/{name}", text)
        self.modified += 1
        moment = self.modified if modified is None else modified
        os.utime(path, (moment, moment))
        return path

    def entity(self, name: str, toml: str) -> None:
        layer, table = name.split(".")
        self.write(f"entities/{layer}/{table}.toml", toml)

    def csv_entity(
        self, name: str = "bronze.t", *, mode: str = "append", take: str = "new", more: str = "", csv: str = ""
    ) -> None:
        self.entity(
            name,
            f'[source]\nfiles = "{{landing}}/*.csv"\ntake = "{take}"\n{csv}\n[load]\nmode = "{mode}"\n{more}',
        )

    @property
    def project(self):
        return load_project(self.root)

    @property
    def places(self) -> Places:
        project = self.project
        return Places(project, project.environments["dev"])

    def context(self, run_key: str = "", **values: object) -> RunContext:
        self.runs += 1
        self.clock.now += 60
        project = self.project
        environment = project.environments["dev"]
        return RunContext(
            **{
                "environment": environment,
                "places": Places(project, environment),
                "run_key": run_key or f"run-{self.runs}",
                "clock": self.clock,
                "ids": self.ids,
                "still_mine": lambda: None,
                "agent": "agent-1",
                "job_id": f"job-{self.runs}",
                **values,
            }
        )

    def outcome(self, name: str, run_key: str = "", **values: object) -> Outcome:
        project = self.project
        return run_table(project, project.entities[name], self.context(run_key, **values))

    def run(self, name: str, run_key: str = "", **values: object) -> RunRow:
        """A run that must not fail."""
        row = self.outcome(name, run_key, **values).row
        assert row.status is not RunStatus.FAILED, row.error
        return row

    def fails(self, name: str, run_key: str = "", **values: object) -> str:
        """A run that must fail; what it says."""
        outcome = self.outcome(name, run_key, **values)
        assert outcome.row.status is RunStatus.FAILED
        assert "Error: " not in outcome.row.error.split(" ")[0], outcome.row.error
        return outcome.row.error

    def folder(self, name: str) -> Path:
        return self.places.table(self.project.entities[name])

    def delta(self, name: str) -> DeltaTable:
        return DeltaTable(str(self.folder(name)))

    def rows(self, name: str, *columns: str) -> list[tuple]:
        """The table's rows as delta-rs reads them, sorted as text; without `_file` and `_loaded_at` unless named."""
        return rows_of(self.delta(name), *columns)

    def quarantine(self, name: str, *columns: str) -> list[tuple]:
        folder = self.places.quarantine(self.project.entities[name])
        if not folder.exists():
            return []
        return rows_of(DeltaTable(str(folder)), *(columns or ("file", "line", "reason")))

    def orphans(self, name: str) -> set[str]:
        """Data files that the newest version does not refer to, removed ones aside."""
        folder = self.folder(name)
        there = {path.name for path in folder.glob("*.parquet")}
        known: set[str] = set()
        table = self.delta(name)
        for version in range(table.version() + 1):
            known |= {Path(uri).name for uri in DeltaTable(str(folder), version=version).file_uris()}
        return there - known


def rows_of(table: DeltaTable, *columns: str) -> list[tuple]:
    found = table.to_pyarrow_table()
    names = columns or [name for name in found.column_names if name not in ("_file", "_loaded_at")]
    values = [found.column(name).to_pylist() for name in names]
    return sorted(zip(*values, strict=True), key=lambda row: tuple(map(str, row)))


def add_file(folder: Path, rows, *, stats: str) -> None:
    """Commit one more Parquet file as another writer would, with these statistics."""
    name = f"foreign-{len(list(folder.iterdir()))}.parquet"
    pq.write_table(rows, folder / name)
    table = DeltaTable(str(folder))
    action = AddAction(name, (folder / name).stat().st_size, {}, 0, True, stats)
    table.create_write_transaction([action], "append", table.schema())
