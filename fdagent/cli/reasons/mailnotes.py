"""What a person should know of a request beside its guards: who has it, who may serve it, and until when.

Guarantees: reads nothing; what is concluded from an age is called an estimate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fdagent.cli import words
from fdagent.cli.lease import ESTIMATE
from fdagent.cli.reasons.told import Mailroom

if TYPE_CHECKING:
    from fdagent.fleet.serving import Serving
    from models.agent import AgentRecord
    from models.liveness import Liveness
    from models.slot import Request
    from models.status import RequestFacts, Status
    from models.wish import Wish

MOST_AGENTS = 8
"""Agents that are named each; a larger fleet is for `agents`."""


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request as this home's agent would see it now."""

    room: Mailroom
    name: str
    status: "Status | None"
    facts: "RequestFacts"
    request: "Request | None"
    problem: str
    """Why the request file can't be read; empty: it can, or is not there."""
    serving: "Serving"
    agents: "Sequence[tuple[AgentRecord, Liveness]]"
    """The environment's agents, each with whether it seems to live."""
    pid: int | None
    """Of the agent that runs in this home; None: none does."""
    release_problem: str
    """Why the release can't be read; empty: it can, or nothing was promoted yet."""


def request_notes(seen: SeenRequest) -> Iterator[str]:
    """Everything worth knowing, the most important first."""
    from models.status import FINAL

    status = seen.status
    if status is not None and status.state in FINAL:
        yield from _ended(status)
        return
    yield from _held(seen, status) if status is not None else _free(seen)
    yield from _deadline(seen)
    if seen.facts.request_file:
        yield from _not_served(seen)
        yield from _others(seen)
    if seen.pid is None:
        yield (
            f"No agent runs in this home: the answers are those of {seen.room.place.agent} as it would start now, "
            "and nothing is done before it does."
        )
    elif not seen.facts.holds_name:
        yield (
            f"The record of {seen.room.place.agent} in {seen.room.env} does not name the agent that runs here, so it takes "
            "nothing there: it is starting, can't reach the control folder, or another agent has its name."
        )
    yield f"One look can't know that an agent is gone: agents go by what they have watched, and an {ESTIMATE} decides nothing."


def _ended(status: "Status") -> Iterator[str]:
    from models.times import stamp

    at = "" if status.finished_at is None else f" at {stamp(status.finished_at)}"
    yield f"It ended {status.state}{at}; a final status never changes: ask anew with `fdagent request {status.env}`."
    yield from _holds(status)
    if why := words.why(status.state, status.error, status.reason):
        yield f"Why: {why}"


def _holds(status: "Status") -> Iterator[str]:
    if len(status.holds) > 1:
        yield f"Held by {' → '.join(status.holds)}, in this order."
    elif status.holds:
        yield f"Held by {status.holds[0]} alone."


def _free(seen: SeenRequest) -> Iterator[str]:
    if not seen.facts.request_file:
        yield "There is a cancel file, but neither a request nor a status of this id: nothing will come of it."
    elif seen.problem:
        yield f"Its request file can't be read: {seen.problem}"
    else:
        yield "No agent has taken it yet."


def _held(seen: SeenRequest, status: "Status") -> Iterator[str]:
    job = f", as job {status.job_id}" if status.job_id else ""
    yield f"{status.agent or '?'} on {status.host or '?'} holds it{job}; op {status.op or '(none)'}."
    yield from _holds(status)
    if status.is_offered:
        yield "Its holder offers it: any agent that may serve it takes it."
    if status.error or status.reason:
        yield f"Its last attempt: {status.error or status.reason}"
    if status.agent == seen.room.place.agent:
        return
    found = [one for one in seen.agents if one[0].name == status.agent]
    if not found:
        yield f"There is no readable record of {status.agent or 'its agent'}, so it is never called gone."
        yield (
            f"If it will not come back: `fdagent request {status.env or 'ENV'} --abandon {seen.name} --op {status.op}` "
            "ends the request as failed; ask anew after that."
        )
    for holder, seems in found:
        yield from _takeover(seen, holder, seems)


