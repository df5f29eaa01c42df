"""Holding a lease: how long its holder may believe in it, and the thread that keeps it.

Guarantees (rule C5)
- A belief counts from the *start* of the last renewal that was confirmed, ends `MARGIN_SECONDS` before the span does,
  and ends at once when the machine's wall clock jumps against its steady clock: a machine that was cloned, restored or
  suspended without its counter noticing can't trust what it held.
- Renewals are due every third of the span, in a thread of their own, on a clock that goes on through suspend; one that
  was not confirmed is tried again sooner.

Does not fence anything: a holder that no longer believes stops itself; what stops everybody else's mistakes is the
table's own conditional commit. Code that holds the interpreter's lock for a whole span loses the belief, and the run
then stops before its commit.
"""

import threading
from collections.abc import Callable
from typing import Self

from fdagent.errors import FdagentError, StoodDown, unforeseen
from fdagent.ports import Clock

MARGIN_SECONDS = 2.0
RENEW_PARTS, RETRY_PARTS = 3, 15
"""Renewals a span; tries a span once one was not confirmed."""
WALL_JUMP_SECONDS = 5.0
LONGEST_JOIN_SECONDS = 30.0


class Belief:
    """What a holder may believe of a lease of `span` seconds."""

    def __init__(self, span: float, clock: Clock) -> None:
        self.span, self._clock = span, clock
        self._from: float | None = None
        self._wall_lead = 0.0

    def confirmed(self, started_at: float) -> None:
        """A claim or renewal that was begun at `started_at` (elapsed seconds) is confirmed."""
        self._from = started_at
        self._wall_lead = self._clock.wall() - self._clock.elapsed()

    def end(self) -> None:
        """Stop believing, before asking to release."""
        self._from = None

    def held(self) -> bool:
        """May the holder act on it now?"""
        if self._from is None:
            return False
        jumped = abs(self._clock.wall() - self._clock.elapsed() - self._wall_lead) > WALL_JUMP_SECONDS
        return not jumped and self._clock.elapsed() < self._from + self.span - MARGIN_SECONDS

    def check(self, what: str) -> None:
        """Raise StoodDown unless it is held."""
        if not self.held():
            raise StoodDown(f"{what} could not be kept for its whole span, so nothing further is written.")


class Keeper:
    """Renews a lease from a thread until it is closed or the lease is lost.

    Args:
        belief: What the holder believes; renewed here.
        renew: One renewal: True when confirmed, False when the lease is somebody else's now. An error is tried again
            soon: the belief ends by itself if that lasts.
        clock: The steady clock.
        told: Told of an error that nobody foresaw.
    """

    def __init__(
        self,
        belief: Belief,
        renew: Callable[[], bool],
        clock: Clock,
        told: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        self._belief, self._renew, self._clock, self._told = belief, renew, clock, told
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease keeper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(LONGEST_JOIN_SECONDS)

    def _run(self) -> None:
        parts = RENEW_PARTS
        while not self._stop.wait(self._belief.span / parts):
            started = self._clock.elapsed()
            kept = self._tried()
            if kept is False:
                self._belief.end()
                return
            if kept:
                self._belief.confirmed(started)
            parts = RENEW_PARTS if kept else RETRY_PARTS

    def _tried(self) -> bool | None:
        """One renewal; None: not confirmed."""
        try:
            return self._renew()
        except FdagentError:
            return None
        except Exception as err:  # noqa: BLE001  # such as no descriptor left: what is held must not be lost for that
            self._told(f"A lease could not be renewed just now: {unforeseen(err)}")
            return None
