"""`agents`: every agent of an environment as its record says, the schedules they share, and one that is gone forgotten."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdagent.cli.homes import people_audit
from fdagent.cli.lease import ESTIMATE
from fdagent.cli.options import Config, Json, Project, given
from fdagent.cli.where import Where, control_root, where

if TYPE_CHECKING:
    from fdagent.commit import Audit
    from fdagent.fleet.copies import Odd, Scheduled
    from fdagent.fleet.records import Found
    from fdagent.fleet.slotlog import SlotSeen
    from fdagent.ports import Store
    from models.agent import AgentRecord


def agents(
    env: Annotated[str, typer.Argument(help="The environment.")],
    forget: Annotated[
        str | None, typer.Option(metavar="NAME", callback=given, help="Delete the record of one that is gone for good.")
    ] = None,
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show the agents of an environment: whether each seems to live, what runs, and their schedules' last day."""
    place = where(project, config)
    store = control_root(place, env)
    if forget:
        _forget(store, env, forget, people_audit(place, env), as_json=as_json)
        return
    seen = _look(place, store, env)
    if as_json:
        print(json.dumps(_as_json(seen), indent=2))
        return
    from fdagent.cli import fleetview

    fleetview.agents(env, seen.found)
    fleetview.schedules(env, seen.schedules, seen.slots, seen.now)
    fleetview.odd_slots(env, seen.slots, seen.now)
    fleetview.warnings(seen.odd)


@dataclass(frozen=True, slots=True)
class Seen:
    """The agents of an environment, and its schedules with what became of the shared ones' due times."""

    env: str
    found: "Sequence[Found[AgentRecord]]"
    schedules: "Sequence[Scheduled]"
    slots: "Mapping[str, Sequence[SlotSeen]]"
    """Of each shared schedule."""
    odd: "Sequence[Odd]"
    now: float
    """The store's clock."""


def _look(place: Where, store: "Store", env: str) -> Seen:
    from fdagent.fleet.copies import oddities, scheduled
    from fdagent.fleet.records import AGENTS, read_all
    from fdagent.project.load import load_project
    from fdagent.stores.storeclock import store_now
    from fdagent.system import SystemClock
    from models.agent import AgentRecord
    from models.liveness import liveness

    found = read_all(store, AGENTS, AgentRecord)
    known = [(one.record, liveness(one.record, one.age)) for one in found if one.record is not None]
    schedules = scheduled(known)
    now = store_now(SystemClock(), store.clock_offset())
    odd = oddities(schedules, tuple(load_project(place.project).entities))
    return Seen(env, found, schedules, _slots(store, schedules, [record for record, _ in known], now), odd, now)


def _slots(
    store: "Store", schedules: "Sequence[Scheduled]", agents: "Sequence[AgentRecord]", now: float
) -> "dict[str, list[SlotSeen]]":
    """The last day's slots of each shared schedule; the mailbox is read only where there is one."""
    from fdagent.fleet.records import REQUESTS, STATUSES, id_of, read_all
    from fdagent.fleet.slotlog import slots_of
    from models.slot import PREFIX, Request
    from models.status import Status

    shared = [one for one in schedules if one.shared]
    if not shared:
        return {}
    posted, kept = read_all(store, REQUESTS, Request, PREFIX), read_all(store, STATUSES, Status, PREFIX)
    requests = {id_of(one.key): one.record for one in posted if one.record is not None}
    statuses = {id_of(one.key): one.record for one in kept if one.record is not None}
    started = {record.name: record.started_at for record in agents if record.started_at is not None}
    return {
        one.id: slots_of(
            one.id,
            one.newest.when or "",
            requests,
            statuses,
            now=now,
            since=min((started[name] for name in one.agents if name in started), default=None),
            paused=len(one.paused) == len(one.copies),
        )
        for one in shared
    }


def _as_json(seen: Seen) -> dict[str, Any]:
    unreadable = [{"key": one.key, "problem": one.problem} for one in seen.found if one.record is None]
    return {
        "env": seen.env,
        "agents": [_agent_json(one.record, one) for one in seen.found if one.record is not None],
        "unreadable": unreadable,
        "schedules": [_schedule_json(one, seen.slots.get(one.id, ())) for one in seen.schedules],
        "warnings": [
            {"kind": one.kind, "schedules": list(one.schedules), "sentence": one.sentence} for one in seen.odd
        ],
    }


def _schedule_json(one: "Scheduled", slots: "Sequence[SlotSeen]") -> dict[str, Any]:
    from models.times import stamp

    shown: dict[str, Any] = {"id": one.id, "shared": one.shared, "agents": list(one.agents), "paused": list(one.paused)}
    shown |= {"when": one.newest.when, "time_zone": one.newest.time_zone, "entities": list(one.newest.entities or ())}
    shown["next_due_at"] = None if one.newest.next_due_at is None else stamp(one.newest.next_due_at)
    if one.shared:
        shown["slots"] = [
            {
                "id": slot.id,
                "due_at": stamp(slot.due),
                "state": str(slot.state),
                "agents": list(slot.holds),
                "taken_over": slot.taken_over,
                "why": slot.why or None,
            }
            for slot in slots
        ]
    return shown


def _agent_json(record: "AgentRecord", found: "Found[AgentRecord]") -> dict[str, Any]:
    from models.liveness import liveness

    seems = str(liveness(record, found.age))
    return record.to_json() | {"age_seconds": found.age, f"liveness_{ESTIMATE}": seems}


def _forget(store: "Store", env: str, name: str, audit: "Audit", *, as_json: bool) -> None:
    from fdagent.fleet import people
    from fdagent.system import SystemClock, SystemIds
    from models.times import lasted

    def watching(record: "AgentRecord", seconds: float) -> None:
        print(
            f"{record.name} did not say goodbye: it is watched for up to {lasted(seconds)}, and stays if it beats.",
            file=sys.stderr,
        )

    people.forget_agent(store, name, clock=SystemClock(), ids=SystemIds(), watching=watching, audit=audit)
    print(json.dumps({"env": env, "forgotten": name}) if as_json else f"Forgot {name} in {env}.")
