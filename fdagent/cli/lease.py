"""`lease list` and `lease break`: who writes which table, and the way out when its holder will not come back."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdagent.cli.homes import people_audit
from fdagent.cli.options import Config, Json, Project
from fdagent.cli.where import control_root, where

if TYPE_CHECKING:
    from fdagent.fleet.records import Found
    from models.lease import Lease

ESTIMATE = "estimate"
"""Said of everything that a command concludes from an age: only a reader that watches knows (rule C4)."""

lease = typer.Typer(
    no_args_is_help=True, help="Who writes which table; a lease whose holder is gone for good can be broken."
)

Env = Annotated[str, typer.Argument(help="The environment.")]


@lease.command("list")
def list_leases(env: Env, project: Project = None, config: Config = None, as_json: Json = False) -> None:
    """List the tables that are held, by whom, and for how long."""
    from fdagent.fleet.records import LEASES, read_all
    from models.lease import Lease

    found = read_all(control_root(where(project, config), env), LEASES, Lease)
    if as_json:
        held = [_as_json(one.record, one) for one in found if one.record is not None]
        unreadable = [{"key": one.key, "problem": one.problem} for one in found if one.record is None]
        print(json.dumps({"env": env, "leases": held, "unreadable": unreadable}, indent=2))
        return
    from fdagent.cli import fleetview

    fleetview.leases(env, found)


def _as_json(record: "Lease", found: "Found[Lease]") -> dict[str, Any]:
    return record.to_json() | {"age_seconds": found.age, f"lapsed_{ESTIMATE}": seems_lapsed(record, found.age)}


def seems_lapsed(record: "Lease", age: float | None) -> bool | None:
    """Is its version older, by the store's clock, than its span? None: that can't be told."""
    from models.lease import has_lapsed, span_seconds

    return None if age is None or span_seconds(record) is None else has_lapsed(record, age)


@lease.command("break")
def break_lease(
    env: Env,
    table: Annotated[str, typer.Argument(help="<layer>.<table>, or _maintenance.")],
    op: Annotated[str, typer.Option(help="The op that `lease list` shows: exactly this version is broken.")],
    project: Project = None,
    config: Config = None,
) -> None:
    """Free a table whose holder is known not to come back; a lease lapses by itself otherwise."""
    from fdagent.fleet import people
    from fdagent.system import SystemClock, SystemIds

    place = where(project, config)
    store, audit = control_root(place, env), people_audit(place, env)
    broken = people.break_lease(store, table, op=op, clock=SystemClock(), ids=SystemIds(), audit=audit)
    print(
        f"Broke the lease of {table} in {env}, which {broken.agent or 'somebody'} held for job {broken.job_id or '?'}."
    )
    print(
        "A holder that still lives stops at its next renewal; a commit of it that is on its way may still land, once."
    )
