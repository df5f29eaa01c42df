"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Project = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="The metadata project's folder; else agent.toml's, or the one you stand in."),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The agent.toml; else FABRIC_DESKTOP_AGENT_CONFIG, or the usual place."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
