"""The daemon's worker processes: started, listened to, asked to stop, killed, and seen to have ended.

Guarantees: each worker is a process of its own in a process group of its own, started by `sys.executable -P -m`, so that
neither a crash in native code nor the terminal's Ctrl-C reaches the daemon or another worker; its stdin ends when the
daemon does. What a worker prints that is no event (a native library's last words) is passed on as text, and nothing
that it prints stops the listening. Only processes started here are ever signalled, with what they started themselves.
Knows nothing of jobs.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fdagent.work.news import News
from fdagent.work.process import STOP, Orders

LONGEST_LINE = 4000
LAST_WORDS_SECONDS = 1.0
"""How long the last words of a worker that ended are waited for: what it started may keep its pipe open."""
FATES_KEPT = 256

Events = Callable[[str, Mapping[str, Any]], None]
"""Called with a worker's label and one of its events, from a thread of its own."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker that ended, and how: its exit code, negative for a signal."""

    label: str
    pid: int
    code: int
    how: str
    """The same as the end of a sentence."""


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
        self._fates: OrderedDict[int, str] = OrderedDict()

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
        self._fates.pop(worker.pid, None)
        listener = threading.Thread(target=self._listen, args=(label, worker), name=f"events of {label}", daemon=True)
        self._listeners[label] = listener
        listener.start()
        self._say(worker, self._orders(label).to_line())
        return worker.pid

    def pids(self) -> dict[str, int]:
        """The workers that were not seen to have ended, by label."""
        return {label: worker.pid for label, worker in list(self._workers.items())}

    def ended(self) -> list[Ended]:
        """Workers that have ended since the last call."""
        found = []
        for label, worker in list(self._workers.items()):
            code = worker.poll()
            if code is not None:
                how = self.fate(worker.pid)
                self._listeners.pop(label).join(LAST_WORDS_SECONDS)
                if worker.stdin is not None:
                    with contextlib.suppress(OSError):
                        worker.stdin.close()
                del self._workers[label]
                found.append(Ended(label, worker.pid, code, how))
        return found

    def fate(self, pid: int) -> str:
        """How the worker with this process id ended, as the end of a sentence; empty: it lives, or was none of ours."""
        for worker in self._workers.values():
            code = worker.poll() if worker.pid == pid else None
            if code is not None:
                self._remember(pid, _how(code))
        living = any(worker.pid == pid and worker.returncode is None for worker in self._workers.values())
        return "" if living else self._fates.get(pid, "")

    def stopped(self) -> list[str]:
        """Workers that the system keeps stopped (SIGSTOP): alive, and doing nothing."""
        import psutil

        found = []
        for label, pid in self.pids().items():
            with contextlib.suppress(psutil.Error):
                if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
                    found.append(label)
        return found

    def ask_to_stop(self) -> None:
        """Ask every worker to stop after the table it runs."""
        for worker in self._workers.values():
            self._say(worker, f"{STOP}\n")

    def tell(self, news: News) -> None:
        """Tell every worker what has changed."""
        for worker in self._workers.values():
            self._say(worker, news.to_line())

    def kill(self, label: str, why: str = "") -> None:
        """End a worker at once, as a crash would, and what it has started; `why` ends a sentence about it."""
        worker = self._workers.get(label)
        if worker is None or worker.poll() is not None:
            return
        if why:
            self._remember(worker.pid, why)
        if sys.platform == "win32":
            worker.kill()
        else:
            # It leads its group, and is not reaped yet: the number can't be somebody else's.
            os.killpg(worker.pid, signal.SIGKILL)

    def _remember(self, pid: int, how: str) -> None:
        """The first thing that is known of an end is the reason."""
        self._fates.setdefault(pid, how)
        while len(self._fates) > FATES_KEPT:
            self._fates.popitem(last=False)

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
            for line in filter(str.strip, worker.stdout):
                try:
                    self._events(label, _event(line))
                except Exception:  # noqa: BLE001  # a worker whose words nobody reads any more would stand still
                    self._events(label, _as_text(line))


def _event(line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) and isinstance(found.get("event"), str) else _as_text(line)


def _as_text(line: str) -> Mapping[str, Any]:
    return {"event": "worker_output", "message": line.rstrip()[:LONGEST_LINE]}


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    name = next((number.name for number in signal.Signals if number == -code), f"signal {-code}")
    by = " (by a person, or by the system for lack of memory)" if name == "SIGKILL" else ""
    return f"was ended by {name}{by}"
