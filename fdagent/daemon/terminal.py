"""How a log line looks on a terminal: what the JSON line says, for people and in colour.

Guarantees: nothing of a line's content is obeyed by the terminal. Only a terminal gets this form; whatever reads a pipe
or a file gets JSON.
"""

import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import IO, Any

from fdagent.project.problems import printable

COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "1;31"}
"""SGR codes of ECMA-48: faint, green, yellow, bold red."""
FAINT = "2"
LEVEL_WIDTH = 7
AT_ONCE = ("ts", "level", "event", "message")
"""Fields with a place of their own; the others follow as `name=value`."""
LEFT_OUT = ("agent", "host", "entity", "run_id", "source")
"""The same in every line, said by the message, or too long to read: the file has them."""

Style = Callable[[str, str], str]
"""The text in the colour of an SGR code."""


def style_of(out: IO[str] | None) -> Style | None:
    """How lines are coloured there; None: it is no terminal. NO_COLOR and dumb terminals get the words alone."""
    if out is None or not out.isatty():
        return None
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not _obeys_codes()
    return _plain if plain else _coloured


def _obeys_codes() -> bool:
    # The old console of Windows shows the codes themselves.
    return sys.platform != "win32" or "WT_SESSION" in os.environ or "TERM" in os.environ


def for_people(line: Mapping[str, Any], style: Style) -> str:
    """A log line as a person reads it, its time in this machine's zone."""
    at = datetime.fromisoformat(line["ts"]).astimezone().strftime("%H:%M:%S")
    level = str(line.get("level", ""))
    more = " ".join(f"{name}={value}" for name, value in line.items() if name not in (*AT_ONCE, *LEFT_OUT))
    parts = [
        style(at, FAINT),
        style(f"{level:{LEVEL_WIDTH}}", COLOURS.get(level, "")),
        printable(str(line.get("message", ""))),
        style(printable(f"{line.get('event', '')} {more}".strip()), FAINT),
    ]
    return "  ".join(parts)


def _plain(text: str, _code: str) -> str:
    return text


def _coloured(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
