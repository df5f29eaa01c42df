"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Project = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="The metadata project's folder; else the one you stand in."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