def _takeover(seen: SeenRequest, holder: "AgentRecord", seems: "Liveness") -> Iterator[str]:
    from models.liveness import Liveness, lost_after_seconds
    from models.times import lasted

    yield f"{holder.name} seems {seems} ({ESTIMATE})."
    after = lost_after_seconds(holder)
    if seems not in (Liveness.ALIVE, Liveness.STOPPED) and after is not None:
        switch = "" if seen.facts.take_over else ", but [pipeline] take_over is off here"
        yield f"An agent that has watched it silent for {lasted(after)} takes the request over{switch}."


def _deadline(seen: SeenRequest) -> Iterator[str]:
    from models.times import lasted, stamp

    status, now = seen.status, seen.facts.store_now
    deadline = seen.facts.deadline if status is None or status.deadline is None else status.deadline
    if deadline is None or now is None:
        return
    if deadline > now:
        yield f"It expires at {stamp(deadline)}, in {lasted(deadline - now)}, unless it has begun."
    else:
        yield f"Its deadline, {stamp(deadline)}, passed {lasted(now - deadline)} ago."


def _not_served(seen: SeenRequest) -> Iterator[str]:
    """Why this agent may not serve it, a sentence a reason."""
    from models.liveness import covers

    serving, request = seen.serving, seen.request
    pipeline, env, me = serving.pipeline, serving.env, seen.room.place.agent
    if not pipeline.enabled:
        yield f"{me} serves no request: its agent.toml has no [pipeline] enabled = true."
        return
    if env not in pipeline.environments:
        yield f"{me} does not serve {env}: its [pipeline] environments are {', '.join(pipeline.environments)}."
    if not serving.version_fits:
        yield seen.release_problem or _versions(serving, me)
    if request is None:
        return
    resolved = serving.resolve(request)
    if request.backfill and not pipeline.allow_backfill:
        yield f"{me} serves no backfill: its [pipeline] allow_backfill is off."
    if resolved.unknown:
        yield f"The promoted version has not all of the entities that it names: {', '.join(request.entities or ())}."
    elif covers(serving.globs, resolved.entities) is False:
        yield f"{me} does not serve all of its entities: its [pipeline] entities are {', '.join(serving.globs)}."


def _versions(serving: "Serving", me: str) -> str:
    from fdagent.project.version import short

    if serving.project is None:
        return f"{me} can't load its project just now, so it serves nothing."
    if not serving.promoted:
        return f"Nothing was promoted to {serving.env} yet: `fdagent promote {serving.env}`."
    return (
        f"{serving.env} has metadata {short(serving.promoted)}…, the project of {me} is "
        f"{short(serving.project.metadata_version)}…: promote it, or check out the promoted version."
    )


def _others(seen: SeenRequest) -> Iterator[str]:
    """Which other agents that seem to live may serve it, by their records."""
    from models.liveness import Liveness, serves

    me, request = seen.room.place.agent, seen.request
    may: list[str] = []
    may_not: list[str] = []
    for record, seems in seen.agents:
        if record.name == me or seems not in (Liveness.ALIVE, Liveness.LATE):
            continue
        answer = serves(
            record,
            env=seen.room.env,
            entities=seen.facts.entities,
            backfill=request is not None and request.backfill is not None,
            version=seen.serving.promoted or None,
        )
        (may_not if answer is False else may).append(record.name)
    if may:
        yield f"By their records these other agents may serve it: {', '.join(may[:MOST_AGENTS])}."
    if may_not:
        yield f"By their records these do not: {', '.join(may_not[:MOST_AGENTS])}."
    if not may and not may_not:
        yield f"No other agent of {seen.room.env} seems to live ({ESTIMATE})."


def wish_notes(seen: SeenRequest, wish: "Wish | None", age: float | None) -> Iterator[str]:
    """Who wants it cancelled, and what that does."""
    from models.status import FINAL, RequestState
    from models.times import lasted

    who = "Somebody" if wish is None or not wish.asked_by else wish.asked_by
    since = "" if age is None else f" {lasted(age)} ago"
    yield f"{who} asked{since} that the request is cancelled."
    status = seen.status
    if status is not None and status.state is RequestState.RUNNING:
        yield "A running request of a live agent is not interrupted: its attempt finishes every table."
    elif status is not None and status.state in FINAL:
        yield "The request has ended: the file is removed with it."
    else:
        yield "The agent that holds it ends it at its next look; any other one once it has seen the file for a minute."
