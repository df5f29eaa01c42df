"""Runs fdagent's commands in forked processes that kill themselves, or wait, at one step of the port to Delta tables.

Everything is imported once and forked for each request, one JSON object a line on stdin: `words` (the command line),
`out` (a file for what it prints), and perhaps `step`: the tables it means (the end of their folder's name), the method
of the port, "before" or "after", how often it must have come there, what to do there ("kill", or "wait" until the file
`out` + ".go" is there), and `rival`: another writer commits first. Answers two lines: the process's id, then its exit
code. Only processes forked here are changed.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import fdagent.cli.run
import fdagent.cli.view
import fdagent.engine.compute
import fdagent.work.worker  # noqa: F401  # imported to be forked
from fdagent.cli.main import commands, run
from fdagent.engine.tables.delta import DeltaTablePort

METHODS = ("open", "has_txn", "author", "commit", "discard", "create", "add_columns")
LONGEST_WAIT = 60.0


class Steps:
    """The steps of one process: at the one that is meant, it is killed or waits."""

    def __init__(self, out: str, step: dict[str, Any]) -> None:
        self.out, self.step, self.came = out, step, 0

    def at(self, port: DeltaTablePort, method: str, when: str) -> None:
        folder = str(port.folder)
        wanted = self.step
        if not wanted or not folder.endswith(wanted["table"]) or [method, when] != [wanted["method"], wanted["when"]]:
            return
        self.came += 1
        if self.came != wanted.get("time", 1):
            return
        if wanted["do"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        print("at the step", flush=True)
        end = time.monotonic() + LONGEST_WAIT
        while not Path(f"{self.out}.go").exists():
            if time.monotonic() > end:
                raise TimeoutError("nobody said go")
            time.sleep(0.01)

    def rival(self, port: DeltaTablePort) -> None:
        """Another writer takes the version that is wanted, and changes no row."""
        if self.step.pop("rival", False):
            table = DeltaTable(str(port.folder))
            table.alter.set_table_properties({"rival": "was here"}, raise_if_not_exists=False)


def watched(method: str, steps: Steps) -> None:
    """Put the steps around one method of the port."""
    was = getattr(DeltaTablePort, method)

    def around(self: DeltaTablePort, *args: Any, **kwargs: Any) -> Any:
        steps.at(self, method, "before")
        if method == "commit" and str(self.folder).endswith(steps.step.get("table", "\0")):
            steps.rival(self)
        try:
            return was(self, *args, **kwargs)
        finally:
            steps.at(self, method, "after")

    setattr(DeltaTablePort, method, around)


def child(request: dict[str, Any]) -> int:
    """In the forked process: run the command."""
    handle = os.open(request["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    steps = Steps(request["out"], request.get("step") or {})
    for method in METHODS:
        watched(method, steps)
    return run(commands(request["words"]), request["words"])


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                code = child(request)
            finally:
                sys.stdout.flush()
                os._exit(code)
        print(json.dumps({"pid": pid}), flush=True)
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
