"""A metadata project that real processes run: deliveries, jobs, and what its tables, quarantine and run log hold.

`Site` is the project that `fdagent init` writes, with one table more that appends by a watermark. Everything is read
with deltalake alone, so that no code of the engine says what the engine did.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from fdagent.cli.where import where
from fdagent.engine.runlog import read_rows
from fdagent.fleet.release import open_control, promote, promoted_version
from fdagent.project.load import load_project
from fdagent.project.places import Places
from fdagent.project.scaffold import write_scaffold
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from fdagent.system import SystemClock, SystemIds
from models.job import Job, JobState
from models.run import RunRow, RunStatus

LONGEST_SECONDS = 90
EVENTS = """
description = "Every state of every order, as it came"

[source]
entity = "bronze.orders"
watermark = "_loaded_at"

[columns]
order_id = { type = "integer" }
amount = { type = "decimal(18,2)" }

[load]
mode = "append"
"""
DONE = (RunStatus.SUCCEEDED, RunStatus.NO_CHANGE, RunStatus.ALREADY_DONE)
TIMES = ("_loaded_at", "quarantined_at", "run_id", "run_key", "attempt_id")
"""Columns that differ from run to run."""


def command(*words: str) -> list[str]:
    """A command line of fdagent."""
    return [sys.executable, "-P", "-m", "fdagent", *words]


@dataclass
class Site:
    """One project in a folder of its own."""

    root: Path
    delivered: int = 0
    jobs_asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        write_scaffold(self.root)
        (self.root / "landing/orders_2027-01-15.csv").unlink()

    def entity(self, name: str, toml: str) -> None:
        """Add or change an entity."""
        path = self.root / "entities" / f"{name.replace('.', '/')}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(toml)

    def promote(self) -> None:
        """Promote what is there."""
        store = open_control(self.places, clock=SystemClock(), ids=SystemIds())
        version = self.places.project.metadata_version
        shown = promoted_version(store)
        promote(store, version, shown=shown, git_commit="", by="test", clock=SystemClock(), ids=SystemIds())

    @property
    def places(self) -> Places:
        """Where its tables lie."""
        project = load_project(self.root)
        return Places(project, project.environments["dev"])

    def deliver(self) -> list[dict[str, str]]:
        """The next file of orders: new orders, a change of old ones, and rows that end in quarantine; its good rows.

        Bronze refuses the ragged row, silver the one without an amount.
        """
        n = self.delivered = self.delivered + 1
        day = f"2027-02-{n:02d}"
        rows = [
            {
                "order_id": f"{n}0{i}",
                "customer": f"C{i % 3}",
                "status": "new",
                "amount": f"{n}.{i}0",
                "updated_at": f"{day}T0{i}:00:00Z",
            }
            for i in range(4)
        ]
        rows += [{**rows[0], "order_id": f"{n - 1}01", "status": "paid", "updated_at": f"{day}T09:00:00Z"}]
        rows += [{**rows[0], "order_id": f"{n}09", "amount": ""}]
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows), f"{n}08,ragged"]
        path = self.root / "landing" / f"orders_{day}.csv"
        path.with_suffix(".part").write_text("\n".join(lines) + "\n")
        path.with_suffix(".part").rename(path)
        return rows

    def ask(self, *entities: str, attempts: int = 3) -> str:
        """Put a job into the queue; its id."""
        name = f"job{len(self.jobs_asked):03d}"
        job = Job(
            name, JobState.QUEUED, "op", "dev", run_key=name, dedupe_key=name, entities=entities, max_attempts=attempts
        )
        with self.queue() as jobs:
            assert isinstance(jobs.enqueue(job), Job)
        self.jobs_asked.append(name)
        return name

    @contextlib.contextmanager
    def queue(self) -> Iterator[Jobs]:
        """The queue, for as long as a block."""
        database = Database(where(self.root).home)
        try:
            yield Jobs(database, clock=SystemClock(), ids=SystemIds())
        finally:
            database.close()

    def start(self) -> "subprocess.Popen[str]":
        """`fdagent run --until-idle` as a process of its own."""
        return subprocess.Popen(
            command("run", "--until-idle", "--project", str(self.root)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self) -> str:
        """The same, to its end, which must be a good one; what it said."""
        process = self.start()
        out, err = process.communicate(timeout=LONGEST_SECONDS)
        assert (process.returncode, err) == (0, ""), out + err
        return out

    def job(self, job_id: str) -> Job:
        """A job as the queue has it."""
        with self.queue() as jobs:
            found = jobs.get(job_id)
        assert found is not None
        return found

    def done(self, job_id: str) -> list[str]:
        """The tables that a job has done."""
        tables = self.job(job_id).tables
        return sorted(name for name, at in tables.items() if at["state"] in DONE)

    def rows(self, lakehouse: str, table: str, *, less: Sequence[str] = TIMES) -> list[str]:
        """A table's rows as JSON texts, sorted; none when there is no table."""
        return rows_of(self.root / ".local/dev" / lakehouse / "Tables" / table, less)

    def tables(self) -> dict[str, list[str]]:
        """Every table of the project's entities, and every quarantine."""
        places = self.places
        folders = {name: places.table(entity) for name, entity in places.project.entities.items()}
        folders |= {
            f"quarantine of {name}": places.quarantine(entity) for name, entity in places.project.entities.items()
        }
        return {name: rows_of(folder, TIMES) for name, folder in folders.items()}

    def log(self) -> list[RunRow]:
        """The run log, oldest first."""
        return list(reversed(read_rows(self.places, last=10_000, clock=SystemClock())))

    def unflushed(self) -> int:
        """Run-log rows that are still in the queue."""
        with self.queue() as jobs:
            return int(jobs.database.rows("select count(*) as n from run_row")[0]["n"])


def rows_of(folder: Path, less: Sequence[str] = ()) -> list[str]:
    """A Delta table's rows as JSON texts, sorted, less some columns; none when there is no table."""
    if not (folder / "_delta_log").is_dir():
        return []
    found = DeltaTable(str(folder)).to_pyarrow_table()
    kept: list[dict[str, Any]] = found.select([name for name in found.column_names if name not in less]).to_pylist()
    return sorted(json.dumps(row, default=str) for row in kept)
