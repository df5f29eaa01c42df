"""Reading a project's files, whatever lies there.

Guarantees: only regular files inside the project's folder are read (a symbolic link may lead elsewhere in it, not out
of it), each up to a size, as UTF-8 with or without a byte order mark; what can't be read is a sentence, never an
exception. Writes nothing. Does not guarantee that files changed while they are read belong together.
"""

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from fdagent.project.problems import Findings

MAX_BYTES = 1_048_576
"""The largest project file that is read."""
MAX_ENTRIES = 10_000
"""The most files and folders that one folder of a project may hold."""

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


class Files:
    """The files of one project; `root` is resolved, paths are given relative to it with forward slashes."""

    def __init__(self, root: Path, findings: Findings) -> None:
        self.root = Path(os.path.realpath(root))
        self._findings = findings

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, sorted, without hidden files; empty when it is not there or can't be read."""
        try:
            found = sorted(path.name for path in (self.root / folder).iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []
        except NotADirectoryError:
            self._findings.add(folder, "", "is a file, expected a folder")
            return []
        except OSError as error:
            self._findings.add(folder, "", f"the folder can't be read: {_reason(error)}")
            return []
        if len(found) > MAX_ENTRIES:
            self._findings.add(folder, "", f"holds {len(found)} files and folders; {MAX_ENTRIES} are allowed")
        return found[:MAX_ENTRIES]

    def is_folder(self, path: str) -> bool:
        """Is there a folder, or a link to one?"""
        return os.path.isdir(self.root / path)  # noqa: PTH112  Path.is_dir raises where links go in a circle

    def text(self, file: str, *, named_by: tuple[str, str] | None = None) -> str | None:
        """A file's text; None when it can't be had, which is reported at `named_by` (file, key), else at the file."""
        where, key = named_by or (file, "")
        what = f"`{file}` " if named_by else ""
        body = self._bytes(file, where, key, what)
        if body is None:
            return None
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, error.start) + 1
            self._findings.add(where, key, f"{what}is not UTF-8: line {line} has byte 0x{body[error.start]:02x}")
            return None

    def toml(self, file: str) -> dict[str, Any] | None:
        """A TOML file's values; None when it can't be read, which is reported with line and column."""
        text = self.text(file)
        if text is None:
            return None
        try:
            return tomllib.loads(text)
        except RecursionError:
            self._findings.add(file, "", "not valid TOML: values are nested too deeply")
        except tomllib.TOMLDecodeError as error:
            self._findings.add(file, *_where_and_what(str(error), text))
        except ValueError:  # Python reads numbers of a few thousand digits
            self._findings.add(file, "", "not valid TOML: a number has too many digits")
        return None

    def _bytes(self, file: str, where: str, key: str, what: str) -> bytes | None:
        problem = ""
        try:
            path = Path(os.path.realpath(self.root / file))
            if not path.is_relative_to(self.root):
                problem = "lies outside the project, expected a file inside it"
            elif not stat.S_ISREG(path.stat().st_mode):
                problem = "is not a file that can be read as text"
            else:
                with path.open("rb") as stream:
                    body = stream.read(MAX_BYTES + 1)
                if len(body) <= MAX_BYTES:
                    return body
                problem = f"is larger than {MAX_BYTES} bytes, which is the most that is read"
        except FileNotFoundError:
            problem = "is missing"
        except OSError as error:
            problem = f"can't be read: {_reason(error)}"
        self._findings.add(where, key, f"{what}{problem}")
        return None


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _where_and_what(message: str, text: str) -> tuple[str, str]:
    """What `tomllib` says as (line and column, sentence); the end of the document is a line and column too."""
    match = _PLACE.search(message)
    if match is None:
        return "", f"not valid TOML: {message}"
    line, column = match.groups()
    if line is None:
        lines = text.split("\n")
        line, column = str(len(lines)), str(len(lines[-1]) + 1)
    return f"line {line}, column {column}", f"not valid TOML: {message[: match.start()]}"
