"""`request` and `queue`: ask whichever agent serves an environment for a run, and see what became of each request."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdagent.cli import words
from fdagent.cli.homes import people_audit
from fdagent.cli.options import Config, Json, Project, given, number
from fdagent.cli.where import Where, control_root, person, where
from fdagent.errors import FdagentError, GaveUp, UsageError
from fdagent.project.problems import printable

if TYPE_CHECKING:
    from fdagent.commit import Audit
    from fdagent.ports import Clock, Ids, Store
    from models.slot import Request
    from models.status import Status

WAIT_SECONDS = 1.0
"""Between two looks at a status that is waited for."""
PAST_DEADLINE_SECONDS = 180.0
"""How long after the deadline an agent may take to end what is overdue: a minute's patience and a few polls."""
MOST_MINUTES = 366 * 1440
"""The latest deadline: who asks for more means another unit."""
Minutes = Annotated[float, typer.Option(min=1, max=MOST_MINUTES, callback=number, help="Minutes until it expires.")]
Cancel = Annotated[
    str | None, typer.Option(metavar="ID", callback=given, help="Ask that this request is cancelled instead.")
]
Abandon = Annotated[
    str | None,
    typer.Option(
        metavar="ID", callback=given, help="End this request as failed instead: its agent is not expected back."
    ),
]
Op = Annotated[
    str | None,
    typer.Option(callback=given, help="With --abandon, the op that `why ID` shows: exactly this version."),
]
LONGEST_RUN_SECONDS = 86_400.0
FAILED = 1


