"""How output looks on a terminal of a given width: no name, id or number is broken or lost, and every error is whole."""

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from fdagent.cli import view
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from models.job import Job, JobFacts, JobState

ERROR = "silver.orders: accepted(status) found 2 rows, which is more than none. Correct the rows, or the check."


@pytest.fixture
def terminal(monkeypatch):
    """A terminal whose width a test chooses; `text` is what it shows."""

    class Terminal:
        def __init__(self) -> None:
            self.file, self.width = io.StringIO(), 80
            monkeypatch.setattr(view, "console", self.console)

        def console(self) -> Console:
            return Console(
                file=self.file, width=self.width, force_terminal=True, color_system=None, highlight=False, markup=False
            )

        @property
        def lines(self) -> list[str]:
            return [line.rstrip() for line in self.file.getvalue().splitlines()]

        @property
        def text(self) -> str:
            return " ".join(self.file.getvalue().split())

    return Terminal()


@pytest.mark.parametrize("width", [30, 60, 80, 100, 140, 200])
def test_names_and_numbers_are_whole_at_any_width(terminal, width):
    terminal.width = width
    rows = [
        ("gold.on_time_by_carrier_day", Text("succeeded"), "18,233", "How punctual each carrier was on each day")
    ] * 3
    view.grid("Tables", ("table", "status", "read", "what it is"), rows, right=("read",), cut=("what it is",))
    assert terminal.text.count("gold.on_time_by_carrier_day") == 3
    assert terminal.text.count("succeeded") == 3
    assert terminal.text.count("18,233") == 3
    assert "How punctual" in terminal.text
    if width >= 80:
        assert max(map(len, terminal.lines)) <= width
        assert len(terminal.lines) == 7, "one line each"


def test_a_column_without_any_value_is_left_out(terminal):
    view.grid("T", ("name", "updated", "deleted"), [("a", "1", ""), ("b", "", "")])
    assert terminal.lines[2].split() == ["name", "updated"]


def test_a_row_that_does_not_fit_is_a_block_of_lines_without_its_empty_cells(terminal):
    terminal.width = 30
    view.grid("T", ("name", "id", "note"), [("a" * 20, "b" * 20, ""), ("c", "d", "e")])
    blocks = "\n".join(terminal.lines).split("\n\n")
    assert [block.split() for block in blocks[:2]] == [
        ["T", "name", "a" * 20, "id", "b" * 20],
        ["name", "c", "id", "d", "note", "e"],
    ]


def test_text_that_looks_like_markup_is_shown_as_it_is(terminal):
    view.grid("T", ("name",), [("[bold]x[/bold]",)])
    view.sentence("[red]no[/red]", indent=2)
    assert "[bold]x[/bold]" in terminal.text
    assert "[red]no[/red]" in terminal.text


@pytest.fixture
def queue(person):
    """The queue of a person's home."""
    jobs = Jobs(Database(person.project / ".local/agent"), clock=SystemClock(), ids=SystemIds())
    yield jobs
    jobs.database.close()


def put(jobs: Jobs, name: str, event: str = "", facts: JobFacts | None = None) -> Job:
    """A job that was claimed, and ended by this event if one is given."""
    jobs.enqueue(Job(name, JobState.QUEUED, "op", "dev", run_key=name, dedupe_key=name, max_attempts=3))
    job = jobs.claim(Worker("a/1", SystemProcesses().place(), os.getpid(), 0.0))
    assert job is not None
    if event:
        jobs.finish(job, event, facts or JobFacts())
    return job


@pytest.mark.parametrize("width", [50, 80, 140])
def test_why_a_job_failed_is_whole_on_the_status_page(person, queue, width):
    tables = {"bronze.a": {"state": "succeeded"}, "silver.a": {"state": "running"}, "gold.a": {"state": "waiting"}}
    put(queue, "a" * 12, "fail", JobFacts(error=ERROR, category="Data quality"))
    put(queue, "b" * 12, "succeed")
    put(queue, "c" * 12, "retry", JobFacts(error="It was busy.", retryable=True, wait_seconds=600))
    queue.progress(put(queue, "d" * 12), tables, "{}")
    lines = on_terminal(["status"], person.project, width)
    text = " ".join(" ".join(lines).split())
    assert ERROR in text
    assert "It was busy." in text
    assert "1 of 3 tables" in text
    assert "silver.a" in text
    assert text.count("b" * 12) == 1
    assert [line for line in lines if len(line) > max(width, 80) and "project" not in line] == []


def test_a_job_shows_each_tables_error(person, queue):
    tables = {"bronze.a": {"state": "succeeded", "rows": 12345}, "silver.a": {"state": "failed", "error": ERROR}}
    put(queue, "a" * 12, "fail", JobFacts(error=ERROR, tables=tables))
    lines = on_terminal(["job", "a"], person.project, 80)
    text = " ".join(" ".join(lines).split())
    assert text.count(ERROR.split(".")[1]) == 2
    assert "bronze.a succeeded 12,345" in text
    assert max(map(len, lines)) <= 80


def test_output_that_is_piped_has_no_colours_and_no_short_lines(person, queue):
    put(queue, "a" * 12, "fail", JobFacts(error=ERROR * 3))
    out = person("status").out
    assert ERROR * 3 in out
    assert "\x1b" not in out


def on_terminal(words: list[str], folder: Path, width: int) -> list[str]:
    """What a command shows on a terminal of so many columns, without the colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR"}}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fdagent", *words],
        cwd=folder, env={**env, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end was closed
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert process.wait(60) == 0
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).splitlines()]


def test_a_piped_table_is_a_whole_line_for_each_row_and_no_wider_than_what_stands_in_it(person, capsys):
    long, names = "why " * 300, ", ".join(f"silver.table_{n}" for n in range(60))
    view.grid(
        "T", ("id", "rows", "tables", "why"), [("a", "1", names, long), ("b", "22", "x", "short")], right=("rows",)
    )
    title, head, first, second = capsys.readouterr().out.strip().splitlines()
    assert (title, head.split()) == ("T", ["id", "rows", "tables", "why"])
    assert first == f"a      1  {names}  {long}".rstrip()
    assert second == f"b     22  {'x':{view.MOST_PADDED}}  short"
    assert head.index("why") == second.index("short")


def test_a_piped_status_is_no_wider_than_what_stands_in_it(person, queue):
    names = tuple(f"silver.table_{n}" for n in range(60))
    put(queue, "a" * 12, "succeed")
    queue.enqueue(Job("b" * 12, JobState.QUEUED, "op", "dev", run_key="b", dedupe_key="b", entities=names))
    queue.enqueue(Job("c" * 12, JobState.QUEUED, "op", "dev", run_key="c", dedupe_key="c"))
    lines = person("status").out.splitlines()
    assert ", ".join(names) in next(line for line in lines if "b" * 12 in line)
    assert len(next(line for line in lines if "c" * 12 in line)) < 150
