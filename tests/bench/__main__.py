"""Measure what the project promises about speed, each line beside its peer: `python -m tests.bench [name ...]`.

Prints a table and the peers' settings, and writes `.bench/results.json`, into which the lines of a run of only some
benches are merged. A bound that is missed is shown as missed and is no failure of the run; a measurement that could not
be taken is.
"""

import importlib
import json
import os
import platform
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.measure import BENCH, BenchError

RESULTS = BENCH / "results.json"
PREFIX = "bench_"


def main(asked: list[str]) -> int:
    """Run the benches that were asked for; all, if none was."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    known = sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))
    unknown = [name for name in asked if name not in known]
    if unknown:
        console.print(f"No bench is called {', '.join(unknown)}; there are: {', '.join(known)}.")
        return 2
    whole = not asked
    lines: list[dict[str, Any]] = []
    failed = []
    for name in asked or known:
        started = time.perf_counter()
        console.print(f"{name} ...")
        try:
            found = importlib.import_module(f"tests.bench.{PREFIX}{name}").run()
        except BenchError as err:
            console.print(f"{name} could not be measured: {err}", markup=False)
            failed.append(name)
            continue
        lines += found
        keep(lines, whole=whole and name == known[-1] and not failed)
        console.print(f"{name} took {time.perf_counter() - started:.0f} s")
    show(console, lines)
    return 1 if failed else 0


def keep(lines: list[dict[str, Any]], *, whole: bool) -> None:
    """Write the results; those of earlier runs are kept under their names unless this is a whole run."""
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and not whole else []
    merged = {entry["name"]: entry for entry in [*before, *lines]}
    BENCH.mkdir(exist_ok=True)
    made = RESULTS.with_suffix(".tmp")
    made.write_text(json.dumps(list(merged.values()), indent=1), encoding="utf-8")
    made.replace(RESULTS)


def show(console: Console, lines: list[dict[str, Any]]) -> None:
    """The table, then each note: the peers' settings and what else a reader must know."""
    table = Table(title=machine(), title_justify="left")
    table.add_column("what", overflow="fold")
    table.add_column("unit")
    for column in ("ours", "peer's", "ratio"):
        table.add_column(column, justify="right")
    for column in ("peer", "bound", "holds"):
        table.add_column(column)
    for entry in lines:
        table.add_row(
            entry["name"],
            entry["unit"],
            figure(entry["ours"]),
            figure(entry["peer_value"]),
            figure(entry["ratio"]),
            entry["peer"],
            entry["bound"],
            {True: "yes", False: "[red]missed[/red]", None: ""}[entry["holds"]],
        )
    console.print(table)
    for note in dict.fromkeys(entry["note"] for entry in lines if entry["note"]):
        console.print(f"- {note}", markup=False, highlight=False)
    bounded = [entry for entry in lines if entry["holds"] is not None]
    console.print(f"{sum(entry['holds'] for entry in bounded)} of {len(bounded)} bounds hold; {RESULTS} has every run.")


def machine() -> str:
    """What it was measured on."""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}; medians, sides alternating"
    )


def figure(value: float | None) -> str:
    """A number with three digits that say something."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
