"""The page of `status`: one picture of a home, once or again and again.

Guarantees: each line fits the width, or in the one-shot page goes on in the next; every colour stands beside a word that
says the same; the live page fits the height.

Draws what it is given, and reads nothing itself but through `Sight`.
"""

import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.text import Text

from fdagent.cli.lines import INDENT, LEAST, Frame, bar, clock, columns, due, moment, paragraph
from fdagent.cli.snapshot import Sight, Snapshot, Warned
from fdagent.cli.view import STYLES, attempt, console, state, what
from fdagent.cli.words import why_job
from fdagent.errors import FdagentError
from fdagent.ports import Clock
from fdagent.project.problems import printable
from models.job import Job
from models.times import lasted

if TYPE_CHECKING:
    from fdagent.fleet.schedules import View

DRAWN_SECONDS = 1.0
READ_SECONDS = 10.0
"""How old what is shown may be when nothing seems to have changed: schedules become due, warnings pass."""
BAR = 24
TABLES_SHOWN, WAITING_SHOWN, SCHEDULES_SHOWN, WARNINGS_SHOWN = 4, 5, 6, 4
"""The most of each in the live page."""


def show(shot: Snapshot) -> None:
    """Print the page once."""
    out = console()
    for line in page(shot, Frame(out.width, None, _has_blocks(out))):
        out.print(line, soft_wrap=True)


def show_found(text: str, jobs: Sequence[Job], *, more: bool, now: float) -> None:
    """Print what a search found."""
    out = console()
    frame = Frame(out.width)
    named = printable(text)
    if not jobs:
        out.print(Text(f"No job holds {named!r}{' among the newest' if more else ''}."), soft_wrap=True)
        return
    for line in _jobs(f"Jobs that hold {named!r}", jobs, frame, now):
        out.print(line, soft_wrap=True)
    if more:
        out.print(Text("There may be more: only the newest are looked through and shown.", "dim"), soft_wrap=True)


def watch(sight: Sight, clock: Clock) -> None:
    """Draw the page each second until a person presses Ctrl-C; what is on the terminal comes back at the end."""
    from rich.live import Live

    out = console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    watching = Watching(sight, clock)
    try:
        with Live(console=out, screen=True, auto_refresh=False) as live:
            while True:
                live.update(Group(*watching.page(Frame(out.width, out.height, _has_blocks(out)))), refresh=True)
                clock.sleep(DRAWN_SECONDS)
    except KeyboardInterrupt:
        return


class Watching:
    """What the live page shows: read anew only when something changed or it has become old."""

    def __init__(self, sight: Sight, clock: Clock) -> None:
        self._sight, self._clock = sight, clock
        self._shot: Snapshot | None = None
        self._change: object = None
        self._read_at = 0.0
        self._trouble = ""

    def page(self, frame: Frame) -> list[Text]:
        """The page as it is now; what can't be read is said above what was read last."""
        try:
            self._look()
            self._trouble = ""
        except FdagentError as err:
            self._trouble = str(err)
        trouble = (
            [Text(printable(self._trouble), "bold red", no_wrap=True, overflow="ellipsis")] if self._trouble else []
        )
        if self._shot is None:
            return trouble
        height = (frame.height or 0) - len(trouble)
        return [*trouble, *page(self._shot, Frame(frame.width, height, frame.blocks), self._clock.wall())]

    def _look(self) -> None:
        change, at = self._sight.change(), self._clock.elapsed()
        if self._shot is None or change != self._change or at - self._read_at >= READ_SECONDS:
            self._shot, self._change, self._read_at = self._sight.look(), change, at


