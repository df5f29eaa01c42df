"""What became of each slot of a shared schedule: posted and run, by whom, expired, or never posted at all.

Guarantees: pure over the records it is given. A due time is called missed only where it is known that the schedule was
there before it: an older slot of it is there, or an agent that has it had started. While every agent has it paused,
nothing is called missed. Older than `WINDOW_SECONDS` is nothing told: what is kept of it may be swept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fdagent.fleet.due import NEVER, Times, times_in
from models.errors import BadTime
from models.ids import MAX_SHARED_SCHEDULE_LENGTH, id_problem
from models.slot import PREFIX, Request, slot_deadline, slot_due, slot_id
from models.status import Status

WINDOW_SECONDS = 86_400.0
"""No status is swept sooner."""
MOST_SLOTS = 1500
"""More than a day has of one a minute, the most often that a shared schedule may be due."""


class Became(StrEnum):
    """What became of a slot that has no status; the state of its status otherwise."""

    WAITING = "waiting"
    EXPIRED = "expired"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class SlotSeen:
    """One due time of a shared schedule."""

    id: str
    schedule: str
    due: float
    state: str
    holds: tuple[str, ...] = ()
    """Each agent that held it, in order."""
    why: str = ""

    @property
    def taken_over(self) -> bool:
        """Did it go from one agent to another?"""
        return len(set(self.holds)) > 1

    @property
    def smooth(self) -> bool:
        """Did all go as it should, or may it still?"""
        return self.state in ("waiting", "accepted", "running", "succeeded") and not self.taken_over


def slots_of(
    schedule: str,
    words: str,
    requests: Mapping[str, Request],
    statuses: Mapping[str, Status],
    *,
    now: float,
    since: float | None,
    paused: bool,
) -> list[SlotSeen]:
    """The slots of the last day, oldest first.

    Args:
        schedule: The shared schedule's id.
        words: When it is due, as an agent's record says it; what is not understood tells of no missed slot.
        requests: The request files by id.
        statuses: The statuses by id.
        now: The store's clock.
        since: When an agent that has it started, where that is known.
        paused: Every agent has it paused.
    """
    start = f"{PREFIX}{schedule}-"
    known = {name for name in (*requests, *statuses) if name.startswith(start)}
    seen = [one for name in known if (one := _seen(schedule, name, requests.get(name), statuses.get(name), now))]
    times = None if id_problem(schedule, longest=MAX_SHARED_SCHEDULE_LENGTH) else times_in(words)
    if times is not None and not paused and (times.every_minutes or 1.0).is_integer():
        first = min([one.due for one in seen] + ([] if since is None else [since]), default=NEVER)
        seen += _missed(schedule, times, max(first, now - WINDOW_SECONDS), now, known)
    return sorted((one for one in seen if one.due > now - WINDOW_SECONDS), key=lambda one: one.due)


def counts(slots: Sequence[SlotSeen]) -> dict[str, int]:
    """How many slots are in each state."""
    return dict(Counter(one.state for one in slots))


def _seen(schedule: str, name: str, request: Request | None, status: Status | None, now: float) -> SlotSeen | None:
    try:
        due = slot_due(name.removeprefix(f"{PREFIX}{schedule}-"))
    except BadTime:
        return None  # a schedule whose id begins with this one's
    if status is not None:
        return SlotSeen(name, schedule, due, str(status.state), status.holds, status.error or status.reason or "")
    over = request is not None and request.deadline is not None and request.deadline <= now
    if over:
        return SlotSeen(name, schedule, due, Became.EXPIRED, why="No agent took it before its deadline.")
    return SlotSeen(name, schedule, due, Became.WAITING)


def _missed(schedule: str, times: Times, first: float, now: float, known: set[str]) -> Iterator[SlotSeen]:
    """Due times after `first` that nobody posted, and that nobody may post any more."""
    due = times.next_after(first)
    for _ in range(MOST_SLOTS):
        following = times.next_after(due) if due <= now else NEVER
        if due > now or now < slot_deadline(due, following):
            return
        name = slot_id(schedule, due)
        if name not in known:
            yield SlotSeen(name, schedule, due, Became.MISSED, why="No agent posted it before the next one was due.")
        due = following
