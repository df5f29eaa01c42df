"""The daemon's worker processes: started, listened to, asked to stop, killed, and seen to have ended.

Guarantees: each worker is a process of its own in a process group of its own, started by `sys.executable -P -m`, so that
neither a crash in native code nor the terminal's Ctrl-C reaches the daemon or another worker; its stdin ends when the
daemon does. What a worker prints that is no event (a native library's last words) is passed on as text. Only processes
started here are ever signalled. Knows nothing of jobs.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fdagent.work.process import STOP, Orders

LONGEST_LINE = 4000
REAP_SECONDS = 10.0

Events = Callable[[str, Mapping[str, Any]], None]
"""Called with a worker's label and one of its events, from a thread of its own."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker that ended, and how: its exit code, negative for a signal."""

    label: str
    pid: int
    code: int


class Supervisor:
    """The workers of one daemon.

    Args:
        orders: What each worker is told at its start, for a label.
        events: Where their events go.
    """

    def __init__(self, orders: Callable[[str], Orders], events: Events) -> None:
        self._orders, self._events = orders, events
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self._listeners: dict[str, threading.Thread] = {}

    def start(self, label: str) -> int:
        """Start a worker; its pid.

        Raises:
            OSError: The system has no room for another process.
        """
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "fdagent.work.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._workers[label] = worker
        listener = threading.Thread(target=self._listen, args=(label, worker), name=f"events of {label}", daemon=True)
        self._listeners[label] = listener
        listener.start()
        self._say(worker, self._orders(label).to_line())
        return worker.pid

    def pids(self) -> dict[str, int]:
        """The workers that were not seen to have ended, by label."""
        return {label: worker.pid for label, worker in self._workers.items()}

    def ended(self) -> list[Ended]:
        """Workers that have ended since the last call."""
        found = []
        for label, worker in list(self._workers.items()):
            code = worker.poll()
            if code is not None:
                self._listeners.pop(label).join(REAP_SECONDS)
                if worker.stdin is not None:
                    worker.stdin.close()
                del self._workers[label]
                found.append(Ended(label, worker.pid, code))
        return found

    def ask_to_stop(self) -> None:
        """Ask every worker to stop after the table it runs."""
        for worker in self._workers.values():
            self._say(worker, f"{STOP}\n")

    def kill(self, label: str) -> None:
        """End a worker at once, as a crash would."""
        if label in self._workers:
            self._workers[label].kill()

    @staticmethod
    def _say(worker: "subprocess.Popen[str]", line: str) -> None:
        if worker.stdin is None:
            raise AssertionError("a worker without stdin")
        try:
            worker.stdin.write(line)
            worker.stdin.flush()
        except OSError:
            # It has ended: `ended` will say so.
            return

    def _listen(self, label: str, worker: "subprocess.Popen[str]") -> None:
        if worker.stdout is None:
            raise AssertionError("a worker without stdout")
        with worker.stdout:
            for line in worker.stdout:
                self._events(label, _event(line))


def _event(line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("event"), str):
        return found
    return {"event": "worker_output", "message": line.rstrip()[:LONGEST_LINE]}
