"""Which source files a run reads: the glob, and each file once.

Guarantees: a file counts as taken by its path (relative to the project where it lies in it), size and modified time, so
one that is delivered again, changed, is read again. Files are read in the order of their modified time, then their path.

A pattern that matches nothing is an error while nothing was ever taken through it: a misspelt folder must not look like
an empty feed. Later, with `take = "new"`, an empty folder is how a feed that is archived after loading looks between
two deliveries: nothing is new. A plain path without a wildcard names one file that has to be there, always; so does
any pattern with `take = "all"` or `"newest"`, where no file would mean an empty table. A folder that is not there, or
can't be listed, is an error always (`listing.py`).

Does not see that a file is still being written, but for one that changes between the listing and the end of the
reading: the run then fails and nothing is loaded.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from fdagent.engine.marks import FoundFile, Taken
from fdagent.engine.sources.listing import literal, matching, reached
from fdagent.errors import BadSource, SourceMissing
from fdagent.project.model import Take
from fdagent.project.problems import printable


def find(pattern: str, root: Path) -> list[FoundFile]:
    """The files of an absolute pattern, oldest first.

    Raises:
        SourceMissing, Denied, Unavailable: A folder is not there or can't be listed.
        BadSource: A file's name is no text, so that neither marks nor DuckDB can hold it; or a link leads to itself.
    """
    found = []
    for path, stat in matching(pattern).items():
        _require_text(path)
        found.append(FoundFile(path, _name(path, root), stat.st_size, stat.st_mtime_ns // 1000))
    return sorted(found, key=lambda file: (file.modified_us, file.name))


def _require_text(name: Path) -> None:
    """Refuse a name that is not UTF-8: Linux allows any bytes."""
    raw = os.fsencode(name)
    try:
        raw.decode()
    except UnicodeDecodeError as err:
        shown = printable(raw.decode("utf-8", "backslashreplace"))
        raise BadSource(
            f"The name of the source file {shown} is not UTF-8: \\x{raw[err.start]:02x} is no part of a letter.",
            fix="Rename it (a file or folder that was written under another encoding); nothing was loaded.",
        ) from err


def choose(take: Take, pattern: str, found: Sequence[FoundFile], taken: Taken, *, wild: bool) -> list[FoundFile]:
    """Those to read now.

    Args:
        take: Which of them are wanted.
        pattern: For sentences.
        found: All there are, oldest first.
        taken: Those taken before.
        wild: Has the pattern a wildcard, so that it may match nothing for a while?

    Raises:
        SourceMissing: There is no file where there must be one.
        BadSource: A file arrived so late that it can't be told from those taken long ago.
    """
    must_be_there = take != "new" or not wild or not taken.any
    if not found and must_be_there:
        raise SourceMissing(
            f"No file matches {literal(pattern)}.",
            fix="Deliver it, or correct [source] files or the environment's vars.",
        )
    if take == "all":
        return list(found)
    if take == "newest":
        return [file for file in found[-1:] if not taken.has(file)]
    below = [file for file in found if taken.below(file)]
    if len(below) > taken.rolled_up:
        raise BadSource(
            f"{len(below) - taken.rolled_up} of the {len(below)} oldest files of {literal(pattern)} arrived late, with a "
            "modified time at which all files were loaded long ago; which, can't be told.",
            fix="Give the late file the present time (touch it), and it is loaded.",
        )
    return [file for file in found if not taken.has(file)]


def require_unchanged(files: Sequence[FoundFile]) -> None:
    """Refuse what was read of a file that changed meanwhile.

    Raises:
        BadSource: Names the file.
        Denied, Unavailable: It can't be told.
    """
    for file in files:
        with reached(file.path):
            try:
                stat = file.path.stat()
                unchanged = (stat.st_size, stat.st_mtime_ns // 1000) == (file.size, file.modified_us)
            except (FileNotFoundError, NotADirectoryError):
                unchanged = False
        if not unchanged:
            raise BadSource(f"{file.name} changed while it was read.", fix="Nothing was loaded; run again.")


def _name(path: Path, root: Path) -> str:
    """Relative to the project inside it, with forward slashes: the same on every machine that has the project."""
    # Path.resolve would follow links, and a linked landing folder would have another name on each machine.
    plain = Path(os.path.normpath(path))
    try:
        return plain.relative_to(os.path.normpath(root)).as_posix()
    except ValueError:
        return plain.as_posix()
