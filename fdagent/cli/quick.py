"""`status` and `run` without the command line library.

Guarantees: `parsed` and `running` understand only plain uses of their command, and those as typer would; every other one,
right or wrong, is left to it. What either asks for is the same, with the same answer.

The library takes longer to import than a status takes to read, and a health check reads one every few seconds on a
machine that has other things to do; in the daemon it would take a quarter of the memory, for months.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fdagent.cli.where import Where, running_agent, where
from fdagent.errors import UsageError

STATUS, RUN = "status", "run"
FLAGS = {"--watch": "watch", "-w": "watch", "--health": "health", "--json": "as_json"}
VALUES = {"--search": "search", "--project": "project", "-p": "project", "--config": "config", "-c": "config"}
PATHS = ("project", "config")
WAITING, WAITING_JSON = 20, 10_000
"""The most waiting jobs that are read for a person, and for a program."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a person wants to see of a home."""

    project: Path | None = None
    config: Path | None = None
    as_json: bool = False
    watch: bool = False
    health: bool = False
    search: str | None = None


def parsed(words: Sequence[str]) -> Look | None:
    """What a plain `status` asks for; None: typer is to be asked."""
    found = _plain(words, STATUS)
    return None if found is None else Look(**found)  # type: ignore[arg-type]  # FLAGS are the flags, PATHS the paths


def running(words: Sequence[str]) -> dict[str, Path] | None:
    """What a plain `run` of the daemon names: `project` and `config`; None: typer is to be asked."""
    found = _plain(words, RUN)
    if found is None or set(found) - set(PATHS):
        return None
    return {name: path for name, path in found.items() if isinstance(path, Path)}


def _plain(words: Sequence[str], command: str) -> dict[str, bool | str | Path] | None:
    if not words or words[0] != command:
        return None
    found: dict[str, bool | str | Path] = {}
    rest = iter(words[1:])
    for word in rest:
        if word in FLAGS:
            found[FLAGS[word]] = True
            continue
        name, value = VALUES.get(word, ""), next(rest, "")
        if not name or not value or value.startswith("-") or name in found:
            return None
        found[name] = Path(value) if name in PATHS else value
    return found


def answer(look: Look) -> int:
    """Show it; the exit code.

    Raises:
        UsageError: Its parts don't go together.
    """
    alone = [name for name, asked in (("--watch", look.watch), ("--health", look.health)) if asked]
    alone += ["--search"] if look.search is not None else []
    if len(alone) > 1 or (look.watch and look.as_json):
        names = " and ".join(alone if len(alone) > 1 else ["--watch", "--json"])
        raise UsageError(f"{names} don't go together.", fix="Ask for one of them.")
    if look.watch and not sys.stdout.isatty():
        raise UsageError(
            "--watch draws on a terminal, and this output goes elsewhere.",
            fix="Leave it out, or use --json for a program.",
        )
    place = where(look.project, look.config)
    if look.health:
        return _health(place, as_json=look.as_json)
    return _seen(place, look)


def _health(place: Where, *, as_json: bool) -> int:
    pid = running_agent(place)
    if as_json:
        print(json.dumps({"live": pid is not None, "pid": pid or None, "home": str(place.home)}))
    elif pid is None:
        print(f"No agent runs in {place.home}.")
    else:
        print(f"Agent {place.agent} runs{f' (pid {pid})' if pid else ''}.")
    return 1 if pid is None else 0


def _seen(place: Where, look: Look) -> int:
    from fdagent.cli.homes import job_as_json
    from fdagent.cli.snapshot import sight
    from fdagent.system import SystemClock

    with sight(place, WAITING_JSON if look.as_json else WAITING) as seeing:
        if look.search is not None:
            jobs, more = seeing.search(look.search)
            if look.as_json:
                print(json.dumps({"search": look.search, "jobs": [job_as_json(job) for job in jobs], "more": more}))
                return 0
        elif look.as_json:
            print(json.dumps(seeing.look().to_json(), indent=2))
            return 0
        from fdagent.cli import live

        if look.search is not None:
            live.show_found(look.search, jobs, more=more, now=SystemClock().wall())
        elif look.watch:
            live.watch(seeing, SystemClock())
        else:
            live.show(seeing.look())
    return 0
