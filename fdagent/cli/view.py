"""How jobs, tables and runs look to a person: one place for words, colours and columns.

Guarantees: nothing here decides or reads anything; colours go away when the output is not a terminal; text from data
or errors is never taken for markup. On a narrow terminal no name, id or number is broken or lost: a table whose columns
don't fit is printed as a block of lines for each row.
"""

import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fdagent.cli.words import reason
from fdagent.project.problems import printable
from models.job import Job
from models.times import lasted

if TYPE_CHECKING:
    from rich.table import Table

    from models.run import RunRow

STYLES = {
    "succeeded": "green",
    "no_change": "green",
    "already_done": "green",
    "running": "cyan",
    "queued": "yellow",
    "skipped": "yellow",
    "cancelled": "yellow",
    "failed": "red",
    "dead": "red",
    "alive": "green",
    "late": "yellow",
    "lost": "red",
    "accepted": "cyan",
    "waiting": "yellow",
    "expired": "red",
    "missed": "red",
    "rejected": "red",
}
UNLIMITED = 500
"""Width of what is piped: nothing of it is cut."""
MOST_PADDED = 60
"""Widest that a column of a piped table is made for its longest text: the rest of such a row only begins further on."""
GAP = 2
LEAST_TEXT = 16
"""What a column of free text is given at least; less would be a word a line."""


def console() -> Console:
    """The terminal; wide when piped, so that no column is cut."""
    out = Console(highlight=False, markup=False, emoji=False)
    return out if out.is_terminal else Console(highlight=False, markup=False, emoji=False, width=UNLIMITED)


def grid(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    cut: Sequence[str] = (),
    wrap: Sequence[str] = (),
) -> None:
    """Print a table; a column that is empty in each row is left out.

    Args:
        title: Stands above it.
        columns: Their names.
        rows: One cell a column.
        right: The columns of numbers.
        cut: Columns of text that may be cut short.
        wrap: Columns of text that may go on in the next line.
    """
    out, cells = console(), [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    kept = [number for number, _ in enumerate(columns) if any(row[number].plain for row in cells)]
    columns, cells = [columns[number] for number in kept], [[row[number] for number in kept] for row in cells]
    widest = [max(cell_len(cell.plain) for cell in column) for column in zip(map(Text, columns), *cells, strict=True)]
    free = [width for name, width in zip(columns, widest, strict=True) if name in (*cut, *wrap)]
    each = (out.width + GAP - sum(width + GAP for width in widest) + sum(free)) // max(len(free), 1)
    out.print(Text(f"\n{title}", "bold"))
    if not out.is_terminal:
        _lines(out, columns, cells, right)
        return
    if each < max((min(width, LEAST_TEXT) for width in free), default=0):
        _blocks(out, columns, cells)
        return
    for name, *column in zip(columns, *cells, strict=True):
        for cell in column if name in cut else ():
            cell.truncate(each, overflow="ellipsis")
    out.print(_table(columns, cells, right, (*cut, *wrap)))


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[Text]], right: Sequence[str], free: Sequence[str]
) -> "Table":
    from rich import box
    from rich.table import Table

    # SIMPLE_HEAD puts one space of the gap between two columns by itself.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name not in free)
    for row in rows:
        table.add_row(*row)
    return table


def _lines(out: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]], right: Sequence[str]) -> None:
    """A line for each row, whole, for what reads lines."""
    head = [Text(name) for name in columns]
    table = [head, *rows]
    widths = [min(max(row[n].cell_len for row in table), MOST_PADDED) for n in range(len(columns))]
    for row in table:
        line = Text()
        for name, cell, width in zip(columns, row, widths, strict=True):
            space = " " * (width - cell.cell_len)
            line.append_text(Text(space) + cell if name in right else cell + Text(space)).append(" " * GAP)
        line.rstrip()
        out.print(line, soft_wrap=True)


