"""`release.json`: which version of the metadata project an environment runs.

Guarantees: only a person promotes, and only over the release they were shown, so that two people never overwrite
each other unseen. Does not check that the project is right: `promote` does before it asks.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from models.jsonrecord import JsonRecord, Later, Time
from models.person import PersonFacts
from models.step import Guard, Step, guard


class ReleaseState(StrEnum):
    """An environment has a release or none."""

    PROMOTED = "promoted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(JsonRecord):
    """The promoted version."""

    WHAT: ClassVar[str] = "release"

    metadata_version: Annotated[str, "The digest of the project that agents may run"]
    op: Annotated[str, Later("The write that made this version")] = ""
    git_commit: Annotated[str | None, "The project's commit, where it was in Git"] = None
    promoted_at: Annotated[Time | None, "When, by the promoter's clock"] = None
    promoted_by: Annotated[str | None, "Who"] = None
    previous: Annotated[str | None, "The metadata version before it"] = None

    @property
    def state(self) -> ReleaseState:
        """It is promoted."""
        return ReleaseState.PROMOTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFacts(PersonFacts):
    """What one judgement of a release needs; the default of each is the answer that opens nothing."""

    shown: str | None = None
    """The metadata version the person was shown as promoted; empty: that there was none."""
    metadata_version: str = ""
    git_commit: str | None = None


ReleaseStep = Step[Release, ReleaseFacts]
ReleaseGuard = Guard[Release, ReleaseFacts]


@guard("the release is the one that was shown", "somebody promoted since it was shown")
def as_shown(step: ReleaseStep) -> bool:
    """Nobody promoted in between."""
    there = "" if step.record is None else step.record.metadata_version
    return step.facts.shown == there


def promote(step: ReleaseStep) -> Release:
    """The new version, with the one before it; promoting the same again keeps that one."""
    was, facts = step.record, step.facts
    previous = None if was is None else was.metadata_version
    if was is not None and previous == facts.metadata_version:
        previous = was.previous
    return Release(
        metadata_version=facts.metadata_version,
        op=step.op,
        git_commit=facts.git_commit,
        promoted_at=step.now,
        promoted_by=facts.person,
        previous=previous,
        extra={} if was is None else was.extra,
    )
