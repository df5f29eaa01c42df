"""The one bounded loop under every change: read, recognise an own write, decide, write, read again.

Guarantees
- A write is never judged by its answer alone. After a conflict everything is judged afresh on what is there now; after
  an unknown outcome the record is read back, and an own write found there is a success (rule C3).
- It ends: after `tries` writes and one last read it raises `GaveUp`, which says whether the last outcome is known.

Does not know charts (`commit.py`) or tables (`engine/landing.py`); nothing else in the project writes shared state.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fdagent.errors import Conflict, GaveUp, Unknown
from fdagent.ports import Clock, Ids

V = TypeVar("V")
P = TypeVar("P")
T = TypeVar("T")

TRIES = 8
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The value that ends the loop."""

    value: T


class Task(Protocol[V, P, T]):
    """What differs between a record and a table. `V` is a version as read, `P` a plan for one write."""

    @property
    def what(self) -> str:
        """What is being changed, for the sentence when the tries are used up."""
        ...

    def read(self) -> V:
        """The newest version."""
        ...

    def own(self, version: V, *, unclear: bool) -> Done[T] | None:
        """Is this version, or something in it, a write of this very task? `unclear`: a write's outcome is unknown."""
        ...

    def decide(self, version: V) -> P | Done[T]:
        """What to write on this version, or the value that ends the loop without a write."""
        ...

    def write(self, version: V, plan: P) -> Done[T] | None:
        """Write. None: only another read can tell. Raises Conflict or Unknown."""
        ...


def attempt(task: Task[V, P, T], *, clock: Clock, ids: Ids, tries: int = TRIES) -> T:
    """Carry out one task.

    Args:
        task: What to read, recognise, decide and write.
        clock: Waits between tries.
        ids: Jitters those waits, so that rivals don't meet again.
        tries: The most writes that are tried.

    Raises:
        GaveUp: Every try met a conflict or brought no answer.
        Exception: Whatever `task` raises besides Conflict and Unknown passes through.
    """
    unclear = False
    for number in range(tries + 1):
        version = task.read()
        found = task.own(version, unclear=unclear)
        if found is not None:
            return found.value
        if number == tries:
            break
        plan = task.decide(version)
        if isinstance(plan, Done):
            return plan.value
        try:
            done = task.write(version, plan)
        except Conflict:
            done = None
        except Unknown:
            done, unclear = None, True
        if done is not None:
            return done.value
        clock.sleep(pause_seconds(number, ids))
    raise GaveUp(
        f"Gave up on {task.what} after {tries} tries: "
        + ("the last write brought no answer." if unclear else "others kept changing it."),
        unclear=unclear,
        fix="It is safe to try again.",
    )


def pause_seconds(number: int, ids: Ids) -> float:
    """The jittered wait after try `number`: up to 20 ms, doubled each time, at most a second."""
    return min(FIRST_PAUSE_SECONDS * 2.0**number, LONGEST_PAUSE_SECONDS) * ids.fraction()