def page(shot: Snapshot, frame: Frame, now: float | None = None) -> list[Text]:
    """The lines of the page.

    Args:
        shot: What is shown.
        frame: Where.
        now: When it is drawn, where that is later than when it was read.
    """
    now = shot.now if now is None else now
    parts = [
        _head(shot, frame, now),
        _warnings(shot.warnings, frame),
        _running(shot.running, frame, now),
        _waiting(shot, frame, now),
        _schedules(shot.schedules, frame, now),
    ]
    lines = [line for part in parts for line in part]
    last = _jobs("Last jobs", shot.finished, frame, now) if shot.finished else []
    if frame.height is not None:
        lines, last = lines[: frame.height], last[: max(frame.height - len(lines), 0)]
        lines = [*lines, *last] if len(last) > 2 else lines
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return lines
    return [*lines, *last]


def _head(shot: Snapshot, frame: Frame, now: float) -> list[Text]:
    pid = f" (pid {shot.pid})" if shot.pid else ""
    if shot.pid is None:
        runs, style = "does not run", "yellow"
    elif shot.draining:
        runs, style = f"is stopping{pid}: it takes no new work", "yellow"
    else:
        runs, style = f"runs{pid}", "green"
    first = Text.assemble(("Agent ", "bold"), (shot.place.agent, "bold"), " ", (runs, style))
    if frame.live:
        first.append(" " * max(frame.width - first.cell_len - 8, 1) + clock(now), "dim")
    lines = [first, Text(f"project {shot.place.project} · home {shot.place.home}", "dim")]
    if shot.counts:
        return [
            *lines,
            Text(" · ").join(Text(f"{n:,} {name}", STYLES.get(name, "")) for name, n in shot.counts.items()),
        ]
    return [*lines, Text("The queue is empty. Ask for a run with `fdagent enqueue ENV`.")]


def _warnings(warnings: Sequence[Warned], frame: Frame) -> list[Text]:
    lines: list[Text] = []
    shown = warnings[:WARNINGS_SHOWN] if frame.live else warnings
    for warned in shown:
        style = "bold red" if warned.level == "error" else "yellow"
        at = "" if warned.at is None else f"{clock(warned.at)} "
        times = f" ({warned.times} times)" if warned.times > 1 else ""
        lines += paragraph(f"{at}{warned.sentence}{times}", frame, style, first="! ", indent="  ")
    if len(shown) < len(warnings):
        lines.append(Text(f"  and {len(warnings) - len(shown)} more warnings: `fdagent status` shows all", "yellow"))
    return [Text(), *lines] if lines else []


def _running(jobs: Sequence[Job], frame: Frame, now: float) -> list[Text]:
    lines: list[Text] = []
    for job in jobs:
        since = "" if job.started_at is None else f"for {lasted(now - job.started_at)}"
        stop = "asked to stop" if job.stop else ""
        more = ["running", job.env, what(job), f"attempt {attempt(job)}", since, stop]
        line = Text.assemble(INDENT, (job.id, "bold"))
        for text in filter(None, more):
            line.append("  ").append(text, STYLES.get(text, "yellow" if text == stop else ""))
        lines += [line, *_progress(job.tables, frame)]
    return [Text(), Text("Running", "bold"), *lines] if lines else []


def _progress(tables: Mapping[str, Any], frame: Frame) -> list[Text]:
    """A bar of the tables that ended, and each table that runs with its rows."""
    if not tables:
        return [Text(f"{INDENT}no table has begun", "dim")]
    counts = _ends(tables)
    ended = len(tables) - counts["running"] - counts["waiting"]
    line = Text(INDENT).append_text(bar(counts, min(BAR, max(frame.width - 50, 8)), blocks=frame.blocks))
    line.append(f"  {ended} of {len(tables)} tables")
    if counts["failed"]:
        line.append(f", {counts['failed']} failed", "red")
    now = [(name, at.get("rows", 0)) for name, at in tables.items() if at.get("state") == "running"]
    named = [Text.assemble((printable(name), "cyan"), f"  {rows:,} rows" if rows else "") for name, rows in now]
    if not named and counts["waiting"]:
        first = next(name for name, at in tables.items() if at.get("state") == "waiting")
        named = [Text.assemble("at ", (printable(first), "cyan"))]
    if len(named) == 1 and line.cell_len + named[0].cell_len + 5 <= frame.width:
        return [line.append("  ·  ").append_text(named[0])]
    shown = named[:TABLES_SHOWN] if frame.live else named
    return [line, *(Text(INDENT).append_text(one) for one in shown)]


