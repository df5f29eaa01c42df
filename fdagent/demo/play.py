"""The demo, played: unpack, promote, enqueue, run, and show the tables, the run log and where everything lies.

Guarantees: uses nothing but what a user's own commands use; a second run loads nothing twice and says so. Writes only
into its folder.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fdagent.cli import view
from fdagent.cli.job import put
from fdagent.cli.run import work
from fdagent.cli.where import Where, where
from fdagent.demo.unpack import unpack
from fdagent.engine import runlog
from fdagent.engine.tables.delta import DeltaTablePort
from fdagent.fleet.release import open_control, promote, promoted_version
from fdagent.project import graph
from fdagent.project.load import load_project
from fdagent.project.model import Project
from fdagent.project.places import Places, environment_named
from fdagent.system import SystemClock, SystemIds
from models.run import RunRow

ENV = "dev"
SHOWN_ROWS = 40


def play(folder: Path) -> int:
    """Play it in a folder; the exit code of the run."""
    clock, ids = SystemClock(), SystemIds()
    unpack(folder)
    # The demo's queue lies with the demo, whatever home this machine's own agent has.
    place = replace(where(folder), home=folder.resolve() / ".local" / "agent")
    project = load_project(place.project)
    places = Places(project, environment_named(project, ENV))
    print(f"1. The metadata project in {place.project}: {len(project.entities)} tables in three layers.")
    store = open_control(places, clock=clock, ids=ids)
    shown = promoted_version(store)
    if shown != project.metadata_version:
        promote(store, project.metadata_version, shown=shown, git_commit="", by="demo", clock=clock, ids=ids)
    print(f"2. Promoted to {ENV}: metadata {project.metadata_version[:12]}…")
    job = put(place, ENV, (), cascade=False, backfill=False)
    print(f"3. Queued job {job.id}. Running it:")
    code = work(place, quiet=False)
    newest = runlog.read_rows(places, last=SHOWN_ROWS, clock=clock)
    rows = [row for row in reversed(newest) if row.job_id == job.id]
    _show_tables(project, places)
    _show_runs(rows)
    if rows and not any(row.rows_written or row.rows_deleted for row in rows):
        print("\nNothing was new: every file was taken before, so this run added nothing.")
    _show_where(place, places)
    return code


def _show_tables(project: Project, places: Places) -> None:
    clock = SystemClock()
    rows = []
    for name in graph.order(project):
        entity = project.entities[name]
        table = DeltaTablePort(places.table(entity), clock).open()
        kept = DeltaTablePort(places.quarantine(entity), clock).open()
        rows.append((name, f"{table.rows or 0:,}", view.number(kept.rows or 0), str(table.version), entity.description))
    columns = ("table", "rows", "quarantined", "version", "what it is")
    view.grid("Tables", columns, rows, right=("rows", "quarantined", "version"), cut=("what it is",))


def _show_runs(rows: Sequence[RunRow]) -> None:
    shown = [
        (
            row.entity,
            view.state(row.status),
            view.number(row.rows_read),
            view.number(row.rows_inserted),
            view.number(row.rows_updated),
            view.number(row.rows_quarantined),
            f"{row.duration_ms / 1000:.2f} s",
        )
        for row in rows
    ]
    columns = ("table", "status", "read", "inserted", "updated", "quarantined", "took")
    view.grid("The run log of this job", columns, shown, right=columns[2:])


def _show_where(place: Where, places: Places) -> None:
    print("\nWhere everything lies:")
    for what, path in {
        "tables": places.folder,
        "run log": places.run_log,
        "landing files": place.project / "landing",
        "queue": place.home,
    }.items():
        print(f"  {what:14} {path}")
    beside = Path(sys.executable).with_name("fdagent")
    command = "fdagent" if shutil.which("fdagent") or not beside.exists() else str(beside)
    print(f"\nLook around:  cd {place.project} && {command} status")
