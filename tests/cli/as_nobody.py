"""Gives commands as a user without rights: `python as_nobody.py`, one JSON list of words a line on stdin.

Answers a line each: `[exit code, what was printed]`. Every command is given once before, as the user who started this and
in a project of its own, so that everything is imported: root's Python may lie where nobody can read it.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

from fdagent.cli.main import commands, run

NOBODY = 65534


def give(words: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(commands(words), words)
    return code, said.getvalue()


def warm_up(folder: str) -> None:
    """Have everything imported that the commands need, and a sentence for a table that can't be read."""
    project = ["--project", folder]
    for words in (["init", folder], ["promote", "dev", "--yes", *project], ["enqueue", "dev", *project]):
        assert give(words)[0] == 0
    (Path(folder) / ".local/dev/LH_Silver/Tables").mkdir(parents=True)
    (Path(folder) / ".local/dev/LH_Silver/Tables/orders").touch()
    assert give(["run", "--until-idle", *project])[0] == 1
    assert give(["status", *project])[0] == 0
    assert give(["job", "nothere", *project])[0] == 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm_up(f"{folder}/warm")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    for line in sys.stdin:
        print(json.dumps(give(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
