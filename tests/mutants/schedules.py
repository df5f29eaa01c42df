"""Drivers that are one schedule each, told by hand; a schedule that breaks raises."""

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path

from fdagent.engine.change import Change
from fdagent.engine.schema import Field
from fdagent.engine.tables.delta import DeltaTablePort
from fdagent.errors import Conflict
from fdagent.ports import Note
from tests.fakes import FakeClock
from tests.world import test_world_traces, test_world_whole
from tests.world.process import Violation


def a_real_table_that_moved_on() -> None:
    """Two commits on one version of a real Delta table: the second is a conflict, whatever the library would rather do."""
    with tempfile.TemporaryDirectory() as folder:
        port = DeltaTablePort(Path(folder) / "table", FakeClock())
        port.create((Field("id", "long"),))
        base = port.open()
        for key in ("first", "second"):
            try:
                port.commit(base, Change(base.version, marks="{}"), Note(key, key, key, "agent", "job", 1, "run"))
            except Conflict:
                return
    raise Violation("a commit landed on another version than the one it was made for")


def find(name: str) -> Callable[[], object] | None:
    """The schedule of that name: one of this module, or one that is a test of the world, in all its variants."""
    if name in globals() and name != "find":
        found: Callable[[], object] = globals()[name]
        return found
    test = getattr(test_world_traces, name, None) or getattr(test_world_whole, name, None)
    if test is None:
        return None
    marks = getattr(test, "pytestmark", [])
    given = [dict(zip([mark.args[0]], [value], strict=True)) for mark in marks for value in mark.args[1]]
    assert {*inspect.signature(test).parameters} == {key for one in given for key in one}, name
    return lambda: [test(**one) for one in given or [{}]]
