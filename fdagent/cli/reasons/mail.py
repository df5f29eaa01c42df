"""`why` of a request: its status, its request file and its cancel file.

Guarantees: the facts are gathered by an agent's own mailbox (`fleet/mailbox.py`), for this home's agent, after one look
at the whole mailbox. One look can't watch: that an agent is gone, or that a file has been there for a minute, it can't
know, so those guards answer as of an agent that has just begun to watch, and what ages suggest is said beside them as an
estimate (`mailnotes.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fdagent.cli.homes import empty_jobs, queue
from fdagent.cli.reasons.mailnotes import SeenRequest, request_notes, wish_notes
from fdagent.cli.reasons.told import Explained, Mailroom, Named
from fdagent.cli.where import running_agent

if TYPE_CHECKING:
    from fdagent.config.settings import Settings
    from fdagent.fleet.mailbox import Mailbox
    from fdagent.fleet.presence import Presence
    from fdagent.queue.jobs import Jobs

DAY_SECONDS = 86_400.0


def find_requests(room: Mailroom, name: str) -> Iterator[Named]:
    """The request of that id, by whatever file it has left."""
    from fdagent.fleet.records import cancel_key, request_key, status_key

    if any(room.store.read(key(name)) is not None for key in (status_key, request_key, cancel_key)):
        yield Named("request", room.env, name, lambda: explain_request(room, name))


def explain_request(room: Mailroom, name: str) -> list[Explained]:
    """The request, then its request file and its cancel file where they are there."""
    from fdagent.fleet.records import cancel_key
    from fdagent.system import SystemClock
    from fdagent.why import explain
    from machines.request import REQUEST
    from models.step import ABSENT

    with queue(room.place) as jobs:
        seen = _seen(room, name, empty_jobs() if jobs is None else jobs)
    now, status = SystemClock().wall(), seen.status
    answers = explain(REQUEST, status, seen.facts, now)
    state = ABSENT if status is None else str(status.state)
    found = [Explained("request", name, room.env, state, answers, tuple(request_notes(seen)))]
    if seen.facts.request_file:
        found.append(_slot(seen, now))
    if room.store.read(cancel_key(name)) is not None:
        found.append(_wish(seen, now))
    return found


def _seen(room: Mailroom, name: str, jobs: "Jobs") -> SeenRequest:
    """The request as this home's agent would see it now."""
    from fdagent.cli.run import settings_of
    from fdagent.fleet.records import AGENTS, read_all
    from models.agent import AgentRecord
    from models.job import JobState
    from models.liveness import liveness
    from models.status import RequestState

    settings = settings_of(room.place)
    box = _mailbox(room, settings, jobs)
    box.look.poll()
    status, facts = box.seen(name)
    file = box.look.request(name, fresh=False)
    job = jobs.get(facts.job_id or "")
    back = job is not None and job.state is JobState.QUEUED
    facts = replace(
        facts,
        by_a_person=True,
        named_op="" if status is None else status.op,
        to_be_tried_again=back and status is not None and status.state is RequestState.RUNNING,
        retention_seconds=settings.pipeline.retention_days * DAY_SECONDS,
    )
    request, problem = (None, "") if file is None else (file.record, file.problem)
    agents = [
        (one.record, liveness(one.record, one.age))
        for one in read_all(room.store, AGENTS, AgentRecord)
        if one.record is not None
    ]
    pid = running_agent(room.place)
    return SeenRequest(room, name, status, facts, request, problem, box.serving(), agents, pid, _release_problem(room))


def _release_problem(room: Mailroom) -> str:
    from fdagent.errors import BadRecord, NewerContract
    from fdagent.fleet.release import promoted

    try:
        promoted(room.store)
    except (BadRecord, NewerContract) as err:
        return str(err)
    return ""


