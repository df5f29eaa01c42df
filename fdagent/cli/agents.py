"""`agents`: every agent of an environment as its record says, and one that is gone for good forgotten."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdagent.cli.homes import people_audit
from fdagent.cli.lease import ESTIMATE
from fdagent.cli.options import Config, Json, Project
from fdagent.cli.where import control_root, where

if TYPE_CHECKING:
    from fdagent.commit import Audit
    from fdagent.fleet.records import Found
    from fdagent.ports import Store
    from models.agent import AgentRecord


def agents(
    env: Annotated[str, typer.Argument(help="The environment.")],
    forget: Annotated[str, typer.Option(metavar="NAME", help="Delete the record of one that is gone for good.")] = "",
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show the agents of an environment: what each says of itself, and whether it seems to live."""
    place = where(project, config)
    store = control_root(place, env)
    if forget:
        _forget(store, env, forget, people_audit(place, env), as_json=as_json)
        return
    from fdagent.fleet.records import AGENTS, read_all
    from models.agent import AgentRecord

    found = read_all(store, AGENTS, AgentRecord)
    if as_json:
        shown = [_as_json(one.record, one) for one in found if one.record is not None]
        unreadable = [{"key": one.key, "problem": one.problem} for one in found if one.record is None]
        print(json.dumps({"env": env, "agents": shown, "unreadable": unreadable}, indent=2))
        return
    from fdagent.cli import fleetview

    fleetview.agents(env, found)


def _as_json(record: "AgentRecord", found: "Found[AgentRecord]") -> dict[str, Any]:
    from models.liveness import liveness

    seems = str(liveness(record, found.age))
    return record.to_json() | {"age_seconds": found.age, f"liveness_{ESTIMATE}": seems}


def _forget(store: "Store", env: str, name: str, audit: "Audit", *, as_json: bool) -> None:
    from fdagent.fleet import people
    from fdagent.system import SystemClock, SystemIds

    def watching(record: "AgentRecord", seconds: float) -> None:
        print(
            f"{record.name} did not say goodbye: it is watched for up to {seconds:.0f} s, and stays if it beats.",
            file=sys.stderr,
        )

    people.forget_agent(store, name, clock=SystemClock(), ids=SystemIds(), watching=watching, audit=audit)
    print(json.dumps({"env": env, "forgotten": name}) if as_json else f"Forgot {name} in {env}.")
