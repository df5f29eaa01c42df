"""Options that several commands share."""

import math
from pathlib import Path
from typing import Annotated

import typer


def number(value: float | None) -> float | None:
    """What a number option was given; its bounds let `nan` pass, which is neither below nor above them.

    Raises:
        BadParameter: It is no number.
    """
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


def given(value: str | None) -> str | None:
    """What a text option was given, which never means the same as leaving it out.

    Raises:
        BadParameter: It is empty.
    """
    if value is not None and not value.strip():
        raise typer.BadParameter("it is empty, as of a shell variable that is not set.")
    return value


Project = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="The metadata project's folder; else agent.toml's, or the one you stand in."),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The agent.toml; else FABRIC_DESKTOP_AGENT_CONFIG, or the usual place."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