def request(
    env: Annotated[str, typer.Argument(help="The environment.")],
    entities: Annotated[list[str] | None, typer.Argument(help="Names or globs such as 'silver.*'; none: all.")] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="And everything downstream.")] = False,
    backfill: Annotated[str, typer.Option(help="'full': rebuild from all source rows.")] = "",
    deadline: Minutes = 1440,
    request_id: Annotated[str | None, typer.Option("--id", callback=given, help="Its id; else a random one.")] = None,
    cancel: Cancel = None,
    abandon: Abandon = None,
    op: Op = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Come back when it has ended; exit code 1 unless it succeeded.")
    ] = False,
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Ask the agents that serve an environment for a run: any one of them takes it."""
    from fdagent.fleet.asking import post_request
    from fdagent.system import SystemClock, SystemIds

    clock, ids = SystemClock(), SystemIds()
    place = where(project, config)
    store, audit = control_root(place, env), people_audit(place, env)
    if cancel or abandon or op:
        if entities or cascade or backfill or request_id or wait:
            raise UsageError("A request is posted, or one is ended, not both.", fix="Leave the other options out.")
        _wished(store, cancel or "", abandon or "", op or "", clock, ids, audit)
        return 0
    name = request_id or ids.new()[:12]
    asked = _asked(entities or [], cascade=cascade, backfill=backfill, minutes=deadline, now=clock.wall())
    post_request(store, name, asked, clock=clock, ids=ids, audit=audit)
    _warn_of_unknown(place, asked)
    if not wait:
        print(
            json.dumps({"id": name}) if as_json else f"Posted {name}. `fdagent queue {env}` shows what becomes of it."
        )
        return 0
    return _waited(store, env, name, clock, seconds=deadline * 60 + PAST_DEADLINE_SECONDS, as_json=as_json)


def _wished(
    store: "Store", cancel: str, abandon: str, op: str, clock: "Clock", ids: "Ids", audit: "Audit | None"
) -> None:
    """Cancel or abandon one: one wish at a time, and none that takes from an agent without the version that was seen."""
    from fdagent.fleet.asking import abandon_request, post_cancel

    if cancel and abandon:
        raise UsageError(
            "--cancel and --abandon can't both be asked for.", fix="Abandon only what no agent can cancel."
        )
    if op and not abandon:
        raise UsageError("--op belongs to --abandon.", fix="Name the request with --abandon ID.")
    if cancel:
        new = post_cancel(store, cancel, by=person(), clock=clock, ids=ids, audit=audit)
        print(f"Asked that {cancel} is cancelled." if new else f"That {cancel} is cancelled was asked before.")
        return
    if not op:
        raise UsageError(
            f"--abandon {abandon} needs --op.",
            fix=f"`fdagent why {abandon}` shows the op of the version that is there.",
        )
    held = abandon_request(store, abandon, op=op, by=person(), clock=clock, ids=ids, audit=audit).agent
    print(f"Ended {abandon} as failed. {held or 'Its agent'}, if it still lives, begins no further table of it;")
    print("a commit that is on its way may still land, once.")


def _asked(entities: list[str], *, cascade: bool, backfill: str, minutes: float, now: float) -> "Request":
    from models.slot import Request

    if backfill not in {"", "full"}:
        raise UsageError(f"--backfill {backfill!r} is not known.", fix="Use --backfill full.")
    return Request(
        entities=tuple(entities) or None,
        cascade=cascade or None,
        backfill=backfill or None,
        deadline=now + minutes * 60,
        submitted_by=person(),
        submitted_at=now,
    )


def _warn_of_unknown(place: Where, asked: "Request") -> None:
    """Say what this machine's project doesn't have: the promoted version may, so nothing is refused for it."""
    from fdagent.project import graph
    from fdagent.project.load import load_project

    try:
        graph.select(load_project(place.project), asked.entities or ())
    except FdagentError as err:
        print(f"Warning: {err} It is rejected unless the promoted version has it.", file=sys.stderr)


def _waited(store: "Store", env: str, name: str, clock: "Clock", *, seconds: float, as_json: bool) -> int:
    """Wait for the final status and say it; who stops waiting is told that the request goes on.

    Raises:
        GaveUp: It didn't come within `seconds`.
    """
    from models.status import RequestState

    try:
        status = _final(store, env, name, clock, seconds=seconds, quiet=as_json)
    except KeyboardInterrupt:
        print(f"Request {name} goes on: `fdagent request {env} --cancel {name}` asks that it ends.", file=sys.stderr)
        raise
    if as_json:
        print(json.dumps(status.to_json(), indent=2))
    elif why := words.why(status.state, status.error, status.reason):
        print(printable(why))
    return 0 if status.state is RequestState.SUCCEEDED else FAILED


def _final(store: "Store", env: str, name: str, clock: "Clock", *, seconds: float, quiet: bool) -> "Status":
    """The final status, which comes at the latest when the deadline has passed and an agent looks."""
    from fdagent.fleet.asking import status_of
    from models.status import FINAL

    shown, until = "", clock.elapsed() + seconds
    while True:
        status = status_of(store, name)
        if _overdue(status, clock.elapsed() - until):
            raise GaveUp(
                f"Request {name} has not ended, though its deadline has passed: it seems that no agent looks after it.",
                fix=f"`fdagent agents {env}` shows who is alive; `fdagent why {name}` what stands in the way.",
            )
        said = "waits to be claimed" if status is None else f"is {status.state} on {status.agent}"
        if said != shown and not quiet:
            print(f"{name} {said}.")
            shown = said
        if status is not None and status.state in FINAL:
            return status
        clock.sleep(WAIT_SECONDS)


def _overdue(status: "Status | None", seconds: float) -> bool:
    """Should it have ended? A run that began in time is finished by its agent, however late that is."""
    from models.status import FINAL, RequestState

    if status is not None and status.state in FINAL:
        return False
    runs = status is not None and status.state is RequestState.RUNNING
    return seconds >= (LONGEST_RUN_SECONDS if runs else 0.0)


def queue(
    env: Annotated[str, typer.Argument(help="The environment.")],
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show an environment's requests: who holds or held each, how far it is, and how it ended."""
    from fdagent.fleet.records import REQUESTS, STATUSES, id_of, read_all
    from models.slot import Request
    from models.status import Status

    store = control_root(where(project, config), env)
    posted, kept = read_all(store, REQUESTS, Request), read_all(store, STATUSES, Status)
    asked = {id_of(one.key): one.record for one in posted if one.record is not None}
    known = {id_of(one.key): one.record for one in kept if one.record is not None}
    rows = [_row(name, asked.get(name), known.get(name)) for name in sorted(asked.keys() | known.keys())]
    problems = [(one.key, one.problem) for one in posted if one.problem]
    problems += [(one.key, one.problem) for one in kept if one.problem]
    if as_json:
        print(json.dumps({"env": env, "requests": rows, "unreadable": dict(problems)}, indent=2))
        return
    from fdagent.cli import mailview
    from fdagent.stores.storeclock import store_now
    from fdagent.system import SystemClock

    mailview.requests(env, rows, problems, store_now(SystemClock(), store.clock_offset()))


def _row(name: str, asked: "Request | None", status: "Status | None") -> dict[str, Any]:
    """One request for programs."""
    from models.times import stamp

    # What is left of one whose request file is gone is in its status: the tables that it resolved to.
    entities = asked.entities if asked is not None else None if status is None else status.entities
    deadline = status.deadline if status is not None and status.deadline is not None else asked and asked.deadline
    row: dict[str, Any] = {
        "id": name,
        "state": "waiting" if status is None else str(status.state),
        "schedule": None if asked is None else asked.schedule,
        "slot": None if asked is None else asked.slot,
        "submitted_by": None if asked is None else asked.submitted_by,
        "request_file": asked is not None,
        "entities": None if entities is None else list(entities),
        "deadline": stamp(deadline) if deadline else None,
    }
    if status is None:
        return row
    return row | {
        "agent": status.agent,
        "agents": list(status.holds),
        "offered": status.offered,
        "taken_over_from": status.taken_over_from,
        "rows_written": status.rows_written,
        "error": status.error,
        "reason": status.reason,
        "finished_at": None if status.finished_at is None else stamp(status.finished_at),
    }
