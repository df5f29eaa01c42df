"""An agent's own record: who it is, where it runs, what it serves, and that it still beats.

Guarantees: at most one start of an agent (an instance) goes on writing under one name, for a version that another
process wrote is never overwritten by a beat; unknown fields survive every beat. Does not say whether an agent lives:
its readers judge that by what they see (`liveness.py`), and nothing of it is stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from models.jsonrecord import JsonPart, JsonRecord, Later, Time
from models.person import PersonFacts
from models.step import Guard, Step, guard


class AgentState(StrEnum):
    """`stopping`: it takes no new work and still beats. `stopped`: it said goodbye."""

    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob(JsonPart):
    """One job that runs now."""

    WHAT: ClassVar[str] = "running job"

    job_id: Annotated[str | None, "The job"] = None
    entity: Annotated[str | None, "The table it is at"] = None
    started_at: Annotated[Time | None, "When its attempt began"] = None
    attempt: Annotated[int | None, "Which attempt it is"] = None
    source: Annotated[str | None, "`cli`, `schedule:<id>` or `pipeline:<request id>`"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(JsonPart):
    """One of its schedules."""

    WHAT: ClassVar[str] = "schedule"

    id: Annotated[str | None, "The schedule's id"] = None
    entities: Annotated[tuple[str, ...] | None, Later("Names and globs of what it runs")] = None
    when: Annotated[str | None, Later("When it is due, in words")] = None
    time_zone: Annotated[str | None, "The zone its times are in"] = None
    shared: Annotated[bool | None, "Posted as slots that any agent may claim"] = None
    last_due_at: Annotated[Time | None, "The newest due time that was dealt with"] = None
    next_due_at: Annotated[Time | None, "The next one"] = None
    paused_until: Annotated[Time | None, "Until when a person paused it"] = None
    fingerprint: Annotated[
        str | None, "Of id, env, entities, cascade, backfill, times and zone: equal copies agree"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(JsonPart):
    """What it serves of the mailbox."""

    WHAT: ClassVar[str] = "pipeline"

    enabled: Annotated[bool | None, "It serves the mailbox"] = None
    claim: Annotated[str | None, "`always`, or `when_free`: only with a free worker"] = None
    take_over: Annotated[bool | None, Later("It takes over what a gone agent held")] = None
    entities: Annotated[tuple[str, ...] | None, "Globs of the entities it serves; all is written as `*`"] = None
    allow_backfill: Annotated[bool | None, "It serves rebuilds"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSettings(JsonPart):
    """Whether and how it evaluates incidents."""

    WHAT: ClassVar[str] = "incident settings"

    enabled: Annotated[bool | None, "It evaluates"] = None
    evaluated_at: Annotated[Time | None, "When it last did"] = None
    fingerprint: Annotated[str | None, "Of its routes and hours: agents should agree"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord(JsonRecord):
    """`agents/<name>.json`. Holds jobs and schedules of this environment only."""

    WHAT: ClassVar[str] = "agent record"

    name: Annotated[str, "The agent"]
    state: Annotated[AgentState, "What it says of itself"]
    instance: Annotated[str | None, Later("A random id of this start of its daemon")] = None
    op: Annotated[str, Later("The write that made this version")] = ""
    host: Annotated[str | None, "Where it runs"] = None
    boot: Annotated[str | None, Later("Its place: host, boot identity and pid namespace in one word")] = None
    pid: Annotated[int | None, "The daemon's process"] = None
    process_started_at: Annotated[
        float | None, Later("When that process started, as its place counts: compared for equality only")
    ] = None
    os: Annotated[str | None, "The operating system"] = None
    version: Annotated[str | None, "The version of fdagent"] = None
    started_at: Annotated[Time | None, "When this start began, by its clock"] = None
    heartbeat_at: Annotated[Time | None, "When it wrote this version, by its clock"] = None
    stale_after: Annotated[Time | None, "`heartbeat_at` and its stale span, for readers that go by the clock"] = None
    grace_seconds: Annotated[float | None, Later("How much longer than that span others wait before it is lost")] = None
    status_seconds: Annotated[float | None, "Between two beats"] = None
    env: Annotated[str | None, "The environment this record is for"] = None
    metadata_version: Annotated[str | None, "The project version it has"] = None
    owner: Annotated[str | None, Later("Whom to ask about it")] = None
    identity: Annotated[str | None, Later("As whom it signs in")] = None
    credential: Annotated[str | None, Later("By what kind of credential; never the secret")] = None
    concurrency: Annotated[int | None, "How many workers it may have"] = None
    running: Annotated[tuple[RunningJob, ...] | None, "Its running jobs"] = None
    queue: Annotated[Mapping[str, int] | None, "How many jobs are in each state"] = None
    schedules: Annotated[tuple[Schedule, ...] | None, "Its schedules"] = None
    pipeline: Annotated[Pipeline | None, "What it serves of the mailbox"] = None
    incidents: Annotated[IncidentSettings | None, "Whether it evaluates incidents"] = None
    clock_offset_seconds: Annotated[float | None, "The store's clock minus its own"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts(PersonFacts):
    """What one judgement of an agent record needs; the default of each is the answer that opens nothing."""

    instance: str = ""
    """The start that asks."""
    ops: frozenset[str] = frozenset()
    """The ops that this process wrote, or tried to write, on this record."""
    holder_lost: bool = False
    """`models.liveness.is_lost`."""
    process_gone: bool = False
    """`models.place.process_gone`."""
    silent: bool = False
    """Watched for two of its beats without a change: `models.liveness.is_silent`."""
    open_requests: bool | None = None
    """Some open request names it; None: that could not be looked up."""
    new: AgentRecord | None = None
    """What this process says of itself now, without op, state and times."""
    stale_seconds: float = 90.0


AgentStep = Step[AgentRecord, AgentFacts]
AgentGuard = Guard[AgentRecord, AgentFacts]


@guard("this start of the agent is named", "another start of the agent is named")
def mine(step: AgentStep) -> bool:
    """The instance is the asker's."""
    return bool(step.facts.instance) and step.was.instance == step.facts.instance