def _mailbox(room: Mailroom, settings: "Settings", jobs: "Jobs") -> "Mailbox":
    """The mailbox of this home's agent, wired as its daemon wires it; nothing here lets it act."""
    from fdagent.daemon.home import DRAIN
    from fdagent.daemon.mail import Mail
    from fdagent.fleet.look import Me
    from fdagent.project.watch import ProjectWatch
    from fdagent.system import SystemClock, SystemIds

    place, clock, ids = room.place, SystemClock(), SystemIds()
    here = running_agent(place) is not None
    presence = _presence(room, settings)
    mail = Mail(
        settings=settings,
        me=Me(place.agent, presence.instance, place.host),
        jobs=jobs,
        watch=ProjectWatch(place.project, clock),
        served=lambda: settings.agent.environments,
        shared=lambda _env: [],
        stopping=lambda: here and bool(jobs.wish(DRAIN)),
        queued=lambda: None,
        clock=clock,
        ids=ids,
        tell=lambda *_, **__: None,
        audit=None,
    )
    return mail.duties(room.env, room.store, presence)[0]


def _presence(room: Mailroom, settings: "Settings") -> "Presence":
    """Where the agent of this home stands: the start that its record names, or, where none runs, one that starts now."""
    from fdagent.fleet.presence import Presence, Standing, agent_cell
    from fdagent.system import SystemClock, SystemIds, SystemProcesses
    from models.agent import AgentRecord, AgentState

    place, ids = room.place, SystemIds()
    record, _ = agent_cell(room.store, place.agent).read()
    pid = running_agent(place)
    ours = record is not None and pid is not None and record.host == place.host and record.pid in (pid, None)
    instance = record.instance if ours and record is not None and record.instance else ids.new()
    about = AgentRecord(name=place.agent, state=AgentState.RUNNING, instance=instance)
    presence = Presence(
        room.store,
        room.env,
        place.agent,
        instance,
        lambda: about,
        settings.agent.stale_seconds,
        SystemClock(),
        ids,
        SystemProcesses(),
        lambda _sentence: None,
    )
    presence.standing = Standing.PRESENT if ours or pid is None else Standing.WAITING
    return presence


def _slot(seen: SeenRequest, now: float) -> Explained:
    from fdagent.why import explain
    from machines.slot import SLOT
    from models.slot import Request, SlotFacts

    record = Request() if seen.request is None else seen.request
    facts = SlotFacts(**_sweep_facts(seen))
    notes = []
    if record.slot is not None:
        notes.append(f"It is the slot {record.slot} of the shared schedule {record.schedule or '?'}.")
    if seen.problem:
        notes.append(f"It can't be read: {seen.problem}")
    elif record.submitted_by:
        notes.append(f"{record.submitted_by} asked for it.")
    return Explained(
        "slot", seen.name, seen.room.env, str(record.state), explain(SLOT, record, facts, now), tuple(notes)
    )


def _wish(seen: SeenRequest, now: float) -> Explained:
    from fdagent.fleet.records import cancel_key, wish_cell
    from fdagent.why import explain
    from machines.wish import WISH
    from models.step import ABSENT
    from models.wish import WishFacts

    record, _ = wish_cell(seen.room.store, seen.name).read()
    blob, at = seen.room.store.read(cancel_key(seen.name)), seen.facts.store_now
    age = None if blob is None else blob.age
    facts = WishFacts(
        **_sweep_facts(seen),
        orphan=seen.status is None and not seen.facts.request_file,
        file_written_at=None if age is None or at is None else at - age,
    )
    state = ABSENT if record is None else str(record.state)
    notes = tuple(wish_notes(seen, record, age))
    return Explained("wish", seen.name, seen.room.env, state, explain(WISH, record, facts, now), notes)


def _sweep_facts(seen: SeenRequest) -> dict[str, Any]:
    """What the sweeper would know."""
    from models.status import FINAL

    status = seen.status
    return {
        "store_now": seen.facts.store_now,
        "status_final": status is not None and status.state in FINAL,
        "finished_at": None if status is None else status.finished_at,
        "deadline": seen.facts.deadline if status is None or status.deadline is None else status.deadline,
        "retention_seconds": seen.facts.retention_seconds,
    }
