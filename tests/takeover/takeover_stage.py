"""Plays the cases beside each other, as they wait most of the time: each on a ground of its own, in a thread.

Whatever happens, no process outlives the stage.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from azurite import Azurite
from daemon_kit import Calm
from takeover_cases import Case
from takeover_kit import Ground

AT_ONCE = 8
"""Cases that are played at once: two cores are enough for their processes."""


class Stage:
    """Cases under way. `play` begins one; its future answers its line, or raises what did not hold."""

    def __init__(self, root: Path, *, blobs: bool) -> None:
        self._root, self._over = root, threading.Event()
        self._grounds: list[Ground] = []
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._server = Azurite("http", root) if blobs else None
        self._tables = Calm(root / "calm" / "project").tables(1)
        if self._server is not None:
            self._server.start()

    def play(self, case: Case, kind: str, name: str) -> Future[str]:
        """Begin one."""
        return self._pool.submit(self._play, case, kind, name)

    def _play(self, case: Case, kind: str, name: str) -> str:
        assert not self._over.is_set(), "the stage is closed"
        folder = self._root / name
        folder.mkdir()
        ground = Ground(folder, self._server if kind == "azurite" else None, self._over)
        self._grounds.append(ground)
        try:
            return f"takeover {kind}: {title(case)}: {case(ground, self._tables)}"
        finally:
            ground.close()

    def close(self) -> None:
        """End everything that is still under way."""
        self._over.set()
        for ground in self._grounds:
            ground.close()
        self._pool.shutdown(cancel_futures=True)
        if self._server is not None:
            self._server.stop()


def title(case: Case) -> str:
    """What a case is called."""
    return (case.__doc__ or "").strip().splitlines()[0].rstrip(".")
