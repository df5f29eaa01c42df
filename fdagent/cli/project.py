"""`init` and `promote`: a person sets a project up, and says which version of it may run."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fdagent.cli.homes import people_audit
from fdagent.cli.options import Config, Project
from fdagent.cli.where import person, where
from fdagent.errors import UsageError
from models.ids import shown

MOST_ASKED = 3
"""Times that a person is asked who says neither yes nor no."""


def init(
    folder: Annotated[Path, typer.Argument(help="A folder that is empty or not there yet.")] = Path(),
) -> None:
    """Write a small metadata project that runs as it is."""
    from fdagent.project.scaffold import write_scaffold

    write_scaffold(folder)
    go = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    print(f"A metadata project is in {folder.resolve()}. Next:")
    print(f"  {go}fdagent promote dev && fdagent enqueue dev && fdagent run --until-idle")


def promote(
    env: Annotated[str, typer.Argument(help="The environment, as environments.toml names it.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    project: Project = None,
    config: Config = None,
) -> int:
    """Make this project's version the one that runs in an environment."""
    from fdagent.fleet.release import open_control, promote, promoted_version
    from fdagent.project.load import load_project
    from fdagent.project.places import Places, environment_named
    from fdagent.project.release import changes, git_commit
    from fdagent.system import SystemClock, SystemIds

    clock, ids = SystemClock(), SystemIds()
    place = where(project, config)
    loaded = load_project(place.project)
    environment = environment_named(loaded, env)
    store = open_control(Places(loaded, environment), clock=clock, ids=ids)
    shown = promoted_version(store)
    sentences = changes(loaded, environment, shown)
    if not sentences:
        print(f"{env} already runs metadata {loaded.metadata_version[:12]}…: nothing to promote.")
        return 0
    print("\n".join(sentences))
    if not yes and not sys.stdin.isatty():
        raise UsageError("Nobody is there to ask whether to promote.", fix="Add --yes.")
    if not yes and not _agreed(f"Promote to {env}?"):
        print("Nothing was changed.")
        return 1
    version, commit, audit = loaded.metadata_version, git_commit(loaded.root), people_audit(place, env)
    promote(store, version, shown=shown, git_commit=commit, by=person(), clock=clock, ids=ids, audit=audit)
    print(f"{env} runs metadata {loaded.metadata_version[:12]}… from now on.")
    return 0


def _agreed(question: str) -> bool:
    """Does the person say yes? Nothing said is no, and so is what they can't make up their mind about.

    Raises:
        KeyboardInterrupt: They want neither, or went away.
    """
    for _ in range(MOST_ASKED):
        try:
            said = input(f"{question} [y/N]: ").strip()
        except EOFError as err:
            raise KeyboardInterrupt from err
        if said.casefold() in ("", "y", "yes", "n", "no"):
            return said.casefold() in ("y", "yes")
        print(f"{shown(said)} is neither yes nor no: answer y or n.")
    return False
