"""`status` and what it can be asked: JSON, a search, a health check, a watch in a real terminal; and its two parsers agree."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdagent.cli import quick
from fdagent.cli.main import commands, run
from fdagent.daemon.home import LOCK, taken

KEYS = {
    "at", "agent", "home", "project", "live", "pid", "draining", "counts", "schedules", "unfinished", "finished", "warnings",
}  # fmt: skip
SECONDS = 30.0
posix = pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")


def test_the_json_has_the_same_keys_with_and_without_a_queue(home):
    assert set(home("status", "--json").json) == KEYS
    home.ended("a", "fail", error="It broke.")
    home.queued("b")
    found = home("status", "--json").json
    assert set(found) == KEYS
    assert found["counts"] == {"queued": 1, "failed": 1}
    assert [job["id"] for job in found["unfinished"]] == ["b"]
    assert [job["error"] for job in found["finished"]] == ["It broke."]
    (warned,) = found["warnings"]
    assert set(warned) == {"level", "kind", "sentence", "at", "times"}
    assert (warned["kind"], found["live"], found["pid"]) == ("no_agent", False, None)


# Search


@pytest.fixture
def stocked(home):
    home.ended("aaaa", "fail", error="The Größe of ORDERS is wrong.", entities=("silver.orders",))
    home.ended("bbbb", source="schedule:Nightly", env="prod")
    home.running("cccc")
    home.queued("dddd", entities=("gold.*",))
    return home


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("AAA", ["aaaa"]),
        ("silver.ORDERS", ["cccc", "aaaa"]),
        ("größe", ["aaaa"]),
        ("nightly", ["bbbb"]),
        ("prod", ["bbbb"]),
        ("it broke", ["cccc"]),
        ("gold.*", ["dddd"]),
        ("%", []),
        ("'; drop table job; --", []),
        ("", ["cccc", "dddd", "bbbb", "aaaa"]),
    ],
)
def test_a_search_finds_ids_tables_environments_sources_and_errors_in_any_case(stocked, text, ids):
    found = stocked("status", "--search", text, "--json").json
    assert [job["id"] for job in found["jobs"]] == ids
    assert found["more"] is False
    assert found["search"] == text
    shown = stocked("status", "--search", text).out
    assert all(job in shown for job in ids)
    assert ids or "No job holds" in shown


def test_a_search_is_bounded_and_says_so(home, monkeypatch):
    monkeypatch.setattr("fdagent.cli.snapshot.FOUND", 3)
    for number in range(5):
        home.queued(f"job{number}")
    found = home("status", "--search", "job", "--json").json
    assert ([job["id"] for job in found["jobs"]], found["more"]) == (["job0", "job1", "job2"], True)
    assert "There may be more" in home("status", "--search", "job").out


# Health


def test_a_home_without_an_agent_is_not_healthy(home):
    assert "No agent runs in" in home("status", "--health", code=1).out
    assert home("status", "--health", "--json", code=1).json == {"live": False, "pid": None, "home": str(home.path)}
    home.path.mkdir()
    (home.path / LOCK).touch()
    assert home("status", "--health", "--json", code=1).json["live"] is False, "its lock is free"


def test_a_home_with_a_live_agent_is_healthy(home):
    with taken(home.path, home.clock):
        assert f"runs (pid {os.getpid()})" in home("status", "--health").out
        assert home("status", "--health", "--json").json["pid"] == os.getpid()


def test_a_health_check_imports_neither_typer_nor_rich_nor_the_charts(home):
    code = (
        "import sys; sys.argv = ['fdagent', 'status', '--health']\n"
        "from fdagent.cli.main import fdagent\n"
        "try: fdagent()\n"
        "except SystemExit as end: print(end.code, sorted({name.split('.')[0] for name in sys.modules}))"
    )
    command = [sys.executable, "-P", "-c", code]
    said = subprocess.run(command, cwd=home.project, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    code, _, names = said.splitlines()[-1].partition(" ")
    assert code == "1"
    assert set(json.loads(names.replace("'", '"'))) & {"typer", "rich", "transitions", "pydantic", "dateutil"} == set()


# What goes together


@pytest.mark.parametrize(
    "words",
    [("--watch", "--health"), ("--watch", "--search", "x"), ("--health", "--search", "x"), ("--watch", "--json")],
    ids=" ".join,
)
def test_what_does_not_go_together_is_refused_in_a_sentence(home, words):
    assert "don't go together" in "".join((said := home("status", *words, code=2)).out + said.err)


def test_a_watch_that_is_piped_is_refused_with_what_to_do(home):
    said = home("status", "--watch", code=2)
    assert said.err == (
        "Error: --watch draws on a terminal, and this output goes elsewhere.\nLeave it out, or use --json for a program.\n"
    )


FLAGS = ["--watch", "-w", "--health", "--json", "--help", "-x", "--json=1", "--no-json", "-cw", "--"]
NAMES = ["--search", "--project", "-p", "--config", "-c", "--search=x", "-px"]
WORDS = st.sampled_from([*FLAGS, *NAMES, "status", "job", "x", "a b", ""])


@settings(max_examples=60, deadline=None)
@given(words=st.lists(WORDS, max_size=5))
def test_what_is_understood_without_typer_is_what_typer_understands(words):
    words = ["status", *words]
    look = quick.parsed(words)
    if look is None:
        return
    asked = []
    original = quick.answer
    import fdagent.cli.status as command

    command.answer = lambda given: asked.append(given) or 0
    try:
        assert run(commands(words), words) == 0
    finally:
        command.answer = original
    assert asked == [look]


def test_plain_words_are_understood_without_typer():
    assert quick.parsed(["status"]) == quick.Look()
    assert quick.parsed(["status", "--json", "-p", "here"]) == quick.Look(project=Path("here"), as_json=True)
    assert quick.parsed(["status", "--search", "x"]) == quick.Look(search="x")
    assert quick.parsed(["status", "--help"]) is None
    assert quick.parsed(["job", "x"]) is None
    assert quick.parsed([]) is None


# A real terminal


class Terminal:
    """A program in a pseudo-terminal of some size."""

    def __init__(self, command, folder, width, height) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**env, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.seen = ""

    def until(self, text) -> None:
        """Read until something has been shown."""
        end = time.monotonic() + SECONDS
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            self.read()

    def read(self) -> bool:
        try:
            part = os.read(self._ours, 65536)
        except BlockingIOError:
            time.sleep(0.02)
            return True
        except OSError:
            return False
        self.seen += part.decode()
        return bool(part)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        os.close(self._ours)


@posix
@pytest.mark.process
@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_a_watch_shows_what_comes_and_gives_the_terminal_back(home, ends):
    home.queued("a" * 12)
    terminal = Terminal([sys.executable, "-m", "fdagent", "status", "--watch"], home.project, 80, 24)
    try:
        terminal.until("a" * 12)
        assert "\x1b[?1049h" in terminal.seen, "on a page of its own"
        home.queued("b" * 12)
        terminal.until("b" * 12)
        terminal.process.send_signal(ends)
        terminal.until("\x1b[?1049l")
        assert terminal.process.wait(SECONDS) == 0
        while terminal.read():
            pass
        assert "Traceback" not in terminal.seen
        assert "\x1b[?25h" in terminal.seen, "the cursor is back"
    finally:
        terminal.close()


@posix
@pytest.mark.process
def test_on_a_terminal_there_are_colours_and_no_line_is_longer_than_it(home):
    home.ended("b" * 12, "fail", error="It broke. " * 30)
    terminal = Terminal([sys.executable, "-m", "fdagent", "status"], home.project, 80, 24)
    try:
        assert terminal.process.wait(SECONDS) == 0
        terminal.until("b" * 12)
        while terminal.read() and "It broke. It broke." not in terminal.seen:
            pass
        assert "\x1b[31mfailed" in terminal.seen
    finally:
        terminal.close()
