"""`demo`: real flights become Delta tables, with no cloud and no configuration."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

FOLDER = Path(".demo")


def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo project lies.")] = FOLDER,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the demo's folder, and do nothing else.")] = False,
) -> int:
    """Unpack a project with real data, promote and run it, and show what came of it."""
    from fdagent.demo.unpack import is_demo

    if clean:
        if is_demo(folder):
            shutil.rmtree(folder)
            print(f"Removed {folder}.")
        else:
            print(f"{folder} is no unpacked demo: nothing was removed.")
        return 0
    from fdagent.demo.play import play

    return play(folder)
