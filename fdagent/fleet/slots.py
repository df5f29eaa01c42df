"""Shared schedules: each due time is one request, posted by whichever agent comes first.

Guarantees: a slot's key is made of the due time, so of all agents one CREATE wins and the others are refused; it is
posted only once it is due and before its deadline, by the store's clock (rule C4), so an agent whose own clock is an
interval off posts nothing early or late, and one that comes up after the deadline posts nothing. Posting again what was
posted is refused as well.

Does not claim what it posts: the mailbox does, at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fdagent.commit import Audit, Committed, commit
from fdagent.config.schedules import Schedule
from fdagent.errors import FdagentError
from fdagent.fleet.due import Times
from fdagent.fleet.records import request_cell, request_key
from fdagent.ports import Clock, Ids, Store
from machines.slot import SLOT
from models.slot import LONGEST_SLOT_SECONDS, Request, SlotFacts, slot_deadline, slot_id, slot_name
from models.step import ABSENT

LOOK_BACK_SECONDS = LONGEST_SLOT_SECONDS
"""A slot is open for at most this long, so an older due time is nobody's any more."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One due time of a shared schedule."""

    id: str
    schedule: Schedule
    due: float
    deadline: float

    def request(self) -> Request:
        """The request it is posted as."""
        schedule = self.schedule
        return Request(
            entities=schedule.entities or None,
            cascade=schedule.cascade or None,
            backfill=schedule.backfill or None,
            deadline=self.deadline,
            submitted_by=f"schedule {schedule.id}",
            submitted_at=self.due,
            schedule=schedule.id,
            slot=slot_name(self.due),
            due_at=self.due,
        )


def slot_at(schedule: Schedule, now: float) -> Slot | None:
    """The slot that may be posted at `now`, in epoch seconds of the store's clock: the newest due time, if still open.

    Raises:
        ConfigError: The schedule's zone is not known here.
    """
    times = Times(schedule.every_minutes, schedule.daily, schedule.weekly, schedule.time_zone)
    found = None
    due = times.next_after(now - LOOK_BACK_SECONDS)
    if schedule.every_minutes is not None:
        step = schedule.every_minutes * 60
        due = now // step * step
    while due <= now:
        following = times.next_after(due)
        deadline = slot_deadline(due, following)
        if now < deadline:
            found = Slot(slot_id(schedule.id, due), schedule, due, deadline)
        due = following
    return found


@dataclass(slots=True)
class Posting:
    """Posts the slots of one environment's shared schedules.

    Args:
        schedules: Those that are enabled and not paused, now.
        posted: Told of each slot this agent posted; polls the mailbox at once.
    """

    env: str
    store: Store
    schedules: Callable[[], Sequence[Schedule]]
    posted: Callable[[Slot], None]
    clock: Clock
    ids: Ids
    tell: Callable[..., None]
    audit: Audit | None = None
    every: float = 1.0
    _done: dict[str, str] = field(default_factory=dict)
    """Schedule to the newest slot that is known to be there."""

    def tick(self) -> None:
        """Post what is due.

        Raises:
            FdagentError: The first of what went wrong, after the other schedules had their turn; tried again at the
                next one, while the slot is open.
        """
        offset = self.store.clock_offset()
        if offset is None:
            return
        failed: FdagentError | None = None
        for schedule in self.schedules():
            try:
                slot = slot_at(schedule, self.clock.wall() + offset)
                if slot is not None and self._done.get(schedule.id) != slot.id:
                    self._post(slot)
            except FdagentError as err:
                # One that can't be posted, such as one of an unknown time zone, keeps no other from it.
                failed = failed or err
        if failed is not None:
            raise failed

    def _post(self, slot: Slot) -> None:
        def facts(_: Request | None) -> SlotFacts:
            offset = self.store.clock_offset()
            return SlotFacts(store_now=None if offset is None else self.clock.wall() + offset, new=slot.request())

        answer = commit(
            SLOT,
            request_cell(self.store, slot.id),
            "post",
            op=self.ids.new(),
            facts=facts,
            clock=self.clock,
            ids=self.ids,
            key=f"{self.env}/{request_key(slot.id)}",
            audit=self.audit,
        )
        if isinstance(answer, Committed) or answer.source != ABSENT:
            self._done[slot.schedule.id] = slot.id
        if isinstance(answer, Committed):
            self.tell("info", "slot_posted", f"Posted {slot.id}.", request_id=slot.id, env=self.env)
            self.posted(slot)
