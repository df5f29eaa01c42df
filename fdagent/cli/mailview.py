"""How requests look to a person.

Guarantees: nothing here decides or reads anything; a run that was taken over names both agents.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from fdagent.cli import view
from fdagent.cli.fleetview import said


def requests(env: str, rows: Sequence[Mapping[str, Any]], problems: Sequence[tuple[str, str]]) -> None:
    """An environment's requests, open ones first."""
    out = view.console()
    if not rows:
        out.print(f"No request lies in {env}.")
    else:
        shown = sorted(rows, key=lambda row: (row["state"] not in ("waiting", "accepted", "running"), row["id"]))
        columns = ("id", "state", "held by", "tables", "deadline", "why")
        view.grid(f"Requests of {env}", columns, [_cells(row) for row in shown])
    for key, problem in problems:
        out.print(Text(f"{said(key)} can't be read: {said(problem)}", "yellow"), soft_wrap=True)


def _cells(row: Mapping[str, Any]) -> tuple[str | Text, ...]:
    state = view.state(row["state"])
    if row.get("offered"):
        state += Text(" (offered)", "yellow")
    tables = ", ".join(row["entities"]) if row["entities"] else "all"
    why = row.get("error") or row.get("reason") or ""
    return said(row["id"]), state, _held(row), said(tables), row["deadline"] or "", said(why)


def _held(row: Mapping[str, Any]) -> str:
    """Each agent that held it, in order; the first hold of a run is followed by who took it over."""
    return said(" → ".join(row.get("agents") or []))
