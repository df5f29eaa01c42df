"""The pipes between a daemon and a worker, from both ends: orders, wishes, events, and the end of either."""

import io
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace
from pathlib import Path

import psutil
import pytest
from daemon_kit import until

from fdagent.work import process, supervisor
from fdagent.work.news import News
from fdagent.work.process import ORPHANED, STOP, Daemon, Orders
from fdagent.work.supervisor import LAST_WORDS_SECONDS, Supervisor

ORDERS = Orders(
    home="/home",
    label="etl-01/1",
    agent="etl-01",
    instance="i",
    host="h",
    project="/project",
    news=News(("dev", "pröd"), {"dev": {"silver.orders": "op1"}}),
    memory_limit="",
    table_lease_seconds=300,
    backoff_seconds=60,
    max_backoff_seconds=900,
    idle_seconds=60,
)


class Pipe:
    """The reading end of a pipe as text, and the descriptor to write to."""

    def __init__(self) -> None:
        read, self.write = os.pipe()
        self.reader = os.fdopen(read, encoding="utf-8")

    def say(self, line: str) -> None:
        os.write(self.write, f"{line}\n".encode())

    def end(self) -> None:
        write, self.write = self.write, -1
        if write >= 0:
            os.close(write)


@pytest.fixture
def wishes():
    pipe = Pipe()
    yield pipe
    pipe.end()
    pipe.reader.close()


def test_orders_arrive_as_they_were_given():
    line = ORDERS.to_line()
    assert line.endswith("\n")
    assert "\n" not in line[:-1]
    assert Orders.from_line(line) == ORDERS


@pytest.mark.parametrize("name", [field.name for field in fields(Orders)])
def test_orders_of_another_version_are_refused_and_not_guessed(name):
    values = json.loads(ORDERS.to_line())
    del values[name]
    with pytest.raises((TypeError, KeyError)):
        Orders.from_line(json.dumps(values))


def test_a_stop_asks_for_no_more_work_and_the_daemon_is_still_there(wishes):
    daemon = Daemon(wishes.reader, io.StringIO(), end=lambda _code: None)
    daemon.listen()
    assert not daemon.stopping()
    wishes.say("something of a later version")
    wishes.say(STOP)
    until(daemon.stopping, "it heard the stop")
    assert not daemon.orphaned()
    wishes.end()
    until(daemon.orphaned, "it heard the end")


@pytest.mark.parametrize(
    "other",
    [
        "something of a later version",
        "{}",
        "[]",
        "7",
        '{"envs": 1, "left": {}}',
        '{"envs": [], "left": {"dev": 1}}',
        '{"envs',
    ],
)
def test_news_replace_what_was_known_and_what_is_no_news_changes_nothing(wishes, other):
    daemon = Daemon(wishes.reader, io.StringIO(), end=lambda _code: None, news=News(("dev",)))
    daemon.listen()
    news = News(("dev", "pröd"), {"dev": {"silver.orders": "op1"}})
    wishes.say(news.to_line().rstrip("\n"))
    until(lambda: daemon.news == news, "it heard the news")
    wishes.say(other)
    wishes.say(STOP)
    until(daemon.stopping, "it heard the stop")
    assert daemon.news == news
    wishes.end()
    until(daemon.orphaned, "it heard the end")


def test_half_a_line_of_news_from_a_daemon_that_was_killed_hides_no_end(wishes):
    daemon = Daemon(wishes.reader, io.StringIO(), end=lambda _code: None)
    daemon.listen()
    os.write(wishes.write, News(("dev",)).to_line().encode()[:10])
    wishes.end()
    until(daemon.orphaned, "it heard the end")


def test_the_end_of_its_stdin_makes_a_worker_an_orphan_that_ends_itself_at_the_latest_after_a_while(
    wishes, monkeypatch
):
    monkeypatch.setattr(process, "ORPHAN_SECONDS", 0.05)
    ended = threading.Event()
    codes = []
    daemon = Daemon(wishes.reader, io.StringIO(), end=lambda code: codes.append(code) or ended.set())
    daemon.listen()
    wishes.end()
    until(lambda: daemon.orphaned() and daemon.stopping(), "it is an orphan")
    assert ended.wait(10)
    assert codes == [ORPHANED]


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), ValueError("I/O operation on closed file")])
def test_what_can_not_be_told_any_more_is_dropped(wishes, error):
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise error

    daemon = Daemon(wishes.reader, Gone())
    for _ in range(3):
        daemon.tell("job", message="nobody hears this")


