"""A thread beside the daemon's loop: ends workers that stand still while the loop does.

The loop and the workers share locks of the operating system, held for milliseconds. A worker that is stopped (SIGSTOP)
just then keeps its lock, and whoever waits for it waits in the kernel, in turn, without an end: the loop could never come
to the duty that takes a stalled worker's place. Guarantees: while the loop turns, nothing is done here. Does not get past
a process of somebody else that is stopped inside a lock, such as a command after Ctrl-Z: it only says that it waits.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from fdagent.ports import Clock

STANDSTILL_SECONDS = 10.0
LOOK_SECONDS = 1.0


class Stoppable(Protocol):
    """The workers, as far as they are needed here."""

    def stopped(self) -> list[str]:
        """Those that the system keeps stopped."""
        ...

    def kill(self, label: str, why: str = "") -> None:
        """End one at once."""
        ...


class Watchdog:
    """Watches one loop, which calls `turned` at each of its turns.

    Args:
        crew: The workers.
        clock: Counts how long the loop stands still.
        tell: Told what happens: a level, an event and a sentence.
    """

    def __init__(self, crew: Stoppable, clock: Clock, tell: Callable[[str, str, str], None]) -> None:
        self._crew, self._clock, self._tell = crew, clock, tell
        self._at = clock.elapsed()
        self._said = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def turned(self) -> None:
        """The loop has turned; from the first turn on it is watched."""
        self._at = self._clock.elapsed()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Watch no more."""
        self._over.set()

    def look(self) -> None:
        """One look."""
        if self._clock.elapsed() - self._at < STANDSTILL_SECONDS:
            self._said = False
            return
        if not self._said:
            self._said = True
            self._tell("warning", "standstill", "The agent has been waiting for a lock, a disk or a store for a while.")
        for label in self._crew.stopped():
            self._tell("warning", "worker_stalled", f"Worker {label} is stopped, and the agent waits: it is ended.")
            self._crew.kill(label, "was ended because it was stopped (SIGSTOP) while the agent waited")

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.look()