def _blocks(out: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """A block of lines for each row, without its empty cells."""
    label = max(map(len, columns))
    for row in rows:
        style = "bold"
        for name, cell in zip(columns, row, strict=True):
            if cell.plain:
                out.print(Text.assemble((f"  {name:{label}}  ", style), cell), soft_wrap=True)
                style = ""
        out.print()


def sentence(text: str, style: str = "", *, indent: int = 0) -> None:
    """Print a sentence; on a terminal its next lines are indented, too."""
    from rich.padding import Padding

    out, text = console(), printable(text)
    if out.is_terminal:
        out.print(Padding(Text(text, style), (0, 0, 0, indent), expand=False))
    else:
        out.print(Text(" " * indent + text, style), soft_wrap=True)


def hanging(first: Text, text: str) -> None:
    """Print a sentence behind something; on a terminal its next lines begin where it does."""
    out, text = console(), printable(text)
    lines = [text]
    if out.is_terminal:
        lines = textwrap.wrap(text, max(out.width - first.cell_len, LEAST_TEXT), break_on_hyphens=False) or [text]
    indent = Text(" " * first.cell_len)
    for at, line in enumerate(lines):
        out.print((indent if at else first) + Text(line), soft_wrap=True)


def state(name: str) -> Text:
    """A state in its colour."""
    return Text(name, STYLES.get(name.strip(), ""))


def number(value: int) -> str:
    """A number of a table, where nothing stands for none."""
    return f"{value:,}" if value else ""


def when(seconds: float | None) -> str:
    """A time as this machine's people read it."""
    return "" if seconds is None else datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def took(start: float | None, end: float | None) -> str:
    """How long it took."""
    return "" if start is None or end is None else lasted(end - start)


def what(job: Job) -> str:
    """What a job runs, in a few words."""
    names = ", ".join(job.entities) or "all"
    return names + (" and downstream" if job.cascade else "") + (" (backfill)" if job.backfill else "")


def attempt(job: Job) -> str:
    """Which attempt of how many."""
    return f"{job.attempt} of {job.max_attempts}"


def due(job: Job) -> str:
    """When a waiting job is due."""
    return when(job.not_before) if job.state == "queued" else ""


def job(found: Job) -> None:
    """One job whole."""
    out = console()
    out.print(Text.assemble(("Job ", "bold"), (found.id, "bold"), ": ", state(found.state)))
    lines = {
        "environment": found.env,
        "tables": what(found),
        "asked by": found.source,
        "attempt": attempt(found),
        "asked at": when(found.created_at),
        "due": due(found),
        "started": when(found.started_at),
        "ended": when(found.finished_at),
        "took": took(found.started_at, found.finished_at),
        "worker": found.worker,
        "asked to stop": reason(found.stop),
        "reason": reason(found.reason),
        "category": found.category,
        "run key": found.run_key,
    }
    for name, value in lines.items():
        if value:
            out.print(f"  {name:14} {value}", soft_wrap=True)
    if found.error:
        out.print("  error of its last attempt" if found.state == "cancelled" else "  error")
        sentence(found.error, "red" if found.finished_at else "yellow", indent=4)
    rows = [
        (
            name,
            state(at.get("state", "")),
            number(at.get("read") or 0),
            number(at.get("rows") or 0),
            number(at.get("quarantined") or 0),
            printable(at.get("error", "")),
        )
        for name, at in found.tables.items()
    ]
    if rows:
        counts = ("rows read", "rows written", "quarantined")
        grid("Its tables", ("table", "state", *counts, "why"), rows, right=counts, wrap=("why",))


class Worked:
    """Tells of work as it happens, and sums it up."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.failed = quiet, 0
        self._out = console()

    def job(self, found: Job, said: str) -> None:
        """A job began, ended or was recovered."""
        self.failed += said.startswith(("failed", "dead", "cancelled"))
        if self.quiet:
            return
        ended, _, why = said.partition(". ")
        self._out.print(Text.assemble((f"job {found.id} ", "bold"), ended), soft_wrap=True)
        if why:
            sentence(why, STYLES.get(ended, ""), indent=6)

    def row(self, row: "RunRow") -> None:
        """A table ended."""
        if self.quiet:
            return
        counts = {
            "read": row.rows_read,
            "inserted": row.rows_inserted,
            "updated": row.rows_updated,
            "deleted": row.rows_deleted,
            "quarantined": row.rows_quarantined,
        }
        figures = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
        seconds = f"{row.duration_ms / 1000:.2f} s"
        line = Text.assemble("  ", f"{row.entity:30} ", state(f"{row.status:12}"), f" {seconds:>8}  ", figures)
        line.rstrip()
        self._out.print(line, soft_wrap=True)
        if row.error:
            sentence(row.error, STYLES.get(row.status, ""), indent=6)

    def trouble(self, sentence: str) -> None:
        """Something a person should know."""
        self._out.print(Text(printable(sentence), "yellow"), soft_wrap=True)

    def end(self, attempts: int) -> None:
        """Nothing is left to do, after so many attempts."""
        if not self.quiet:
            self._out.print("Nothing is left to do." if attempts else "Nothing was waiting.")
