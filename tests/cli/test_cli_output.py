"""Output that nobody reads, that can't be written, or that was closed before the start: it never ends the work."""

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from fdagent.system import SystemClock, SystemIds

pytestmark = pytest.mark.process

SECONDS = 120
FDAGENT = [sys.executable, "-P", "-m", "fdagent"]
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="only Linux has a disk that is always full")


def shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A line of the shell in which F is the command."""
    line = line.replace("F ", shlex.join(FDAGENT) + " ")
    return subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {line}"],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


def unread(words: list[str], folder: Path, *, unbuffered: bool = False) -> "subprocess.CompletedProcess[str]":
    """A command whose reader has gone before the first word."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [*FDAGENT, *words],
            cwd=folder, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False,
            env={**os.environ, "PYTHONUNBUFFERED": "1" if unbuffered else ""},
        )  # fmt: skip
    finally:
        os.close(writer)


def states(folder: Path) -> list[str]:
    jobs = Jobs(Database(folder / ".local/agent"), clock=SystemClock(), ids=SystemIds())
    try:
        return [str(job.state) for job in [*jobs.unfinished(), *jobs.finished(9)]]
    finally:
        jobs.database.close()


@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_job_is_run_to_its_end_though_the_reader_of_its_lines_has_gone(person, unbuffered):
    person("enqueue", "dev")
    done = unread(["run", "--until-idle"], person.project, unbuffered=unbuffered)
    assert (done.returncode, done.stderr) == (0, "")
    assert states(person.project) == ["succeeded"]


def test_a_job_that_fails_unread_still_ends_with_1(person):
    person("enqueue", "dev")
    person.edit("entities/silver/orders.toml", '"NEW", ', "")  # and not promoted
    assert unread(["run", "--until-idle"], person.project).returncode == 1
    assert states(person.project) == ["failed"]


def test_both_streams_of_a_command_may_lose_their_reader(person):
    person("enqueue", "dev")
    shell("F run --until-idle 2>&1 | true; exit ${PIPESTATUS[0]}", person.project)
    assert states(person.project) == ["succeeded"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["status", "--json"], 0, ""),
        (["--help"], 0, ""),
        (["job", "x", "--json"], 3, "Error: No job's id begins with 'x'.\n`fdagent status` lists the jobs.\n"),
    ],
    ids=str,
)
def test_a_reader_who_leaves_early_is_no_error_and_hides_none(person, words, code, says):
    done = unread(words, person.project)
    assert (done.returncode, done.stderr) == (code, says)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_commands_work_with_streams_that_were_closed_before_they_began(person, closed):
    for words in ("enqueue dev", "status", "status --json", "run --until-idle"):
        done = shell(f"F {words} {closed}", person.project)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert states(person.project) == ["succeeded"]


def test_nobody_can_be_asked_over_a_closed_stdin(bare):
    bare("init", ".")
    done = shell("F promote dev <&-", bare.project)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: Nobody is there to ask whether to promote.")


@needs_full
@pytest.mark.parametrize("words", ["status", "status --json", "why dev/release", "agents dev", "lease list dev --json"])
def test_what_only_tells_fails_in_a_sentence_when_that_can_not_be_written(person, words):
    done = shell(f"F {words} >/dev/full", person.project)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: What this command says could not be written: no space left on device.",
        "Give it an output that can be written to.",
    ]


@needs_full
def test_work_whose_words_can_not_be_written_ends_as_the_work_did(person):
    for words in ("enqueue dev", "run --until-idle"):
        done = shell(f"F {words} >/dev/full", person.project)
        assert done.returncode == 0
        assert "could not be written: no space left on device." in done.stderr
        assert "the exit code says how it ended" in done.stderr
    assert states(person.project) == ["succeeded"]


@needs_full
def test_an_error_that_can_not_be_written_as_json_is_said_on_stderr(person):
    done = shell("F job x --json >/dev/full", person.project)
    assert done.returncode == 3
    assert done.stderr.startswith("Error: No job's id begins with 'x'.\n")


def test_a_broken_pipe_that_a_command_works_with_is_an_error(person, monkeypatch):
    def fails(*_args):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("fdagent.cli.agents._look", fails)
    assert "The system says broken pipe." in person("agents", "dev", code=1).err
