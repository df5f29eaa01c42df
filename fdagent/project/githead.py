"""Which commit a folder's Git history ends at, read from the repository's own files, without starting Git.

Guarantees: what it answers is what Git would say at that moment; where that can't be told from a few small files (refs
kept in another format, a bare repository, a HEAD that names no branch's commit) it says so, and Git must be asked.
Knows working trees of their own, submodules, packed refs and shallow clones. Does not see history that was replaced in
place (`git replace`, grafts): that shows with the next commit.
"""

import re
from dataclasses import dataclass
from pathlib import Path

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
LARGEST_FILE = 1_000_000
"""Bytes of `packed-refs` up to which reading it costs less than asking Git."""


@dataclass(frozen=True, slots=True)
class Head:
    """A history's newest commit, and what is left out of the history behind it (a shallow clone's list)."""

    commit: str
    shallow: str


class Unclear(Exception):
    """Git must be asked."""


def read_head(folder: Path) -> Head | None:
    """The history that a folder is part of; None: it is in no repository.

    Args:
        folder: Its real path, without links.

    Raises:
        Unclear: Git must be asked.
    """
    try:
        for above in (folder, *folder.parents):
            mark = above / ".git"
            if mark.exists():
                return _head(mark if mark.is_dir() else above / _after(mark, "gitdir: "))
            if (above / "HEAD").exists():
                raise Unclear  # it may be a repository itself
    except (OSError, ValueError) as err:
        raise Unclear from err
    return None


def _head(git: Path) -> Head:
    common = git / _text(git / "commondir") if (git / "commondir").exists() else git
    shallow = _text(common / "shallow") if (common / "shallow").exists() else ""
    text = _text(git / "HEAD")
    if not text.startswith("ref: refs/heads/"):
        return Head(_commit(text), shallow)
    ref = text.removeprefix("ref: ")
    # A loose ref is newer than a packed one.
    loose = common / ref
    return Head(_commit(_text(loose) if loose.exists() else _packed(common, ref)), shallow)


def _packed(common: Path, ref: str) -> str:
    ending = f" {ref}"
    for line in _text(common / "packed-refs").splitlines():
        if line.endswith(ending):
            return line.removesuffix(ending)
    raise Unclear


def _commit(text: str) -> str:
    if COMMIT.fullmatch(text):
        return text
    raise Unclear


def _after(file: Path, start: str) -> str:
    text = _text(file)
    if text.startswith(start):
        return text.removeprefix(start)
    raise Unclear


def _text(file: Path) -> str:
    if file.stat().st_size > LARGEST_FILE:
        raise Unclear
    return file.read_text(encoding="utf-8").rstrip("\n")
