"""How requests look to a person.

Guarantees: nothing here decides or reads anything; a run that was taken over names both agents.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from fdagent.cli import view, words
from fdagent.cli.fleetview import said
from models.times import lasted, seconds


def requests(env: str, rows: Sequence[Mapping[str, Any]], problems: Sequence[tuple[str, str]], now: float) -> None:
    """An environment's requests, open ones first; `now` by the store's clock."""
    out = view.console()
    if not rows:
        out.print(f"No request lies in {env}.")
    else:
        shown = sorted(rows, key=lambda row: (row["state"] not in ("waiting", "accepted", "running"), row["id"]))
        columns = ("id", "state", "held by", "tables", "when", "why")
        view.grid(f"Requests of {env}", columns, [_cells(row, now) for row in shown], wrap=("tables", "why"))
    for key, problem in problems:
        out.print(Text(f"{said(key)} can't be read: {said(problem)}", "yellow"), soft_wrap=True)


def _cells(row: Mapping[str, Any], now: float) -> tuple[str | Text, ...]:
    state = view.state(row["state"])
    if row.get("offered"):
        state += Text(" (offered)", "yellow")
    tables = ", ".join(row["entities"]) if row["entities"] else "all" if row["request_file"] else ""
    why = words.why(row["state"], row.get("error"), row.get("reason"))
    return said(row["id"]), state, _held(row), said(tables), _when(row, now), said(why)


def _when(row: Mapping[str, Any], now: float) -> str:
    """When it ended; of an open one, when it expires."""
    if row.get("finished_at"):
        return f"ended {lasted(now - seconds(row['finished_at']))} ago"
    if not row["deadline"]:
        return ""
    left = seconds(row["deadline"]) - now
    return f"expires in {lasted(left)}" if left > 0 else f"overdue for {lasted(-left)}"


def _held(row: Mapping[str, Any]) -> str:
    """Each agent that held it, in order; the first hold of a run is followed by who took it over."""
    return said(" → ".join(row.get("agents") or []))
