"""`why`: each arrow open or shut from a record's present state, with every guard's answer.

Guarantees: asks the guards that decide (`fdagent/why.py`), with the facts that this home's agent would gather; what only
a watching reader can know is answered as not known, and said. A name that fits several records is asked about, one that
fits none is a sentence with what there is. Changes nothing.

What each kind of record tells, and how it is found, is in `reasons/`.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fdagent.cli.options import Config, Json, Project
from fdagent.cli.reasons.told import ASKED_BY, KINDS, Explained, Mailroom, Named, chosen
from fdagent.cli.where import Where, control_root, where
from fdagent.errors import FdagentError, NotFound, UsageError
from fdagent.project.problems import did_you_mean, printable
from models.ids import id_problem, shown

if TYPE_CHECKING:
    from fdagent.project.model import Project as Metadata

MOST_NAMED = 4
"""Names of each kind that a sentence lists."""


def why(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ENV/]NAME...",
            help="A job's id (or how it begins), a request's, an agent, a schedule, a table (its lease), an incident, "
            "'release' or 'ledger'.",
        ),
    ],
    kind: Annotated[
        str,
        typer.Option("--kind", metavar="KIND", help=f"What the name is, where it may be several: {', '.join(KINDS)}."),
    ] = "",
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Say of a record what may happen to it, what may not, and why not: why it doesn't start, isn't taken over, isn't mine."""
    if kind and kind not in KINDS:
        raise UsageError(f"--kind {shown(kind)} is no kind of record.", fix=f"Use one of {', '.join(KINDS)}.")
    place = where(project, config)
    found = [one for word in words for one in _explained(place, word, kind)]
    if as_json:
        print(json.dumps([one.to_json() for one in found], indent=2))
        return
    from fdagent.cli import fleetview

    for one in found:
        fleetview.why((one.kind, one.name, one.env), one.state, one.answers, ASKED_BY[one.kind], one.notes)


def _explained(place: Where, word: str, kind: str) -> list[Explained]:
    """The record that a word names, with those that belong to it.

    Raises:
        NotFound: None, or several that it may mean.
        UsageError: It can't be a name.
    """
    from fdagent.fleet.people import LONGEST_TABLE

    env, slash, name = word.rpartition("/")
    problem = id_problem(name, longest=LONGEST_TABLE)
    if problem or (slash and not env):
        raise UsageError(
            f"{shown(word)} names no record: {f'{shown(name)} {problem}' if problem else 'its environment is empty'}.",
            fix="Write NAME, or ENV/NAME.",
        )
    unreached: list[str] = []
    found = [one for one in _named(place, env, name, kind, unreached) if kind in ("", one.kind)]
    if not found:
        raise _nothing(place, word, kind, env, unreached)
    return chosen(word, found).explain()


def _named(place: Where, env: str, name: str, kind: str, unreached: list[str]) -> Iterator[Named]:
    """Every record that the name fits; an environment that can't be looked through is added to `unreached`."""
    from fdagent.cli.reasons import fleet, incidents, jobs, leases, mail

    if kind in ("", "job"):
        yield from jobs.find_jobs(place, env, name)
    if kind in ("", "schedule"):
        yield from jobs.find_schedules(place, env, name)
    shared = {
        "request": mail.find_requests,
        "agent": fleet.find_agents,
        "lease": leases.find_leases,
        "release": fleet.find_releases,
        "ledger": incidents.find_incidents,
        "incident": incidents.find_incidents,
    }
    for room in _rooms(place, env, unreached):
        for find in dict.fromkeys(shared[one] for one in shared if kind in ("", one)):
            try:
                yield from find(room, name)
            except FdagentError as err:
                if env:
                    raise
                unreached.append(f"{room.env}: {err}")


def _rooms(place: Where, env: str, unreached: list[str]) -> Iterator[Mailroom]:
    """The environments to look through: the one that is named, or all that this agent runs."""
    if env:
        yield Mailroom(place, env, control_root(place, env))
        return
    from fdagent.project.load import load_project

    loaded: Metadata = load_project(place.project)
    named = loaded.environments if place.settings is None else place.settings.agent.environments
    for one in named:
        try:
            yield Mailroom(place, one, control_root(place, one))
        except FdagentError as err:
            unreached.append(f"{one}: {err}")


def _nothing(place: Where, word: str, kind: str, env: str, unreached: list[str]) -> NotFound:
    """Say what there is instead, the nearest name first."""
    there = _there(place, env)
    known = [name for names in there.values() for name in names]
    hint = did_you_mean(word.rpartition("/")[2], known) if known else ""
    near = hint if hint.endswith("?") else ""
    listed = "; ".join(f"{what} {_few(names)}" for what, names in there.items() if names)
    looked = "".join(f" But not everything could be looked through, in {one}" for one in unreached)
    return NotFound(
        f"{f'No {kind}' if kind else 'Nothing'} is called {shown(word)}{near or '.'}{looked}",
        fix=f"There are {listed}." if listed else "There is nothing yet: `fdagent enqueue ENV` asks for a run.",
    )


def _there(place: Where, env: str) -> dict[str, list[str]]:
    """What could have been named."""
    from fdagent.cli.homes import queue
    from fdagent.fleet.records import AGENTS, REQUESTS, STATUSES, id_of
    from fdagent.project.load import load_project

    schedules = () if place.settings is None else place.settings.schedules
    found: dict[str, set[str]] = {"requests": set(), "agents": set()}
    for room in _rooms(place, env, []):
        with contextlib.suppress(FdagentError):
            found["agents"] |= {id_of(entry.key) for entry in room.store.list(AGENTS)}
            for folder in (REQUESTS, STATUSES):
                found["requests"] |= {id_of(entry.key) for entry in room.store.list(folder)}
    with queue(place) as jobs:
        kept = [] if jobs is None else [*jobs.unfinished(), *jobs.finished(MOST_NAMED + 1)]
    return {
        "jobs": [job.id for job in kept],
        "schedules": [one.id for one in schedules if env in ("", one.env)],
        **{what: sorted(names) for what, names in found.items()},
        "tables": sorted(load_project(place.project).entities),
    }


def _few(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(map(printable, names[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
