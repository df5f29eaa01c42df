"""The other end of `step_process.py`: asks it for runs."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from process_kit import LONGEST_SECONDS, Site

SCRIPT = str(Path(__file__).with_name("step_process.py"))


class Server:
    """A process that forks each run, so that a run costs no imports."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, site: Site, step: dict[str, Any] | None = None, out: str = "out") -> int:
        """Start to run a project's queue empty; the process's id."""
        words = ["run", "--until-idle", "--project", str(site.root)]
        request = {"words": words, "out": str(site.root / out), "step": step}
        assert self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return int(self._answer()["pid"])

    def end(self) -> int:
        """Wait for its end; the exit code, negative for a signal."""
        return int(self._answer()["code"])

    def run(self, site: Site, step: dict[str, Any] | None = None) -> int:
        """Both."""
        self.start(site, step)
        return self.end()

    def close(self) -> None:
        """Let it end."""
        self.process.communicate(timeout=LONGEST_SECONDS)

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


def said(file: Path, words: str) -> str:
    """What a run has printed, as soon as these words are in it."""
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        text = file.read_text() if file.exists() else ""
        if words in text:
            return text
        time.sleep(0.01)
    raise AssertionError(f"{words!r} was never said: {text!r}")
