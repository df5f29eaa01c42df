"""Reading one TOML file of a person, whatever lies there.

Guarantees: a regular file up to a size, in UTF-8 with or without a byte order mark and with any line ends, is read; for
anything else there is one sentence, never an exception, and the sentence repeats nothing of the file but the character
that TOML stumbled over. Nothing is opened that could block. Does not know what the file means.
"""

import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_BYTES = 262_144
"""The largest file that is read: a thousand schedules, each with a line of explanation."""
MAX_LINE = 4_000
"""Characters of a line: `tomllib` takes time with the square of a dotted key's parts."""

Say = Callable[[str, str], None]
"""Takes where in the file (empty: the file as a whole) and what is wrong."""

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_TWICE = re.compile(r"Cannot (declare|overwrite|mutate|redefine)|Duplicate inline table key")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BACKSLASH = "; a Windows path goes between 'single quotes', where a backslash means itself"


def read_toml(path: Path, say: Say) -> dict[str, Any] | None:
    """What the file holds; None when it can't be read, which was said."""
    body = _bytes(path, say)
    text = None if body is None else _text(body, say)
    if text is None:
        return None
    try:
        return tomllib.loads(text)
    except RecursionError:
        say("", "is not valid TOML: values are nested too deeply")
    except tomllib.TOMLDecodeError as error:
        say(*_where_and_what(str(error), text))
    except ValueError:  # PYTHONINTMAXSTRDIGITS is below what a line has room for
        say("", "is not valid TOML: a number has too many digits")
    return None


def _bytes(path: Path, say: Say) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            say("", "is a folder, expected a file" if path.is_dir() else "is not a regular file")
            return None
        with path.open("rb") as stream:
            body = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        say("", "there is no such file")
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        say("", f"can't be read: {(getattr(error, 'strerror', None) or str(error)).lower()}")
    else:
        if len(body) <= MAX_BYTES:
            return body
        say("", f"is larger than {MAX_BYTES} bytes, which is the most that is read")
    return None


def _text(body: bytes, say: Say) -> str | None:
    if body.startswith(_UTF_16):
        say("", "is UTF-16, expected UTF-8 (an editor's `Save as`, or `Set-Content -Encoding utf8`)")
        return None
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        say("", f"is not UTF-8: line {line} has byte 0x{body[error.start]:02x}")
        return None
    for number, content in enumerate(text.split("\n"), start=1):
        if len(content) > MAX_LINE:
            say(f"line {number}", f"has {len(content)} characters; {MAX_LINE} are allowed")
            return None
    return text


def _where_and_what(message: str, text: str) -> tuple[str, str]:
    """What `tomllib` says as (line and column, sentence), without the keys that it names, which may be anything."""
    match = _PLACE.search(message)
    what = message if match is None else message[: match.start()]
    if _TWICE.match(what):
        what = "this key or table stands there twice"
    elif "Unescaped '\\'" in what or "Invalid hex value" in what:
        what += _BACKSLASH
    if match is None:
        return "", f"is not valid TOML: {what}"
    line, column = match.groups()
    if line is None:
        lines = text.split("\n")
        line, column = str(len(lines)), str(len(lines[-1]) + 1)
    return f"line {line}, column {column}", f"not valid TOML: {what}"
