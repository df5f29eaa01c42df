"""A cancel file: somebody's wish that a request ends.

Guarantees: any file is a wish, whatever it holds, so reading one never fails; it never interrupts a running request
whose agent lives (the request chart sees to that). It is swept after the request it belongs to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from models.codec import parse
from models.errors import BadRecord, NewerContract
from models.jsonrecord import JsonRecord, Later, Time
from models.slot import SweepFacts, long_ago
from models.step import Guard, Step, guard


class WishState(StrEnum):
    """A wish is there or not."""

    POSTED = "posted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish(JsonRecord):
    """`cancel/<id>.json`."""

    WHAT: ClassVar[str] = "cancel file"

    op: Annotated[str, Later("The write that made it, when fdagent did")] = ""
    asked_by: Annotated[str | None, Later("Who wants it cancelled, in words")] = None
    asked_at: Annotated[Time | None, Later("When, by the author's clock")] = None

    @property
    def state(self) -> WishState:
        """It is there."""
        return WishState.POSTED

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The wish; what is no such record is a wish that says nothing more."""
        try:
            return super(Wish, cls).from_json(value)
        except (BadRecord, NewerContract):
            return cls()

    @classmethod
    def from_body(cls, body: bytes) -> Self:
        """The wish from the file's bytes, which may be anything, or nothing."""
        try:
            return cls.from_json(parse(body))
        except BadRecord:
            return cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class WishFacts(SweepFacts):
    """What one judgement of a cancel file needs; the default of each is the answer that opens nothing."""

    asked: bool = False
    """A person or a pipeline wants it."""
    orphan: bool = False
    """There is neither a request nor a status of its id."""
    file_written_at: float | None = None
    """When the file was written, epoch seconds by the store's clock."""
    asked_by: str | None = None


WishStep = Step[Wish, WishFacts]
WishGuard = Guard[Wish, WishFacts]


@guard("a person or a pipeline asked", "nobody asked")
def asked(step: WishStep) -> bool:
    """Somebody wants it."""
    return step.facts.asked


@guard("no request and no status has its id", "a request or a status has its id")
def orphan(step: WishStep) -> bool:
    """It belongs to nothing."""
    return step.facts.orphan


@guard("the file is older than it is kept", "the file is kept for a while")
def old(step: WishStep) -> bool:
    """The retention has passed since it was written, by the store's clock."""
    facts = step.facts
    return long_ago(facts.file_written_at, facts.store_now, facts.retention_seconds)


def post(step: WishStep) -> Wish:
    """The wish, with who has it."""
    at = step.now if step.facts.store_now is None else step.facts.store_now
    return replace(Wish(), op=step.op, asked_by=step.facts.asked_by, asked_at=at)


def sweep(step: WishStep) -> None:  # a deletion has no next record
    """It is gone."""
