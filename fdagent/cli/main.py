"""The commands' entry points, and what a person sees when one fails.

Guarantees: a mistake of a person's ends in a sentence on stderr and the exit code of its kind (0 done, 1 failed,
2 wrong usage or configuration, 3 not found, 4 refused by a guard), never in a traceback; with `--json` the error is
JSON on stdout too. A call imports only the module of the command it names; a plain `status` not even typer, and a plain
`run` little of it.
"""

import importlib
import io
import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fdagent.cli import quick
from fdagent.errors import unforeseen
from models.errors import FdagentError

if TYPE_CHECKING:
    import typer

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
FAILED = 1
LEAST_WIDTH = 20


def fdagent() -> None:
    """The `fdagent` command."""
    _printable_streams()
    words = sys.argv[1:]
    look = quick.parsed(words)
    if look is not None:
        sys.exit(_finished(lambda: quick.answer(look), as_json=look.as_json))
    paths = quick.running(words)
    if paths is not None:
        serve = importlib.import_module("fdagent.cli.run").run
        sys.exit(_finished(lambda: serve(**paths), as_json=False))
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


def commands(words: list[str]) -> "typer.Typer":
    """The app with the command that `words` name, or with every command when they name none (so that help lists all)."""
    import typer

    app = _app("Run a metadata project unattended: Delta tables in OneLake or local folders, no server.")
    named = words[0] if words else ""
    for name in [named] if named in COMMANDS else COMMANDS:
        command = getattr(importlib.import_module(f"fdagent.cli.{COMMANDS[name]}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _app(about: str) -> "typer.Typer":
    import typer

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # A callback keeps the command's name on the command line even when only one command is registered.
    app.callback(help=about)(lambda: None)
    return app


def run(app: "typer.Typer", words: list[str]) -> int:
    """Run one command; its exit code."""
    as_json = "--json" in words
    return _finished(lambda: _by_typer(app, words, as_json=as_json), as_json=as_json)


def _by_typer(app: "typer.Typer", words: list[str], *, as_json: bool) -> object:
    import typer
    from typer.exceptions import TyperException

    try:
        return app(words, standalone_mode=False)
    except TyperException as err:
        if not err.format_message():
            return err.exit_code  # no command was named, and the help was shown
        return _fail(err.format_message(), "Add --help to see how it is used.", err.exit_code, as_json=as_json)
    except typer.Abort as err:
        raise KeyboardInterrupt from err


def _finished(call: Callable[[], object], *, as_json: bool) -> int:
    """The exit code of what a command does."""
    try:
        code = _given(call, as_json=as_json)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        # The reader of our output has gone (`| head`), of which typer makes an exit: nothing is wrong, and nothing more
        # can be said to it.
        sys.stdout = None
        return 0
    return code


def _given(call: Callable[[], object], *, as_json: bool) -> int:
    try:
        answer = call()
    except FdagentError as err:
        return _fail(err.what, err.fix, err.exit_code, as_json=as_json, problems=getattr(err, "problems", ()))
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as err:
        about = f": {err.filename}" if err.filename else ""
        said = f"The system says {(err.strerror or type(err).__name__).lower()}{about}."
        return _fail(said, "Look at that path and at this user's rights to it.", FAILED, as_json=as_json)
    except Exception as err:
        if sys.flags.dev_mode:
            raise
        # Its kind and place, not its text, which may hold anything.
        said = f"fdagent met an error that nobody foresaw: {unforeseen(err)}"
        return _fail(said, "It is a mistake of fdagent's; PYTHONDEVMODE=1 shows all of it.", FAILED, as_json=as_json)
    return answer if isinstance(answer, int) else 0


def _fail(what: str, fix: str, code: int, *, as_json: bool, problems: tuple[str, ...] = ()) -> int:
    if as_json:
        error: dict[str, Any] = {"error": what, "fix": fix, "exit_code": code}
        if problems:
            error["problems"] = list(problems)
        print(json.dumps(error, indent=2))
        return code
    _say(f"Error: {what}")
    for problem in problems:
        _say(f"  - {problem}", indent="    ")
    if fix:
        _say(fix)
    return code


def _say(sentence: str, *, indent: str = "") -> None:
    """Print it on stderr; a terminal's lines end between words."""
    if sys.stderr.isatty():
        width = max(shutil.get_terminal_size().columns, LEAST_WIDTH)
        wrap = textwrap.TextWrapper(width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
        sentence = "\n".join(line for part in sentence.splitlines() for line in wrap.wrap(part) or [""])
    print(sentence, file=sys.stderr)
