"""This agent's own record in one environment: announced, beaten, drained, stopped.

Guarantees
- At most one start of an agent goes on writing under one name: an announcement over a record that still runs waits for
  two of its beats unseen, and a version that this process never wrote means that it was replaced.
- Whatever the store does, an agent goes on: what can't be written now is tried at the next beat.

Does not decide what an agent does when it is refused or replaced: it takes no more work there, and says so.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from fdagent.commit import Audit, Committed, commit
from fdagent.errors import FdagentError
from fdagent.fleet.damaged import naming
from fdagent.ports import Clock, Ids, Processes, Store
from fdagent.stores.cell import StoreCell
from fdagent.stores.sightings import Sightings
from fdagent.stores.watched import WatchedCell
from machines.agent import AGENT
from models import codec
from models.agent import AgentFacts, AgentRecord
from models.liveness import is_lost, is_silent
from models.place import process_gone
from models.step import Refusal

FOLDER = "agents/"
OPS_KEPT = 64
"""Ops of this process that are remembered: an older one can't be the newest version any more."""


def agent_key(name: str) -> str:
    """The key of an agent's record: `agents/<name>.json`."""
    return f"{FOLDER}{name}.json"


def agent_cell(store: Store, name: str) -> StoreCell[AgentRecord]:
    """An agent's record."""
    key = agent_key(name)
    parse = naming(key, lambda body: AgentRecord.from_json(codec.parse(body)))
    return StoreCell(store, key, parse, lambda r: codec.dump(r.to_json()))


class Standing(StrEnum):
    """Where this start of the agent stands in an environment."""

    WAITING = "waiting"
    """Not announced yet: the store is away, or the name may still be somebody's."""
    PRESENT = "present"
    REFUSED = "refused"
    """Another agent of this name beats."""
    REPLACED = "replaced"
    """Another start of this agent, or a clone of it, has taken its place."""


@dataclass(slots=True)
class Presence:
    """One environment's record of this start.

    Args:
        store: The environment's control root.
        env: Its name.
        instance: This start.
        describe: What the agent says of itself now, without op, state and times.
        stale_seconds: After how long without a beat others may take it for lost.
        told: Told, in a sentence, when its standing changes or a beat fails.
    """

    store: Store
    env: str
    name: str
    instance: str
    describe: Callable[[], AgentRecord]
    stale_seconds: float
    clock: Clock
    ids: Ids
    processes: Processes
    told: Callable[[str], None]
    audit: Audit | None = None
    sightings: Sightings = field(init=False)
    standing: Standing = Standing.WAITING
    _ops: deque[str] = field(default_factory=lambda: deque(maxlen=OPS_KEPT))
    _watched: str | None = None
    _trouble: str = ""
    _draining: bool = False
    _drained: bool = False

    def __post_init__(self) -> None:
        self.sightings = Sightings(self.clock)

    @property
    def serves(self) -> bool:
        """May this agent take work of this environment? An unreachable store alone stops nothing."""
        return self.standing in (Standing.WAITING, Standing.PRESENT) and self._watched is None

    def tick(self) -> None:
        """One announcement or beat; once it drains, nothing is announced any more."""
        if self.standing is Standing.PRESENT:
            self._say("drain" if self._draining and not self._drained else "beat")
        elif not self._draining:
            self._say("announce")

    def drain(self) -> None:
        """Say that no new work is taken; what fails is said at the next tick."""
        self._draining = True
        if self.standing is Standing.PRESENT:
            self._say("drain")

    def stop(self) -> None:
        """Say goodbye."""
        if self.standing is Standing.PRESENT:
            self._say("stop")

    def _say(self, event: str) -> None:
        if self.standing is Standing.REPLACED:
            return
        op = self.ids.new()
        self._ops.append(op)
        cell = WatchedCell(agent_cell(self.store, self.name), agent_key(self.name), self.sightings, self.clock)
        seen: list[AgentRecord | None] = []

        def facts(record: AgentRecord | None) -> AgentFacts:
            seen.append(record)
            return self._facts(record, cell.unchanged_seconds)

        try:
            answer = commit(
                AGENT,
                cell,
                event,
                op=op,
                facts=facts,
                clock=self.clock,
                ids=self.ids,
                key=f"{self.env}/{agent_key(self.name)}",
                audit=self.audit,
            )
        except FdagentError as err:
            self._tell_trouble(f"The agent's record in {self.env} could not be written; it is tried again. {err}")
            return
        if self._trouble:
            self._trouble = ""
            self.told(f"The control folder of {self.env} can be used again.")
        self._answered(event, answer, seen)

    def _answered(self, event: str, answer: Committed[AgentRecord] | Refusal, seen: list[AgentRecord | None]) -> None:
        if isinstance(answer, Committed):
            self._watched = None
            self._drained = event == "drain" or self._drained
            self._stand(Standing.PRESENT)
        elif event == "announce":
            self._refused(seen[-1])
        elif seen[-1] is None:
            # Somebody removed it: announce again.
            self._stand(Standing.WAITING)
        else:
            self._stand(Standing.REPLACED, f"{answer}. It takes no more work in {self.env}.")

    def _facts(self, record: AgentRecord | None, unchanged: float | None) -> AgentFacts:
        gone = record is not None and process_gone(
            record, place=self.processes.place(), started_at=self.processes.started_at
        )
        return AgentFacts(
            instance=self.instance,
            ops=frozenset(self._ops),
            holder_lost=is_lost(record, unchanged),
            process_gone=gone,
            silent=is_silent(record, unchanged),
            new=self.describe(),
            stale_seconds=self.stale_seconds,
        )

    def _refused(self, record: AgentRecord | None) -> None:
        """Somebody's record is there: the first one is watched, another version of it is a beat."""
        if record is None:
            return
        if self._watched is None:
            self._watched = record.op
            self.told(
                f"An agent named {self.name} may be alive on {record.host} in {self.env}: watching two of its beats."
            )
        elif record.op != self._watched:
            self._watched = record.op
            self._stand(
                Standing.REFUSED,
                f"Another agent named {self.name} is alive on {record.host}: this one takes no work in {self.env}.",
            )

    def _stand(self, standing: Standing, sentence: str = "") -> None:
        if standing is not self.standing:
            self.standing = standing
            if sentence:
                self.told(sentence)

    def _tell_trouble(self, sentence: str) -> None:
        """The same trouble is told once, not at each beat."""
        if sentence != self._trouble:
            self._trouble = sentence
            self.told(sentence)
