"""A chart as a Graphviz graph, and as a picture where the `dot` program is installed.

Guarantees: `dot` needs nothing; `picture` either answers the whole picture or says in a sentence what is missing.
"""

import shutil
import subprocess
from typing import Any, ClassVar

from machines.chart import Chart
from models.errors import FdagentError
from models.step import ABSENT, write_of

PICTURES = ("svg", "png")
LONGEST_SECONDS = 60.0
BEGIN, END = "begin", "end"
"""Absence, where records begin and where they end."""


class NoPicture(FdagentError):
    """Graphviz is not installed, or could not draw."""

    exit_code: ClassVar[int] = 2


def dot(chart: Chart[Any, Any]) -> str:
    """The chart in Graphviz's language: one box an arrow between its states, so that no label lies on another.

    Arrows that differ only in where they start share a box; absence is drawn twice, where records begin and end.
    """
    final = [state for state in chart.states if state in chart.final]
    boxes: dict[tuple[Any, str], list[str]] = {}
    for _, arrow in chart.arrows():
        boxes.setdefault((arrow.row, arrow.dest), []).append(arrow.source)
    return "\n".join(
        [
            f'digraph "{chart.name}" {{',
            "    graph [rankdir=LR, nodesep=0.15, ranksep=0.5]",
            "    node [shape=box, style=rounded, fontname=Helvetica, fontsize=16, penwidth=2]",
            "    edge [arrowsize=0.7]",
            f'    {BEGIN} [label="{ABSENT}", shape=plaintext]; {END} [label="{ABSENT}", shape=plaintext]',
            *([f"    {{rank=same; {'; '.join(final)}}}"] if final else []),
            *(line for n, box in enumerate(boxes.items()) for line in _box(f"arrow{n}", *box)),
            "}\n",
        ]
    )


def _box(name: str, leads: tuple[Any, str], sources: list[str]) -> list[str]:
    """One box with its lines: from each state it starts in, to the one it leads to."""
    row, dest = leads
    writes = dict.fromkeys(write_of(source, dest).value for source in sources)
    lines = [f"{row.event} / {' or '.join(writes)}", *(guard.label for guard in row.guards)]
    text = "".join(f"{line}\\l" for line in lines)
    return [
        f'    {name} [label="{text}", style="", fontsize=10, penwidth=0.5, margin="0.08,0.03"]',
        *(f"    {BEGIN if source == ABSENT else source} -> {name} [dir=none]" for source in sources),
        f"    {name} -> {END if dest == ABSENT else dest}",
    ]


def picture(chart: Chart[Any, Any], form: str) -> bytes:
    """The chart as an image file.

    Args:
        chart: What to draw.
        form: `svg` or `png`.

    Raises:
        NoPicture: The program `dot` is not there, failed, or took longer than a minute.
    """
    if form not in PICTURES:
        raise NoPicture(f"A chart can't be drawn as {form!r}.", fix=f"Choose {' or '.join(PICTURES)}.")
    program = shutil.which("dot")
    if program is None:
        raise NoPicture(
            f"Drawing a chart as {form} needs the program `dot`, which is not installed.",
            fix="Install Graphviz (`apt install graphviz`, `winget install graphviz`), or ask for mermaid or dot.",
        )
    try:
        done = subprocess.run(
            [program, f"-T{form}"], input=dot(chart).encode(), capture_output=True, timeout=LONGEST_SECONDS, check=True
        )
    except subprocess.CalledProcessError as err:
        said = err.stderr.decode("utf-8", errors="replace").strip()[:200]
        raise NoPicture(f"`dot` could not draw the chart {chart.name}: {said}.") from err
    except subprocess.TimeoutExpired as err:
        raise NoPicture(f"`dot` did not draw the chart {chart.name} within {LONGEST_SECONDS:.0f} s.") from err
    return done.stdout