@guard("this process wrote its last version", "another process wrote its last version: this one was replaced")
def unreplaced(step: AgentStep) -> bool:
    """Asked beside `mine`, for a cloned machine may even share the instance."""
    return bool(step.was.op) and step.was.op in step.facts.ops


@guard(
    "its process is gone, it is lost, or it was silent for two beats while watched",
    "an agent of this name may be alive: it is watched for two beats",
)
def name_free(step: AgentStep) -> bool:
    """Nobody beats under this name."""
    facts = step.facts
    return facts.holder_lost or facts.process_gone or facts.silent


@guard("it is lost", "it is not lost")
def lost(step: AgentStep) -> bool:
    """Seen unchanged for its stale span and grace."""
    return step.facts.holder_lost


@guard("no open request names it", "an open request names it, or that could not be looked up")
def unneeded(step: AgentStep) -> bool:
    """Forgetting it would leave nothing that waits for it: an agent without a record is never called gone."""
    return step.facts.open_requests is False


def _said(step: AgentStep, state: AgentState) -> AgentRecord:
    """What the agent says of itself now; what the old version held beside stays."""
    said = step.was if step.facts.new is None else step.facts.new
    kept: Mapping[str, Any] = {} if step.record is None else step.record.extra
    return replace(
        said,
        state=state,
        op=step.op,
        heartbeat_at=step.now,
        stale_after=step.now + step.facts.stale_seconds,
        started_at=None if step.record is None else step.record.started_at,
        extra={**kept, **said.extra},
    )


def announce(step: AgentStep) -> AgentRecord:
    """Running, as this start."""
    if step.facts.new is None or step.facts.new.instance != step.facts.instance:
        raise AssertionError("announce without a record of the start that asks")
    return replace(_said(step, AgentState.RUNNING), started_at=step.now)


def beat(step: AgentStep) -> AgentRecord:
    """Still there, with what it does now."""
    return _said(step, step.was.state)


def drain(step: AgentStep) -> AgentRecord:
    """It takes no new work."""
    return _said(step, AgentState.STOPPING)


def stop(step: AgentStep) -> AgentRecord:
    """It is gone for good, and says so."""
    return _said(step, AgentState.STOPPED)


def forget(step: AgentStep) -> None:  # a deletion has no next record
    """Nothing is left of it but what it did."""
