"""What a promotion changes, and the guard that only a promoted version runs.

Guarantees: an environment runs only the metadata version that a person promoted there; the promotion's sentences say
what is known from the release record, which holds versions, not contents. The record itself is read and written
elsewhere, by its chart.
"""

import contextlib
import os
import subprocess
from functools import lru_cache
from pathlib import Path

from fdagent.errors import Refused
from fdagent.project.githead import COMMIT, Head, Unclear, read_head
from fdagent.project.model import Environment, Project
from fdagent.project.version import short

RECORD = "release.json"
"""The record's key in an environment's control root."""
GIT_SECONDS = 5.0
"""How long Git may take before a run goes on without a commit id."""
HISTORIES = 16
"""How many answers of Git are remembered."""


def check_promoted(project: Project, environment: Environment, promoted: str) -> None:
    """Refuse to run what was not promoted.

    Args:
        project: The project folder as it is now.
        environment: The environment to run.
        promoted: `metadata_version` of its release record; empty when nothing was promoted yet.

    Raises:
        Refused: The versions differ.
    """
    if promoted == project.metadata_version:
        return
    name = environment.name
    if not promoted:
        raise Refused(f"Nothing was promoted to {name} yet.", fix=f"Promote this project: `fdagent promote {name}`.")
    versions = f"{name} has metadata {short(promoted)}…, this project is {short(project.metadata_version)}…"
    raise Refused(
        f"{versions}: check out the promoted version, or promote.",
        fix=f"`fdagent promote {name}` shows what would change and asks.",
    )


def changes(project: Project, environment: Environment, promoted: str) -> list[str]:
    """What a promotion would change, a sentence each; empty when this very version is promoted already."""
    if promoted == project.metadata_version:
        return []
    before = f"metadata {short(promoted)}" if promoted else "nothing"
    layers = {entity.layer.name for entity in project.entities.values()}
    return [
        f"{environment.name} goes from {before} to metadata {short(project.metadata_version)}.",
        f"The project has {len(project.entities)} entities in {len(layers)} layers.",
    ]


def git_commit(root: Path) -> str:
    """The newest commit that touched the project's folder, as hex digits; empty where Git knows nothing of it.

    A folder inside somebody else's repository that is not part of it has no commit. Uncommitted changes don't show;
    the metadata version does tell them. Git is asked once for each state of the history.
    """
    real = Path(os.path.realpath(root))
    with contextlib.suppress(_NoAnswer):
        try:
            head = read_head(real)
        except Unclear:
            return _newest(real, "HEAD")
        return "" if head is None else _remembered(real, head)
    return ""


class _NoAnswer(Exception):
    """Git is not there, knows nothing of the folder, may not or does not answer in time."""


@lru_cache(maxsize=HISTORIES)
def _remembered(folder: Path, head: Head) -> str:
    """`_newest`, asked again for each other state of the history, and until there is an answer."""
    return _newest(folder, head.commit)


def _newest(folder: Path, commit: str) -> str:
    """Ask Git for the newest commit up to `commit` that touched a folder; empty: there is none."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), "log", "-1", "--format=%H", commit, "--", "."],
            env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as err:
        raise _NoAnswer from err
    text = answer.stdout.decode("ascii", "replace").strip()
    if text and not COMMIT.fullmatch(text):
        raise _NoAnswer
    return text
