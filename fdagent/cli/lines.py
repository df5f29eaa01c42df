"""Lines that fit: columns, paragraphs, bars, times and spans in a frame of some width.

Guarantees: ids, states, environments and numbers are never cut; names are cut with an ellipsis where they must be, and
the reasons of the live page too; what data or errors say is never obeyed by the terminal.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from rich.cells import cell_len
from rich.text import Text

from fdagent.cli.view import MOST_PADDED, UNLIMITED
from fdagent.project.problems import printable
from models.times import DAY, lasted

INDENT = "  "
GAP = 2
LEAST = 12
"""What a column of names is given at least."""
ROOMY = 110
"""From this width on, times are written out."""
REASON_LINES = 2
"""Lines of a reason in the live page."""
WIDEST_TEXT = 120
"""A paragraph wider than this is hard to read."""
WEEK = 7 * DAY


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a page is drawn.

    `height`: of the live page, whose parts are cut to fit; None: all is shown. `blocks`: whether the output has the
    characters that bars are drawn with.
    """

    width: int
    height: int | None = None
    blocks: bool = True

    @property
    def live(self) -> bool:
        """Is it drawn again and again?"""
        return self.height is not None


def bar(counts: Mapping[str, int], cells: int, *, blocks: bool) -> Text:
    """A bar of so many cells, each count in its share of them."""
    marks = {
        "done": ("█", "#"),
        "failed": ("█", "x"),
        "other": ("█", "-"),
        "running": ("▓", ">"),
        "waiting": ("░", "."),
    }
    styles = {"done": "green", "failed": "red", "other": "yellow", "running": "cyan", "waiting": "dim"}
    line, total, passed, drawn = Text(), max(sum(counts.values()), 1), 0, 0
    for name, number in counts.items():
        passed += number
        end = round(passed * cells / total)
        line.append(marks[name][0 if blocks else 1] * (end - drawn), styles[name])
        drawn = end
    return line


def paragraph(text: str, frame: Frame, style: str, *, first: str = "", indent: str) -> list[Text]:
    """A sentence in lines that fit; in the live page no more than a few of them."""
    if not text:
        return []
    text, first = printable(text), first or indent
    if frame.width == UNLIMITED:
        return [Text(first + text, style)]
    lines = textwrap.wrap(
        text,
        max(min(frame.width, WIDEST_TEXT), LEAST + len(indent)),
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
        max_lines=REASON_LINES if frame.live else None,
        placeholder=" …",
    )
    return [Text(line, style) for line in lines]


def columns(
    head: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    frame: Frame,
    *,
    names: Sequence[int],
    below: Sequence[Sequence[Text]],
    optional: Sequence[int] = (),
) -> list[Text]:
    """Rows under a head, with what stands below each. Columns of names may be cut; optional ones go before that."""
    cells = [[cell.copy() if isinstance(cell, Text) else Text(printable(cell)) for cell in row] for row in rows]
    kept = [n for n in range(len(head)) if any(row[n].plain for row in cells)]

    def widths() -> dict[int, int]:
        return {n: max(cell_len(head[n]), *(row[n].cell_len for row in cells)) for n in kept}

    piped = frame.width == UNLIMITED

    def over() -> int:
        if piped:
            return 0  # nothing of it is cut
        return len(INDENT) + sum(width + GAP for width in widths().values()) - GAP - frame.width

    for n in optional:
        if n in kept and over() > 0:
            kept.remove(n)
    for n in names:
        if n in kept and (excess := over()) > 0:
            most = max(widths()[n] - excess, LEAST)
            for row in cells:
                row[n].truncate(most, overflow="ellipsis")
    most = MOST_PADDED if piped else frame.width
    wide = {n: min(width, most) for n, width in widths().items()}
    lines = [_line([Text(head[n], "dim") for n in kept], wide.values())]
    for row, more in zip(cells, below, strict=True):
        lines += [_line([row[n] for n in kept], wide.values()), *more]
    return lines


def _line(cells: Sequence[Text], widths: Iterable[int]) -> Text:
    line = Text(INDENT)
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (max(width - cell.cell_len, 0) + GAP))
    line.rstrip()
    return line


def clock(seconds: float) -> str:
    """The time of a day that needs no date."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")


def moment(seconds: float | None, now: float, frame: Frame, zone: tzinfo | None = None) -> str:
    """A time: written out where there is room, else as short as it is clear; in this machine's zone, or in `zone`."""
    if seconds is None:
        return ""
    at, today = (datetime.fromtimestamp(instant).astimezone(zone) for instant in (seconds, now))
    if frame.width >= ROOMY:
        return at.strftime("%Y-%m-%d %H:%M:%S")
    if at.date() == today.date():
        return at.strftime("%H:%M:%S")
    return at.strftime("%a %H:%M" if abs(seconds - now) < WEEK - DAY else "%Y-%m-%d")


def due(seconds: float, now: float, frame: Frame, zone: tzinfo | None = None) -> str:
    """When something is due, and how long that is."""
    if seconds <= now:
        return "now"
    at = moment(seconds, now, frame, zone)
    return at if seconds - now > WEEK else f"{at} (in {lasted(seconds - now)})"
