"""The commands' entry points, and what a person sees when one fails.

Guarantees: a mistake of a person's ends in a sentence on stderr and the exit code of its kind (0 done, 1 failed,
2 wrong usage or configuration, 3 not found, 4 refused by a guard), never in a traceback; with `--json` the error is
JSON on stdout too. Output that can't be written holds up no work and changes no exit code but that of a command which
only tells something. A call imports only the module of the command it names; a plain `status` not even typer, and a plain
`run` little of it.
"""

import errno
import importlib
import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fdagent.cli import quick
from fdagent.cli.output import lasting_streams, unwritten
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

TELLING = {"status", "job", "why", "queue", "check", "diagram"}
"""Commands that only say something; so do `agents` without --forget and each `list`."""
JSON = "--json"
INTERRUPTED = 130
FAILED = 1
LEAST_WIDTH = 20


def fdagent() -> None:
    """The `fdagent` command."""
    lasting_streams()
    words = sys.argv[1:]
    look = quick.parsed(words)
    if look is not None:
        sys.exit(_finished(lambda: quick.answer(look), words))
    paths = quick.running(words)
    if paths is not None:
        serve = importlib.import_module("fdagent.cli.run").run
        sys.exit(_finished(lambda: serve(**paths), words))
    sys.exit(run(commands(words), words))


def fabric_desktop() -> None:
    """The `fabric-desktop` command: its `agent` group is the same commands under their published name."""
    lasting_streams()
    words = sys.argv[1:]
    app = _app("Fabric Desktop's commands.")
    app.add_typer(commands(words[1:]), name="agent")
    sys.exit(run(app, words))


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
    return _finished(lambda: _by_typer(app, words), words)


def _by_typer(app: "typer.Typer", words: list[str]) -> object:
    import typer
    from typer.exceptions import TyperException

    try:
        return app(words, standalone_mode=False)
    except TyperException as err:
        if not err.format_message():
            return err.exit_code  # no command was named, and the help was shown
        fix, as_json = "Add --help to see how it is used.", JSON in words
        return _fail(err.format_message(), fix, err.exit_code, as_json=as_json)
    except typer.Abort as err:
        raise KeyboardInterrupt from err
    except SystemExit as err:
        # typer takes any broken pipe for one of its output; here it is one that a command works with.
        raise err.__context__ or err from None


def _finished(call: Callable[[], object], words: list[str]) -> int:
    """The exit code of what a command does, whether or not somebody still reads what it says."""
    code = _given(call, as_json=JSON in words)
    sys.stdout.flush()
    lost = unwritten(sys.stdout)
    if lost is None or lost.errno == errno.EPIPE:
        return code  # a reader that goes away (`| head -1`) has what it wanted
    _say(f"Error: What this command says could not be written: {(lost.strerror or type(lost).__name__).lower()}.")
    if not _only_tells(words):
        _say("Its work is not held up by that: the exit code says how it ended.")
        return code
    _say("Give it an output that can be written to.")
    return code or FAILED


def _only_tells(words: list[str]) -> bool:
    """Does a command do nothing but say something, so that it failed when that could not be written?"""
    name, verb = [*(words[1:] if words[:1] == ["agent"] else words), "", ""][:2]
    if name == "agents":
        return not any(word.startswith("--forget") for word in words)
    return name in TELLING or verb == "list"


def _given(call: Callable[[], object], *, as_json: bool) -> int:
    try:
        answer = call()
    except FdagentError as err:
        return _fail(err.what, err.fix, err.exit_code, as_json=as_json, problems=getattr(err, "problems", ()))
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
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
        sys.stdout.flush()
        if unwritten(sys.stdout) is None:
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