def test_an_event_stands_on_a_line_of_its_own_whatever_was_printed_before(wishes):
    out = io.StringIO()
    daemon = Daemon(wishes.reader, out)
    print("half a line", end="", file=out)
    daemon.tell("job", message='with "quotes"\nand a new line')
    lines = [line for line in out.getvalue().splitlines() if line]
    assert lines[0] == "half a line"
    assert json.loads(lines[1]) == {"event": "job", "message": 'with "quotes"\nand a new line'}


@pytest.mark.process
@pytest.mark.parametrize("said", ["", "no json\n", '{"home": "/nowhere"}\n'])
def test_a_worker_without_proper_orders_ends(said):
    words = [sys.executable, "-P", "-m", "fdagent.work.worker"]
    ended = subprocess.run(words, input=said, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == (ORPHANED if not said else 1)


@pytest.mark.process
def test_a_worker_that_can_not_use_its_home_says_why_in_a_sentence(tmp_path):
    (tmp_path / "home").write_text("a file")
    orders = replace(ORDERS, home=str(tmp_path / "home"))
    words = [sys.executable, "-P", "-m", "fdagent.work.worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as worker:
        worker.stdin.write(orders.to_line())
        worker.stdin.flush()
        assert worker.wait(60) == 1
        (event,) = [json.loads(line) for line in worker.stdout if line.strip()]
        assert worker.stderr.read() == ""
    assert event["event"] == "trouble"
    assert "can't be used" in event["message"]


class Listened:
    """Events as they are heard."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict]] = []

    def __call__(self, label: str, event: dict) -> None:
        self.events.append((label, dict(event)))

    def words(self) -> list[str]:
        return [event.get("message", "") for _, event in self.events]


@pytest.fixture
def heard():
    return Listened()


@pytest.fixture
def staff(tmp_path, heard, monkeypatch):
    """A supervisor whose workers run a shell script: `staff(script)`."""
    made = Supervisor(lambda label: replace(ORDERS, label=label), heard)

    def with_script(script: str) -> Supervisor:
        path = tmp_path / "worker.sh"
        path.write_text(f"#!/bin/sh\nread -r orders\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(supervisor.sys, "executable", str(path))
        return made

    yield with_script
    for label in made.pids():
        made.kill(label)
    until(lambda: made.ended() is not None and not made.pids(), "all have ended")


def ended_of(crew: Supervisor):
    found = []
    until(lambda: found.extend(crew.ended()) or found, "a worker has ended")
    return found[0]


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its workers are shell scripts")


def test_events_are_heard_and_everything_else_is_passed_on_as_text(staff, heard):
    crew = staff(
        """echo '{"event": "job", "message": "said"}'
echo
echo 'free(): invalid pointer'
echo '[1, 2]'
echo '{"no": "event"}'
echo '{"event": 7}'
printf 'bytes \\377 that are no text\\n'
echo to stderr >&2
printf 'without an end'"""
    )
    crew.start("etl-01/1")
    assert ended_of(crew).code == 0
    assert heard.events[0] == ("etl-01/1", {"event": "job", "message": "said"})
    assert {event["event"] for _, event in heard.events[1:]} == {"worker_output"}
    words = heard.words()[1:]
    assert words[:4] == ["free(): invalid pointer", "[1, 2]", '{"no": "event"}', '{"event": 7}']
    assert words[4].startswith("bytes \ufffd")
    assert words[5:] == ["to stderr", "without an end"]


def test_the_orders_are_the_first_thing_that_a_worker_reads(staff, heard):
    crew = staff("""printf '%s\\n' "$orders" """)
    crew.start("etl-01/7")
    ended_of(crew)
    assert Orders.from_line(heard.words()[0]) == replace(ORDERS, label="etl-01/7")


def test_an_event_that_can_not_be_used_is_passed_on_as_text_and_the_listening_goes_on(tmp_path, monkeypatch):
    said = []

    def hear(_label: str, event: dict) -> None:
        if event["event"] == "transition":
            raise TypeError("no such field")
        said.append(event["message"])

    made = Supervisor(lambda _label: ORDERS, hear)
    path = tmp_path / "worker.sh"
    path.write_text("""#!/bin/sh\necho '{"event": "transition", "x": 1}'\necho after\n""")
    path.chmod(0o755)
    monkeypatch.setattr(supervisor.sys, "executable", str(path))
    made.start("etl-01/1")
    ended_of(made)
    assert said == ['{"event": "transition", "x": 1}', "after"]


def test_a_very_long_line_is_cut(staff, heard):
    crew = staff("head -c 100000 /dev/zero | tr '\\0' x; echo")
    crew.start("etl-01/1")
    ended_of(crew)
    assert [len(words) for words in heard.words()] == [supervisor.LONGEST_LINE]


@pytest.mark.parametrize(
    ("script", "code", "how"),
    [
        ("exit 0", 0, "ended with exit code 0"),
        ("exit 3", 3, "ended with exit code 3"),
        ("kill -SEGV $$", -11, "was ended by SIGSEGV"),
        ("kill -KILL $$", -9, "was ended by SIGKILL (by a person, or by the system for lack of memory)"),
    ],
)
def test_how_a_worker_ended_is_known_by_its_pid_before_and_after_it_is_reaped(staff, script, code, how):
    crew = staff(script)
    pid = crew.start("etl-01/1")
    until(lambda: crew.fate(pid), "its fate is known")
    assert crew.fate(pid) == how
    ended = ended_of(crew)
    assert (ended.pid, ended.code, ended.how) == (pid, code, how)
    assert crew.fate(pid) == how
    assert crew.fate(1) == ""
    assert crew.pids() == {}


def test_a_reason_for_a_kill_is_the_fate(staff):
    crew = staff("exec sleep 60")
    pid = crew.start("etl-01/1")
    assert crew.fate(pid) == ""
    crew.kill("etl-01/1", "was ended because it ran for too long")
    assert ended_of(crew).how == "was ended because it ran for too long"
    assert crew.fate(pid) == "was ended because it ran for too long"
    crew.kill("etl-01/1", "again")


def test_a_kill_ends_what_the_worker_has_started_too(staff, tmp_path):
    crew = staff(f"sleep 60 & echo $! > {tmp_path}/child; wait")
    crew.start("etl-01/1")
    child = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), "the child's pid"))
    crew.kill("etl-01/1")
    ended_of(crew)
    until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", "the child is gone")


