"""What only a person may ask, and how their wish is tied to what they saw.

Guarantees: the facts' defaults open nothing. What takes something from somebody else names the version by its op, so
that a wish about an old version never meets a new one. Does not check who the person is: the store's rights do.
"""

from dataclasses import dataclass
from typing import Any

from models.step import Step, guard


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonFacts:
    """A person's part in a judgement."""

    by_a_person: bool = False
    """A person asked, through a command; nothing an agent does by itself."""
    person: str = ""
    """Who, as the record will show it."""
    named_op: str | None = None
    """The op the person named; None: none. A record without an op is named by the empty text."""


@guard("a person asked", "only a person may ask")
def by_a_person(step: Step[Any, Any]) -> bool:
    """Not something the agent does by itself."""
    facts: PersonFacts = step.facts
    return facts.by_a_person


@guard("the version that was named is there", "another version is there than the one that was named")
def op_named(step: Step[Any, Any]) -> bool:
    """The op the person named is the record's."""
    facts: PersonFacts = step.facts
    return facts.named_op is not None and facts.named_op == str(step.was.op)
