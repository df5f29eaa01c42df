"""Which files a pattern names, as Python's `glob` has it; yet a folder that can't be listed is an error, never an empty one.

Guarantees
- `*`, `?` and `[...]` stand for a part of one name, `**` for any number of folders; none of them for a leading dot.
  A link is followed, and `**` never back into a folder it is in. Each path comes once.
- What the system refuses is raised. A table that is all of its files would lose the rows of those that can't be seen.
- The folder before the first wildcard has to be there: it is where files are delivered, not one that comes and goes.

Does not hold the folders still: what goes away while it is listed counts as gone.
"""

import errno
import glob
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import translate
from pathlib import Path

from fdagent.errors import BadSource, Denied, DiskFull, SourceMissing, Unavailable

_ESCAPED = re.compile(r"\[([*?\[])\]")

_Step = tuple[str, tuple[str, ...], tuple[tuple[int, int], ...]]
"""A path, the parts of the pattern still to be found below it, and the folders that the `**` at hand went through."""


def matching(pattern: str) -> dict[Path, os.stat_result]:
    """The files of an absolute pattern.

    Raises:
        SourceMissing: The folder before the first wildcard is not there, or a link leads nowhere.
        BadSource: A link leads back to itself.
        Denied: No rights to list a folder.
        Unavailable: A folder can't be listed for another reason.
    """
    anchor, *parts = Path(pattern).parts
    fixed = next((n for n, part in enumerate(parts) if _is_wild(part)), len(parts) - 1)
    start = str(Path(anchor, *map(literal, parts[:fixed])))
    if not _is_folder(start):
        raise SourceMissing(
            f"The folder of the source files {literal(pattern)} is not there: {start}.",
            fix="Make or mount it, or correct [source] files or the environment's vars.",
        )
    found: dict[Path, os.stat_result] = {}
    waiting: list[_Step] = [(start, tuple(parts[fixed:]), ())]
    while waiting:
        path, rest, through = waiting.pop()
        if rest:
            waiting += _below(path, rest, through)
        elif (there := _stat(path)) and stat.S_ISREG(there.st_mode):
            found[Path(path)] = there
    return found


def literal(pattern: str) -> str:
    """The pattern as a person would write it: without the escapes that keep a path literal."""
    return _ESCAPED.sub(r"\1", pattern)


@contextmanager
def reached(path: str | Path) -> Iterator[None]:
    """Say in a sentence why a source file or folder can't be read.

    Raises:
        SourceMissing, Denied, BadSource, DiskFull, Unavailable: See the sentences.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as err:
        raise SourceMissing(f"{path} was there and is gone.", fix="Run again.") from err
    except PermissionError as err:
        raise Denied(f"No rights to read {path}.", fix="Give this user access; nothing was loaded.") from err
    except OSError as err:
        if err.errno == errno.ELOOP:
            raise BadSource(
                f"{path} is a link that leads back to itself.", fix="Remove it, or correct where it leads."
            ) from err
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"No room is left for a copy of {path}.", fix="Free some and run again.") from err
        raise Unavailable(
            f"{path} can't be read ({(err.strerror or type(err).__name__).lower()}).",
            fix="Run again once it can; nothing was loaded.",
        ) from err


def _below(folder: str, parts: tuple[str, ...], through: tuple[tuple[int, int], ...]) -> Iterator[_Step]:
    """One step down from a folder."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _any_depth(folder, parts, through)
    elif _is_wild(part):
        is_meant = re.compile(translate(os.path.normcase(part))).match
        for entry in _listed(folder, hidden=part.startswith(".")):
            if is_meant(os.path.normcase(entry.name)) and (not rest or _leads_on(entry)):
                yield entry.path, rest, ()
    else:
        path = str(Path(folder, literal(part)))
        if not rest or _is_folder(path):
            yield path, rest, ()


def _any_depth(folder: str, parts: tuple[str, ...], through: tuple[tuple[int, int], ...]) -> Iterator[_Step]:
    here = _stat(folder)
    if here is None or (here.st_dev, here.st_ino) in through:
        return
    if parts[1:]:
        yield folder, parts[1:], ()
    for entry in _listed(folder, hidden=False):
        if _leads_on(entry):
            yield entry.path, parts, (*through, (here.st_dev, here.st_ino))
        elif not parts[1:]:
            yield entry.path, (), ()


def _is_wild(part: str) -> bool:
    return glob.has_magic(_ESCAPED.sub("", part))


def _listed(folder: str, *, hidden: bool) -> list[os.DirEntry[str]]:
    """What lies in a folder, in the order of names; nothing when it has gone away."""
    with reached(folder):
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if hidden or not entry.name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []
    return sorted(found, key=lambda entry: entry.name)


def _leads_on(entry: os.DirEntry[str]) -> bool:
    """Is it a folder, or a link to one? The listing itself knows, but for a link."""
    with reached(entry.path):
        return _is_folder(entry.path) if entry.is_symlink() else entry.is_dir(follow_symlinks=False)


def _is_folder(path: str) -> bool:
    there = _stat(path)
    return there is not None and stat.S_ISDIR(there.st_mode)


def _stat(path: str) -> os.stat_result | None:
    """What is there; None: nothing, or nothing any more."""
    with reached(path):
        try:
            return os.stat(path)  # noqa: PTH116  # a listing of many files makes no Path of each
        except (FileNotFoundError, NotADirectoryError) as err:
            if not os.path.islink(path):  # noqa: PTH114  # the same
                return None
            raise SourceMissing(
                f"{path} is a link to something that is not there, so what to load of it can't be told.",
                fix="Bring back what it leads to, or remove the link; nothing was loaded.",
            ) from err
