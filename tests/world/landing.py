"""Duties and properties of the table commit (P8), over the production landing loop.

A run key's effect is a row named after it; beside it each run takes the source rows that the table's marks don't hold
yet. So a doubled effect, a source row taken twice, a lost row and a missing file each show in the table itself.
"""

from collections.abc import Callable
from typing import Any

from fdagent.engine.landing import AlreadyDone, Landed, land
from fdagent.ports import Note

from .process import Duty, Me, Violation
from .scope import Monitor
from .state import State
from .tables import Pin, Rows

SOURCE = frozenset({"source1"})


def lands(
    run_key: str, table: str = "t", *, merge: bool = False, still_mine: Callable[[Me], None] | None = None
) -> Duty:
    """Land one run key's change of a table."""

    def duty(me: Me) -> None:
        landing(me, run_key, table, merge=merge, still_mine=still_mine)

    duty.__name__ = f"land_{run_key}"
    return duty


def landing(
    me: Me, run_key: str, table: str = "t", *, merge: bool = False, still_mine: Callable[[Me], None] | None = None
) -> None:
    """Land it, and remember that it is done; what the landing raises passes through."""
    port = me.table(table)

    def compute(snapshot: Pin, attempt_id: str) -> Rows:
        port.put(attempt_id)
        rows = (run_key, *sorted(SOURCE - snapshot.taken))
        return Rows((*snapshot.rows, *rows) if merge else rows, (attempt_id,), SOURCE, not merge)

    def keeps(snapshot: Pin, change: Rows) -> Rows | None:
        return change if set(change.rows).isdisjoint(snapshot.taken) else None

    answer = land(
        port,
        app_id=f"fdagent/{run_key}",
        note=lambda attempt_id: Note(f"fdagent/{run_key}", attempt_id, run_key, me.agent, "job", 1, "run"),
        compute=compute,
        keeps=keeps,
        still_mine=lambda: still_mine(me) if still_mine else None,
        clock=me.clock,
        ids=me.ids,
    )
    me.tell("done", table, run_key)
    if isinstance(answer, Landed):
        me.saw("landed")
    elif isinstance(answer, AlreadyDone):
        me.saw("already done" if answer.author else "already done, author unknown")


class OneEffect(Monitor):
    """P8: each effect and each source row is there once at most, nothing that was there is lost, every file of the
    newest version exists, and whoever said "done" is right."""

    def check(self, state: State) -> None:
        for name, log in state.tables.items():
            rows, files = log.newest.rows, log.newest.files
            twice = sorted({row for row in rows if rows.count(row) > 1})
            if twice:
                raise Violation(f"{', '.join(twice)} landed twice in {name}")
            if not files <= log.files:
                raise Violation(f"{name} refers to files that were removed: its readers fail")
            before = state.ghost.get(("rows", name), frozenset())
            if not before <= set(rows):
                raise Violation(f"{', '.join(sorted(before - set(rows)))} was in {name} and is lost")
            if len(before) != len(rows):
                state.ghost["rows", name] = frozenset(rows)

    def told(self, state: State, name: str, what: str, about: tuple[Any, ...]) -> None:
        if what == "done":
            table, run_key = about
            if run_key not in state.tables[table].newest.rows:
                raise Violation(f"{name} says that {run_key} landed in {table}, and it is not there")
