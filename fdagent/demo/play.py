"""The demo, played: two agents share one folder, one is killed in the middle of a run, the other takes it over.

Guarantees: uses nothing but what a user's own commands use; a second play loads nothing twice and says so; ends by
itself, with every process it started. Writes only into its folder.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from fdagent.cli import view
from fdagent.demo.fleet import TAKEOVER_SECONDS, Fleet, has_ended, is_under_way
from fdagent.demo.screen import Screen
from fdagent.demo.unpack import unpack
from fdagent.engine import runlog
from fdagent.engine.tables.delta import DeltaTablePort
from fdagent.errors import GaveUp
from fdagent.fleet.asking import post_request
from fdagent.fleet.release import open_control, promote, promoted_version
from fdagent.ports import Clock, Ids
from fdagent.project import graph
from fdagent.project.load import load_project
from fdagent.project.model import Project
from fdagent.project.places import Places, environment_named
from fdagent.system import SystemClock, SystemIds
from models.run import RunRow
from models.slot import PREFIX, Request
from models.status import RequestState, Status

ENV = "dev"
SHOWN_ROWS = 80
TABLES_BEFORE_THE_KILL = 3
START_SECONDS, RUN_SECONDS, SLOT_SECONDS = 30.0, 60.0, 90.0
DEADLINE_SECONDS = 3600.0


def play(folder: Path) -> int:
    """Play it in a folder; 0 when the run that was taken over succeeded."""
    clock, ids = SystemClock(), SystemIds()
    unpack(folder)
    project = load_project(folder.resolve())
    places = Places(project, environment_named(project, ENV))
    print(f"The metadata project in {project.root}: {len(project.entities)} tables in three layers.")
    store = open_control(places, clock=clock, ids=ids)
    shown = promoted_version(store)
    if shown != project.metadata_version:
        promote(store, project.metadata_version, shown=shown, git_commit="", by="demo", clock=clock, ids=ids)
    print(f"Promoted to {ENV}: metadata {project.metadata_version[:12]}…")
    request_id = f"pipeline-{ids.new()[:6]}"
    fleet = Fleet(project.root, store, clock)
    screen = Screen(fleet, clock)
    try:
        with screen.shown():
            slot = _due_time(fleet, screen)
            ended = _takeover(fleet, screen, request_id, clock, ids)
    finally:
        fleet.stop()
    rows = _rows(places, {request_id, slot}, clock)
    _show_tables(project, places)
    _show_runs(rows)
    if not any(row.rows_written or row.rows_deleted for row in rows):
        print("\nNothing was new: every file was taken before, so this run added nothing.")
    _show_where(project.root, places)
    return 0 if ended.state is RequestState.SUCCEEDED else 1


def _takeover(fleet: Fleet, screen: Screen, request_id: str, clock: Clock, ids: Ids) -> Status:
    """A pipeline asks for everything; the agent that runs it is killed; the other one finishes it."""
    now = clock.wall()
    asked = Request(submitted_by="the demo's pipeline", submitted_at=now, deadline=now + DEADLINE_SECONDS)
    post_request(fleet.store, request_id, asked, clock=clock, ids=ids)
    screen.say(f"A pipeline asks for all tables: {request_id}.")
    first = None
    for _ in fleet.looks(RUN_SECONDS, "the request run"):
        screen.draw()
        first = fleet.status(request_id)
        if is_under_way(first, TABLES_BEFORE_THE_KILL) or has_ended(first):
            break
    holder = first.agent if first is not None and first.agent is not None else ""
    if first is None or has_ended(first) or holder not in fleet.alive():
        raise GaveUp("The run ended before its agent could be killed.", fix="Run the demo again.")
    pid = fleet.kill(holder)
    killed_at = clock.elapsed()
    screen.killed(holder)
    screen.say(f"kill -9 {pid}: {holder} is gone in the middle of the run.", "bold red")
    return _finished(fleet, screen, request_id, killed_at, clock)


def _finished(fleet: Fleet, screen: Screen, request_id: str, killed_at: float, clock: Clock) -> Status:
    taken = False
    for _ in fleet.looks(TAKEOVER_SECONDS + RUN_SECONDS, "the other agent finish the run"):
        screen.draw()
        status = fleet.status(request_id)
        if status is not None and status.taken_over_from is not None and not taken:
            taken = True
            after = f"{clock.elapsed() - killed_at:.1f} s after the kill (bound: {TAKEOVER_SECONDS} s)"
            screen.say(f"{status.agent} takes it over from {status.taken_over_from}, {after}.", "bold green")
        if status is not None and has_ended(status):
            break
    else:
        raise AssertionError("looks ends by raising")
    done = sum(table.state == "already_done" for table in status.tables or ())
    kept = f" {done} table(s) were found done." if done else ""
    screen.say(f"{request_id} {status.state} on {status.agent}.{kept}", "green")
    return status


def _due_time(fleet: Fleet, screen: Screen) -> str:
    """Both agents have the same shared schedule: a due time is one request and one run; the slot's id."""
    before = set(fleet.statuses())
    fleet.start()
    for _ in fleet.looks(START_SECONDS, "both agents announce themselves"):
        if len({record.name for record in fleet.agents() if str(record.state) == "running"}) == len(fleet.alive()):
            break
    screen.say("Two agents serve one folder. Nothing else is between them.")
    screen.say("Both have the schedule `weather`. A due time is one request, whoever posts it:")
    for _ in fleet.looks(SLOT_SECONDS, "a due time of the shared schedule run"):
        screen.draw()
        for name, status in fleet.statuses().items():
            if name.startswith(PREFIX) and name not in before and has_ended(status):
                screen.say(f"{name} {status.state} on {status.agent}.", "green")
                return name
    raise AssertionError("looks ends by raising")


def _rows(places: Places, requests: set[str], clock: Clock) -> list[RunRow]:
    """The run log's rows of these requests, oldest first."""
    newest = runlog.read_rows(places, last=SHOWN_ROWS, clock=clock)
    return [row for row in reversed(newest) if row.request_id in requests]


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
            row.worker,
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
    columns = ("worker", "table", "status", "read", "inserted", "updated", "quarantined", "took")
    view.grid("The run log of these two runs", columns, shown, right=columns[3:])


def _show_where(root: Path, places: Places) -> None:
    print("\nWhere everything lies:")
    for what, path in {
        "tables": places.folder,
        "run log": places.run_log,
        "landing files": root / "landing",
        "agents": root / ".local",
    }.items():
        print(f"  {what:14} {path}")
    beside = Path(sys.executable).with_name("fdagent")
    command = "fdagent" if shutil.which("fdagent") or not beside.exists() else str(beside)
    print(f"\nLook around:  cd {root} && {command} queue {ENV}")
