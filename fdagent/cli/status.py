"""`status`: what waits, what runs, how the last jobs ended, when the schedules run, and what a person should know."""

from typing import Annotated

import typer

from fdagent.cli.options import Config, Json, Project
from fdagent.cli.quick import Look, answer


def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Draw it again each second, until Ctrl-C.")] = False,
    search: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only the jobs whose id, env, tables, source or error hold it.")
    ] = None,
    health: Annotated[
        bool, typer.Option("--health", help="Only say whether an agent runs: exit code 1 if none.")
    ] = False,
    project: Project = None,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Show the queue: counts, running and waiting jobs, the schedules, and the last 20 jobs with why they failed."""
    return answer(Look(project, config, as_json=as_json, watch=watch, health=health, search=search))
