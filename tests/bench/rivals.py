"""Sixteen processes that change one record as fast as they can; standard library only, so peers can use it too."""

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

PROCESSES = 16
SECONDS = 3.0
READY_SECONDS = 60.0


class Counter(Protocol):
    """One number under one key. One object a process."""

    def add(self) -> int:
        """Count one up by one conditional write, tried until it lands on disk; how many conflicts that took."""
        ...

    def number(self) -> int:
        """The number now."""
        ...


def drive(open_counter: Callable[[Path], Counter], folder: Path) -> dict[str, Any]:
    """Let PROCESSES count for SECONDS, all let go at once.

    Returns:
        `per_second` changes that landed; `worst_ms`, the longest that one change took from its first read to the
        acknowledgement, all its conflicts included; `conflicts` for each change; `lost`, changes that were
        acknowledged and are not in the final number.
    """
    before = open_counter(folder).number()
    context = multiprocessing.get_context("fork")
    ready, done = context.Barrier(PROCESSES), context.Queue()
    rivals = [context.Process(target=_count, args=(open_counter, folder, ready, done)) for _ in range(PROCESSES)]
    for rival in rivals:
        rival.start()
    found = [done.get(timeout=READY_SECONDS + 10 * SECONDS) for _ in rivals]
    for rival in rivals:
        rival.join(10)
    landed = sum(changes for changes, _, _, _ in found)
    return {
        "per_second": landed / max(seconds for _, _, _, seconds in found),
        "worst_ms": 1000 * max(worst for _, _, worst, _ in found),
        "conflicts": sum(conflicts for _, conflicts, _, _ in found) / landed,
        "lost": before + landed - open_counter(folder).number(),
    }


def _count(open_counter: Callable[[Path], Counter], folder: Path, ready: Any, done: Any) -> None:
    counter = open_counter(folder)
    changes, conflicts, worst = 0, 0, 0.0
    ready.wait(READY_SECONDS)
    began = now = time.perf_counter()
    while now - began < SECONDS:
        started = now
        conflicts += counter.add()
        now = time.perf_counter()
        changes, worst = changes + 1, max(worst, now - started)
    done.put((changes, conflicts, worst, now - began))
