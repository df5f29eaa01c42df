"""The commands' entry points, and what a person sees when one fails.

Guarantees: a mistake of a person's ends in a sentence on stderr and the exit code of its kind (0 done, 1 failed,
2 wrong usage or configuration, 3 not found, 4 refused by a guard), never in a traceback; with `--json` the error is
JSON on stdout too. A call imports only the module of the command it names.
"""

import importlib
import io
import json
import sys
from typing import Any

import typer
from typer.exceptions import TyperException

from models.errors import FdagentError

COMMANDS = {
    "init": "project",
    "promote": "project",
    "enqueue": "job",
    "run": "run",
    "status": "status",
    "job": "job",
    "why": "why",
    "retry": "control",
    "cancel": "control",
    "drain": "control",
    "check": "check",
    "request": "mailbox",
    "queue": "mailbox",
    "agents": "agents",
    "schedule": "schedule",
    "lease": "lease",
    "diagram": "diagram",
    "demo": "demo",
}
"""Each command, in the order a newcomer needs them, and the module of this folder that has the function of its name.

Where that is a group of commands (`lease list`, `lease break`), it is a `typer.Typer`."""

INTERRUPTED = 130


def fdagent() -> None:
    """The `fdagent` command."""
    _printable_streams()
    words = sys.argv[1:]
    sys.exit(run(commands(words), words))


def fabric_desktop() -> None:
    """The `fabric-desktop` command: its `agent` group is the same commands under their published name."""
    _printable_streams()
    words = sys.argv[1:]
    app = _app("Fabric Desktop's commands.")
    app.add_typer(commands(words[1:]), name="agent")
    sys.exit(run(app, words))


def _printable_streams() -> None:
    """Let no character end a command: a file's name that is no text, or an ellipsis where the terminal has none."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def commands(words: list[str]) -> typer.Typer:
    """The app with the command that `words` name, or with every command when they name none (so that help lists all)."""
    app = _app("Run a metadata project unattended: Delta tables in OneLake or local folders, no server.")
    named = words[0] if words else ""
    for name in [named] if named in COMMANDS else COMMANDS:
        command = getattr(importlib.import_module(f"fdagent.cli.{COMMANDS[name]}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _app(about: str) -> typer.Typer:
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # A callback keeps the command's name on the command line even when only one command is registered.
    app.callback(help=about)(lambda: None)
    return app


def run(app: typer.Typer, words: list[str]) -> int:
    """Run one command; its exit code."""
    as_json = "--json" in words
    try:
        answer = app(words, standalone_mode=False)
    except FdagentError as err:
        return _fail(err.what, err.fix, err.exit_code, as_json=as_json, problems=getattr(err, "problems", ()))
    except TyperException as err:
        if not err.format_message():
            return err.exit_code  # no command was named, and the help was shown
        return _fail(err.format_message(), "Add --help to see how it is used.", err.exit_code, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is wrong, and nothing more can be said to it.
        sys.stdout = None
        return 0
    return answer if isinstance(answer, int) else 0


def _fail(what: str, fix: str, code: int, *, as_json: bool, problems: tuple[str, ...] = ()) -> int:
    if as_json:
        error: dict[str, Any] = {"error": what, "fix": fix, "exit_code": code}
        if problems:
            error["problems"] = list(problems)
        print(json.dumps(error, indent=2))
        return code
    print(f"Error: {what}", file=sys.stderr)
    for problem in problems:
        print(f"  - {problem}", file=sys.stderr)
    if fix:
        print(fix, file=sys.stderr)
    return code
