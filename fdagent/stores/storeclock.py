"""The store clock: this machine's clock plus the measured offset to the store's, the one time that machines share.

Guarantees: the offset is the median of recent answers, so one slow or wrong answer moves nothing; it is kept against
the clock that never jumps, so a jump of this machine's own wall clock is corrected at once instead of after new answers.
Does not guarantee: better than the half second that a `Date` header leaves open, plus half an answer's way; it must
never decide a lease (rule C4), only deadlines and slots.
"""

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

from fdagent.ports import Clock
from models.times import lasted

OFFSET_SHOWN = 5.0
"""Seconds of offset from which `check` and `status` show it."""

OFFSET_WRONG = 240.0
"""Seconds of offset from which it is an error: sign-in itself fails at five minutes."""

SAMPLES = 15
"""Recent answers kept; the median of an odd number is one of them."""

SLOW_ANSWER = 5.0
"""Seconds; an answer that took longer says too little about the time it was given."""

ABSURD_AGE = 20 * 366 * 86_400.0
"""Seconds; a record older than this was not written by any version of this program."""

STAMP_NOISE = 1.0
"""Seconds by which a stamp may lie ahead of the clock that made it: stamps are cut to whole seconds."""


@dataclass(frozen=True, slots=True)
class Skew:
    """What to say about an offset: the sentence, and whether it is an error (`wrong`) or only worth showing."""

    wrong: bool
    sentence: str


class StoreClock:
    """Measures a store's clock from the `Date` of its answers.

    Args:
        clock: This machine's clocks.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[float] = deque(maxlen=SAMPLES)

    def observe(self, date: float, asked: float) -> None:
        """Learn from an answer that has just arrived.

        Args:
            date: Its `Date` in epoch seconds, cut to the second; half a second is added for that.
            asked: This machine's `elapsed()` when the request was sent.
        """
        arrived = self._clock.elapsed()
        if math.isfinite(date) and 0 <= arrived - asked <= SLOW_ANSWER:
            self._samples.append(date + 0.5 - (asked + arrived) / 2)

    def offset(self) -> float | None:
        """The store's clock minus this machine's wall clock, in seconds; None before the first answer."""
        if not self._samples:
            return None
        return self._clock.elapsed() + median(self._samples) - self._clock.wall()


def store_now(clock: Clock, offset: float | None) -> float:
    """The store clock in epoch seconds: this machine's, corrected where the offset is known."""
    return clock.wall() + (offset or 0.0)


def skew(offset: float | None) -> Skew | None:
    """What an offset means to a person; None when it is small or unknown."""
    if offset is None or abs(offset) <= OFFSET_SHOWN:
        return None
    way = "behind" if offset > 0 else "ahead of"
    sentence = f"This machine's clock is {lasted(abs(offset))} {way} the store's."
    if abs(offset) <= OFFSET_WRONG:
        return Skew(wrong=False, sentence=sentence)
    return Skew(wrong=True, sentence=f"{sentence} Set it: sign-in fails from five minutes on.")


def age(now: float, written: float) -> float | None:
    """Seconds since `written`, both by one clock; None when that is negative or absurd: then it is not known."""
    seconds = now - written
    if not -STAMP_NOISE <= seconds <= ABSURD_AGE:
        return None
    return max(seconds, 0.0)