def _ends(tables: Mapping[str, Any]) -> dict[str, int]:
    """How many tables are done, failed, ended otherwise, run, or wait."""
    counts = {"done": 0, "failed": 0, "other": 0, "running": 0, "waiting": 0}
    for at in tables.values():
        said = at.get("state")
        done = "done" if said in ("succeeded", "no_change", "already_done") else "other"
        counts[said if said in counts else done] += 1
    return counts


def _waiting(shot: Snapshot, frame: Frame, now: float) -> list[Text]:
    number = shot.counts.get("queued", 0)
    if not number:
        return []
    shown = shot.waiting[:WAITING_SHOWN] if frame.live else shot.waiting
    rows = [
        (
            job.id,
            job.env,
            what(job),
            f"attempt {job.attempt + 1} of {job.max_attempts}" if job.attempt else "",
            due(job.not_before, now, frame),
        )
        for job in shown
    ]
    below = [_reason(job, frame) for job in shown]
    lines = columns(("id", "env", "tables", "", "due"), rows, frame, names=(2,), optional=(3,), below=below)
    more = [Text(f"{INDENT}and {number - len(shown):,} more", "dim")] if number > len(shown) else []
    return [Text(), Text(f"Waiting ({number:,})", "bold"), *lines, *more]


def _schedules(views: "Sequence[View]", frame: Frame, now: float) -> list[Text]:
    if not views:
        return []
    from fdagent.fleet.due import zone_named
    from fdagent.fleet.schedules import times_of, zone_of

    shown = views[:SCHEDULES_SHOWN] if frame.live else views
    rows, below = [], []
    for view in shown:
        name = "" if view.problem else zone_of(view.schedule)
        zone = zone_named(name) if name else None
        last = "" if view.last is None else moment(view.last.due, now, frame, zone)
        waits = view.next_due is not None
        rows.append(
            (
                view.schedule.id,
                view.schedule.env,
                times_of(view.schedule).words,
                due(view.next_due, now, frame, zone)
                if view.next_due is not None
                else Text(_short(view.note), "yellow"),
                f"{last} {view.outcome}".strip(),
            )
        )
        below.append(paragraph(view.note, frame, "yellow", indent=INDENT * 2) if waits and view.note else [])
    lines = columns(("id", "env", "runs", "next due", "last due"), rows, frame, names=(), optional=(2,), below=below)
    more = [Text(f"{INDENT}and {len(views) - len(shown)} more", "dim")] if len(views) > len(shown) else []
    return [Text(), Text("Schedules", "bold"), *lines, *more]


def _short(note: str) -> str:
    """A note of a column: whole sentences stand among the warnings."""
    return note if len(note) <= 2 * LEAST else "not run, see above"


def _jobs(title: str, jobs: Sequence[Job], frame: Frame, now: float) -> list[Text]:
    rows = [
        (
            state(job.state),
            job.id,
            job.env,
            what(job),
            job.source,
            moment(job.finished_at or job.not_before, now, frame),
            "" if job.started_at is None or job.finished_at is None else lasted(job.finished_at - job.started_at),
        )
        for job in jobs
    ]
    below = [_reason(job, frame) for job in jobs]
    head = ("state", "id", "env", "tables", "asked by", "when", "took")
    return [Text(), Text(title, "bold"), *columns(head, rows, frame, names=(3, 4), optional=(4, 6), below=below)]


def _reason(job: Job, frame: Frame) -> list[Text]:
    """Why a job failed, or why it was put back."""
    style = "red" if job.state in ("failed", "dead") else "yellow"
    return paragraph(why_job(job), frame, style, indent=INDENT * 2)


def _has_blocks(out: Console) -> bool:
    return out.encoding.startswith("utf")