def test_a_pipe_that_is_kept_open_by_what_a_worker_started_holds_nobody_up(staff, heard):
    crew = staff("echo said; sleep 20 & exit 0")
    pid = crew.start("etl-01/1")
    until(lambda: crew.fate(pid), "it has ended")
    started = time.monotonic()
    ended_of(crew)
    assert time.monotonic() - started < LAST_WORDS_SECONDS + 2
    assert heard.words() == ["said"]


def test_a_worker_hears_the_stop_and_then_its_end(staff, heard):
    crew = staff("while read wish; do echo heard $wish; done; echo the end")
    crew.start("etl-01/1")
    crew.ask_to_stop()
    until(lambda: "heard stop" in heard.words(), "it heard the stop")
    crew.kill("etl-01/1")
    ended_of(crew)


def test_words_to_a_worker_that_has_ended_are_no_error(staff):
    crew = staff("exit 0")
    pid = crew.start("etl-01/1")
    until(lambda: crew.fate(pid), "it has ended")
    crew.ask_to_stop()
    crew.kill("etl-01/1")
    assert ended_of(crew).code == 0


def test_the_stdin_of_one_worker_does_not_live_on_in_another(staff, heard):
    crew = staff("read wish; echo the end")
    crew.start("etl-01/1")
    crew.start("etl-01/2")
    first = crew._workers["etl-01/1"]
    assert first.stdin is not None
    first.stdin.close()
    until(lambda: ("etl-01/1", {"event": "worker_output", "message": "the end"}) in heard.events, "it heard its end")
    assert Path(f"/proc/{crew.pids()['etl-01/2']}").exists() or sys.platform != "linux"
