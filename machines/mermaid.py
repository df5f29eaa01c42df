"""A chart as Mermaid state diagrams: one line an arrow, which is one conditional write.

Guarantees: every arrow stands on exactly one line of `blocks`; absence is drawn as `[*]`; a line shows its event, its
write and its guards. A chart of many arrows is drawn state by state, after one picture of its events alone. Knows
nothing of pages.
"""

from collections.abc import Iterable
from typing import Any

from machines.chart import Arrow, Chart
from models.step import ABSENT

MOST_ARROWS = 16
"""What one picture can show with its guards and still be read."""
LABEL_WIDTH = 44
"""After how many characters a label goes on in the next line."""
HEAD = "stateDiagram-v2"


def mermaid(chart: Chart[Any, Any]) -> str:
    """The whole chart in one diagram."""
    return _diagram(chart, chart.arrows())


def blocks(chart: Chart[Any, Any]) -> list[tuple[str, str]]:
    """The chart as titled diagrams: one where it is small, else its events, then the arrows from each state.

    The final states share one, since nothing but their end leads out of them.
    """
    arrows = list(chart.arrows())
    if len(arrows) <= MOST_ARROWS:
        return [("", mermaid(chart))]
    groups: dict[str, list[tuple[str, Arrow]]] = {}
    for event, arrow in arrows:
        groups.setdefault("a final state" if arrow.source in chart.final else arrow.source, []).append((event, arrow))
    states = [ABSENT, *chart.states, "a final state"]
    parts = [(f"From {state}", _diagram(chart, groups[state])) for state in states if state in groups]
    return [("Its events", _overview(chart, arrows)), *parts]


def _diagram(chart: Chart[Any, Any], arrows: Iterable[tuple[str, Arrow]]) -> str:
    shown = list(arrows)
    lines = [f"    {_end(arrow.source)} --> {_end(arrow.dest)}: {_label(event, arrow)}" for event, arrow in shown]
    return "\n".join([HEAD, *lines, *_marked(chart, shown)])


def _overview(chart: Chart[Any, Any], arrows: list[tuple[str, Arrow]]) -> str:
    """One line a pair of states, with the events that lead from one to the other."""
    events: dict[tuple[str, str], list[str]] = {}
    for event, arrow in arrows:
        names = events.setdefault((arrow.source, arrow.dest), [])
        if event not in names:
            names.append(event)
    lines = [f"    {_end(source)} --> {_end(dest)}: {', '.join(names)}" for (source, dest), names in events.items()]
    return "\n".join([HEAD, "    direction LR", *lines, *_marked(chart, arrows)])


def _marked(chart: Chart[Any, Any], arrows: list[tuple[str, Arrow]]) -> list[str]:
    """The final states, marked as a group."""
    drawn = {state for _, arrow in arrows for state in (arrow.source, arrow.dest)}
    final = [state for state in chart.states if state in chart.final and state in drawn]
    return ["    classDef final stroke-width:3px", f"    class {','.join(final)} final"] if final else []


def _label(event: str, arrow: Arrow) -> str:
    lines = [f"{event} / {arrow.write.value}"]
    names = [guard.label for guard in arrow.guards]
    for number, name in enumerate(names):
        text = ("[" if number == 0 else "") + name + ("]" if number == len(names) - 1 else ",")
        if number == 0 or len(lines[-1]) + len(text) >= LABEL_WIDTH:
            lines.append(text)
        else:
            lines[-1] += " " + text
    return "<br/>".join(lines)


def _end(state: str) -> str:
    return "[*]" if state == ABSENT else state
