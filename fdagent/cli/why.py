"""`why`: each arrow open or shut from a record's present state, with every guard's answer.

Guarantees: asks the guards that decide (`fdagent/why.py`), with the facts that this home's agent would gather; what only
a watching reader can know is answered as not known, and said. A name that fits several records is asked about, one that
fits none is a sentence with what there is. Changes nothing.

What each kind of record tells, and how it is found, is in `reasons/`.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fdagent.cli.options import Config, Json, Project
from fdagent.cli.reasons.told import ASKED_BY, KINDS, Explained, Mailroom, Named, chosen
from fdagent.cli.where import Where, control_root, where
from fdagent.errors import FdagentError, NotFound, UsageError
from models.ids import id_problem, shown

if TYPE_CHECKING:
    from fdagent.project.model import Project as Metadata


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
        raise _nothing(word, kind, unreached)
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


def _nothing(word: str, kind: str, unreached: list[str]) -> NotFound:
    what = f"No {kind} is called {shown(word)}" if kind else f"Nothing is called {shown(word)}"
    looked = f" {'; '.join(unreached)} (so nothing was found there)." if unreached else ""
    return NotFound(
        f"{what}: no job, schedule, request, agent, table or incident.{looked}" if not kind else f"{what}.{looked}",
        fix="`fdagent status` lists jobs and schedules, `fdagent queue ENV` requests, `fdagent agents ENV` agents, "
        "`fdagent lease list ENV` leases.",
    )
