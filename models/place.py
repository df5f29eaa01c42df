"""When a process named in a record may be called gone.

Guarantees: only within one place (host, boot and pid namespace), and only when its pid is free or belongs to a process
with another start. In any doubt the answer is no: another boot, another namespace, a missing field.
"""

from collections.abc import Callable
from typing import Protocol


class Placed(Protocol):
    """What a lease and an agent record say of the process that wrote them."""

    @property
    def boot(self) -> str | None:
        """Its place, in one word: `host/boot identity/pid namespace`."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process id."""
        ...

    @property
    def process_started_at(self) -> float | None:
        """When that process started, as its place counts: compared for equality only."""
        ...


def process_gone(named: Placed, *, place: str, started_at: Callable[[int], float | None]) -> bool:
    """Has the process that a record names ended?

    Args:
        named: The record.
        place: The place of whoever asks; empty when it can't be told.
        started_at: When process `pid` of this place started; None when there is none.
    """
    if not place or named.boot != place or named.pid is None or named.process_started_at is None:
        return False
    return started_at(named.pid) != named.process_started_at
