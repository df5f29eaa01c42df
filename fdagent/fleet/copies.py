"""The schedules of an environment as its agents' records tell them: who has which, and what about them is not as meant.

Guarantees: pure over the records it is given. Only what is due by itself is warned about, and only of agents that may
live: a copy of an agent that stopped or is lost runs nothing. Entities are compared as the project resolves them; a name
or glob that it doesn't know stands for itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations

from models.agent import AgentRecord, Schedule
from models.liveness import Liveness

DIFFER, TWO_PLACES = "copies_differ", "two_places"
MOST_TABLES = 3
"""Tables that a sentence names."""
ALIVE = (Liveness.ALIVE, Liveness.LATE, Liveness.UNKNOWN)
"""What may run something."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One schedule of one agent, and whether that agent may live."""

    agent: str
    schedule: Schedule
    lives: bool

    @property
    def active(self) -> bool:
        """Is it due by itself? One that is disabled, or paused until a person resumes it, has no next time."""
        return self.lives and self.schedule.next_due_at is not None


@dataclass(frozen=True, slots=True)
class Scheduled:
    """One schedule of the environment: an agent's own, or a shared one with every copy of it."""

    id: str
    shared: bool
    copies: tuple[Copy, ...]

    @property
    def agents(self) -> tuple[str, ...]:
        """Who has it."""
        return tuple(copy.agent for copy in self.copies)

    @property
    def newest(self) -> Schedule:
        """A copy to show: one that is due by itself before others."""
        return next((copy for copy in self.copies if copy.active), self.copies[0]).schedule

    @property
    def paused(self) -> tuple[str, ...]:
        """Agents on which it is paused."""
        return tuple(copy.agent for copy in self.copies if copy.schedule.paused_until is not None)


@dataclass(frozen=True, slots=True)
class Odd:
    """Something about the schedules that is hardly meant, for people; its kind for programs."""

    kind: str
    schedules: tuple[str, ...]
    sentence: str


def scheduled(agents: Sequence[tuple[AgentRecord, Liveness]]) -> list[Scheduled]:
    """The environment's schedules by id: a shared one once, however many agents have it."""
    own: list[Scheduled] = []
    shared: dict[str, list[Copy]] = {}
    for record, seems in agents:
        for schedule in record.schedules or ():
            copy = Copy(record.name, schedule, seems in ALIVE)
            if schedule.shared and schedule.id:
                shared.setdefault(schedule.id, []).append(copy)
            else:
                own.append(Scheduled(schedule.id or "?", shared=False, copies=(copy,)))
    found = [*own, *(Scheduled(name, shared=True, copies=tuple(copies)) for name, copies in shared.items())]
    return sorted(found, key=lambda one: (one.id, one.agents))


def oddities(found: Sequence[Scheduled], known: Sequence[str]) -> list[Odd]:
    """What is hardly meant.

    Args:
        found: The environment's schedules.
        known: The project's entities.
    """
    return [*_differing(found), *_mixed(found), *_twice(found, known)]


def _differing(found: Sequence[Scheduled]) -> Iterator[Odd]:
    """Copies of one shared schedule that mean something else: each makes slots of its own times, and runs its own tables."""
    for one in found:
        live = [copy for copy in one.copies if copy.lives]
        prints = {copy.schedule.fingerprint for copy in live if copy.schedule.fingerprint is not None}
        if not one.shared or len(prints) < 2:
            continue
        told = {copy.agent: _means(copy.schedule) for copy in live}
        same = "" if len(set(told.values())) > 1 else "; their cascade or backfill differs"
        listed = ", ".join(f"{agent} has {means}" for agent, means in told.items())
        yield Odd(
            DIFFER,
            (one.id,),
            f"The copies of the shared schedule {one.id} differ: {listed}{same}. Make its [[schedule]] the same in every "
            "agent.toml.",
        )


def _mixed(found: Sequence[Scheduled]) -> Iterator[Odd]:
    """A schedule that some agents share and another runs by itself."""
    shared = {one.id: one for one in found if one.shared and any(copy.active for copy in one.copies)}
    for one in found:
        other = shared.get(one.id)
        if not one.shared and other is not None and one.copies[0].active:
            yield Odd(
                TWO_PLACES,
                (one.id,),
                f"Scheduled in two places: {one.id} is shared by {', '.join(other.agents)}, and {one.agents[0]} runs a "
                "copy that is not shared. Set shared = true there too.",
            )


def _twice(found: Sequence[Scheduled], known: Sequence[str]) -> Iterator[Odd]:
    """Tables that two agents run by schedules of their own."""
    own = [one for one in found if not one.shared and one.copies[0].active]
    for one, other in combinations(own, 2):
        if one.agents == other.agents:
            continue
        both = sorted(_tables(one.newest, known) & _tables(other.newest, known))
        if both:
            more = f" and {len(both) - MOST_TABLES} more tables" if len(both) > MOST_TABLES else ""
            yield Odd(
                TWO_PLACES,
                tuple(sorted({one.id, other.id})),
                f"Scheduled in two places: {', '.join(both[:MOST_TABLES])}{more} by {one.agents[0]} ({one.id}, "
                f"{one.newest.when or 'at unknown times'}) and by {other.agents[0]} ({other.id}, "
                f"{other.newest.when or 'at unknown times'}). Share one schedule, or remove one.",
            )


def _means(schedule: Schedule) -> str:
    names = ", ".join(schedule.entities or ("*",))
    return f"{schedule.when or 'unknown times'} for {'all entities' if names == '*' else names}"


def _tables(schedule: Schedule, known: Sequence[str]) -> set[str]:
    """The tables that it names; a pattern that fits none stands for itself."""
    found: set[str] = set()
    for glob in schedule.entities or ("*",):
        found |= {name for name in known if fnmatchcase(name, glob)} or {glob}
    return found
