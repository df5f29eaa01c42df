"""The demo's live screen: the agents, the requests, and what has happened so far.

Guarantees: on a terminal one picture that is drawn again and again, elsewhere a line for each thing that happens; both
from what the fleet's records say.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fdagent.cli import view
from fdagent.demo.fleet import Fleet
from fdagent.ports import Clock
from models.status import Status

DRAWN_EVERY_SECONDS = 0.25
KEPT_LINES = 12


class Screen:
    """Shows a fleet while the demo plays."""

    def __init__(self, fleet: Fleet, clock: Clock) -> None:
        self._fleet, self._clock = fleet, clock
        self._console = view.console()
        self._begun = clock.elapsed()
        self._lines: list[Text] = []
        self._killed: set[str] = set()
        self._drawn_at = 0.0
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it while a block runs; the last picture stays."""
        if not self._console.is_terminal:
            yield
            return
        live = Live(self._picture(), console=self._console, auto_refresh=False)
        with live:
            self._live = live
            try:
                yield
            finally:
                live.update(self._picture(), refresh=True)
                self._live = None

    def say(self, sentence: str, style: str = "") -> None:
        """Something happened."""
        line = Text.assemble((f"{self._clock.elapsed() - self._begun:5.1f} s  ", "dim"), (sentence, style))
        self._lines.append(line)
        if self._live is None:
            self._console.print(line, soft_wrap=True)
        self.draw(now=True)

    def killed(self, name: str) -> None:
        """An agent was killed: its record can't say so."""
        self._killed.add(name)

    def draw(self, *, now: bool = False) -> None:
        """Draw it again, from time to time."""
        at = self._clock.elapsed()
        if self._live is not None and (now or at - self._drawn_at >= DRAWN_EVERY_SECONDS):
            self._drawn_at = at
            self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        return Group(self._agents(), self._requests(), *self._lines[-KEPT_LINES:])

    def _agents(self) -> RenderableType:
        table = _table("Agents", "agent", "says", "pid", "runs")
        for record in self._fleet.agents():
            says = Text("killed", "bold red") if record.name in self._killed else view.state(str(record.state))
            runs = ", ".join(job.source or "" for job in record.running or ())
            table.add_row(record.name, says, str(record.pid), runs)
        return table

    def _requests(self) -> RenderableType:
        table = _table("Requests in the shared folder", "request", "state", "held by", "tables")
        statuses = self._fleet.statuses()
        for name in sorted(self._fleet.requests()):
            status = statuses.get(name)
            if status is None:
                table.add_row(name, Text("waiting", "yellow"), "", "")
            else:
                table.add_row(name, view.state(str(status.state)), " → ".join(status.holds), _progress(status))
        return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, min_width=60)
    for column in columns:
        table.add_column(column, style="", header_style="dim", no_wrap=True)
    return table


def _progress(status: Status) -> str:
    """A bar of the tables that are done, among all that the request asks for."""
    tables = status.tables or ()
    done = sum(table.state not in ("waiting", "running") for table in tables)
    now = next((table.entity for table in tables if table.state == "running"), "")
    total = max(len(status.entities or ()), len(tables))
    return f"{'█' * done}{'░' * (total - done)} {done}/{total} {now}" if total else ""
