"""The commands as processes: their two names, their output in a pipe, and a user without rights."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from cli_kit import tree

from fdagent.project.scaffold import write_scaffold

pytestmark = pytest.mark.process

SECONDS = 60
FDAGENT = [sys.executable, "-P", "-m", "fdagent"]
FABRIC_DESKTOP = [str(Path(sys.executable).with_name("fabric-desktop"))]


def give(command: list[str], folder: Path, **changed: str) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("FABRIC_DESKTOP")}
    return subprocess.run(
        command, cwd=folder, env={**env, **changed}, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture
def project(tmp_path):
    write_scaffold(tmp_path / "project")
    return tmp_path / "project"


def test_fabric_desktop_agent_is_the_same_commands(project):
    assert give([*FABRIC_DESKTOP, "agent", "promote", "dev", "--yes"], project).returncode == 0
    assert give([*FDAGENT, "enqueue", "dev"], project).returncode == 0
    ours, theirs = give([*FDAGENT, "status"], project), give([*FABRIC_DESKTOP, "agent", "status"], project)
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    wrong = give([*FABRIC_DESKTOP, "agent", "job", "x"], project)
    assert (wrong.returncode, wrong.stderr) == (
        3,
        "Error: No job's id begins with 'x'.\n`fdagent status` lists the jobs.\n",
    )
    assert give([*FABRIC_DESKTOP, "status"], project).returncode == 2
    assert "fabric-desktop agent status" in give([*FABRIC_DESKTOP, "agent", "status", "--help"], project).stdout


def test_a_terminal_without_the_characters_gets_an_escape(project):
    done = give([*FDAGENT, "promote", "dev", "--yes"], project, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "dev runs metadata" in done.stdout


def test_a_user_without_rights_is_told_where_and_nothing_is_changed():
    # Not below pytest's own folder, into which only its user may look.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for root in ("new", "promoted", "queued"):
            write_scaffold(folder / root)
        for root in ("promoted", "queued"):
            assert give([*FDAGENT, "promote", "dev", "--yes"], folder / root).returncode == 0
        assert give([*FDAGENT, "enqueue", "dev"], folder / "queued").returncode == 0
        before = tree(folder)
        give_rights(folder, 0o555)
        (folder / "queued/.local/agent").chmod(0)
        answers = as_nobody(
            ["promote", "dev", "--yes", "--project", str(folder / "new")],
            ["init", str(folder / "other")],
            *(
                [*words, "--project", str(folder / root)]
                for root in ("promoted", "queued")
                for words in (["enqueue", "dev"], ["run", "--until-idle"])
            ),
            ["status", "--project", str(folder / "queued")],
        )
        give_rights(folder, 0o755)
        assert tree(folder) == before
        for words, (code, said) in answers:
            assert code == (1 if words[0] == "promote" else 2), (words, said)
            assert said.count("Error: ") == 1, (words, said)
            assert "denied" in said.lower() or "rights" in said, (words, said)


def give_rights(folder: Path, mode: int) -> None:
    """The rights of each folder below one; files stay readable to all."""
    (folder / "queued/.local/agent").chmod(mode)
    for path in folder.rglob("*"):
        path.chmod(mode if path.is_dir() else 0o444)


def as_nobody(*commands: list[str]) -> list[tuple[list[str], tuple[int, str]]]:
    """The answers to commands that a user without rights gives."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("as_nobody.py"))],
        input="".join(json.dumps(words) + "\n" for words in commands),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return list(zip(commands, map(json.loads, done.stdout.splitlines()), strict=True))
