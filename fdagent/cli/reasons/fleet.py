"""`why` of an agent's record and of an environment's release.

Guarantees: the facts are those of an agent of this machine that has just begun to watch, and of a person; whether an
agent lives is an estimate by its record's age, and said to be one.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fdagent.cli.lease import ESTIMATE
from fdagent.cli.reasons.told import Explained, Mailroom, Named

if TYPE_CHECKING:
    from models.agent import AgentFacts, AgentRecord
    from models.release import Release

RELEASE_NAME = "release"


def find_agents(room: Mailroom, name: str) -> Iterator[Named]:
    """The record of an agent of that name."""
    from fdagent.fleet.presence import agent_key

    if room.store.read(agent_key(name)) is not None:
        yield Named("agent", room.env, name, lambda: [_agent(room, name)])


def _agent(room: Mailroom, name: str) -> Explained:
    from fdagent.fleet.presence import agent_cell, agent_key
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.agent import AGENT
    from models.step import ABSENT

    record, _ = agent_cell(room.store, name).read()
    blob = room.store.read(agent_key(name))
    answers = explain(AGENT, record, _agent_facts(room, name, record), SystemClock().wall())
    notes = () if record is None else tuple(_agent_notes(record, None if blob is None else blob.age))
    return Explained("agent", name, room.env, ABSENT if record is None else str(record.state), answers, notes)


def _agent_facts(room: Mailroom, name: str, record: "AgentRecord | None") -> "AgentFacts":
    """Ops and instance are the asker's own, and nobody asks for this record but its agent: so there are none."""
    from fdagent.fleet.people import names_open_request
    from fdagent.system import SystemProcesses
    from models.agent import AgentFacts
    from models.place import process_gone

    processes = SystemProcesses()
    gone = record is not None and process_gone(record, place=processes.place(), started_at=processes.started_at)
    return AgentFacts(by_a_person=True, process_gone=gone, open_requests=names_open_request(room.store, name))


def _agent_notes(record: "AgentRecord", age: float | None) -> Iterator[str]:
    from models.agent import AgentState
    from models.liveness import liveness, lost_after_seconds
    from models.times import lasted

    seems, after = liveness(record, age), lost_after_seconds(record)
    wrote = "at a time that makes no sense" if age is None else f"{lasted(age)} ago"
    yield f"It wrote its record {wrote} on {record.host or '?'} (pid {record.pid or '?'}), so it seems {seems} ({ESTIMATE})."
    if record.state is not AgentState.STOPPED:
        lost = "never, for it does not say how often it beats" if after is None else f"after {lasted(after)} of silence"
        yield f"Others call it lost {lost}, once they have themselves watched it for so long; an age decides nothing."
        yield "Beat, drain and stop are its own process's alone: the answers are those of anybody else."


def find_releases(room: Mailroom, name: str) -> Iterator[Named]:
    """The release of an environment, which is called `release`."""
    if name == RELEASE_NAME:
        yield Named("release", room.env, name, lambda: [_release(room)])


def _release(room: Mailroom) -> Explained:
    from fdagent.fleet.release import promoted
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.release import RELEASE
    from models.release import ReleaseFacts
    from models.step import ABSENT

    record = promoted(room.store)
    facts = ReleaseFacts(by_a_person=True, shown="" if record is None else record.metadata_version)
    answers = explain(RELEASE, record, facts, SystemClock().wall())
    state = ABSENT if record is None else str(record.state)
    return Explained("release", RELEASE_NAME, room.env, state, answers, tuple(_release_notes(room, record)))


def _release_notes(room: Mailroom, record: "Release | None") -> Iterator[str]:
    from fdagent.project.load import load_project
    from fdagent.project.version import short
    from models.times import stamp

    here = load_project(room.place.project).metadata_version
    if record is None:
        yield f"Nothing was promoted to {room.env} yet, so nothing runs there: `fdagent promote {room.env}`."
        return
    when = "" if record.promoted_at is None else f" at {stamp(record.promoted_at)}"
    yield f"{record.promoted_by or 'Somebody'} promoted metadata {short(record.metadata_version)}…{when}."
    if record.metadata_version == here:
        yield "This project is that version, so an agent that has it may run it."
    else:
        yield (
            f"This project is metadata {short(here)}…: an agent that has it runs nothing in {room.env} until somebody "
            "promotes it, or checks the promoted version out."
        )
