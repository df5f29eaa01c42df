"""What `why` answers with, and how a name is looked up: the values that its kinds share.

Guarantees: nothing here reads or decides. A name that fits several records is never guessed at: `chosen` asks back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fdagent.errors import NotFound
from models.ids import shown

if TYPE_CHECKING:
    from fdagent.cli.where import Where
    from fdagent.ports import Store
    from fdagent.why import Answer

MOST_LISTED = 8
KINDS = ("job", "request", "schedule", "agent", "lease", "release", "ledger", "incident")
"""What a name may name; a request is told with its request file (slot) and its cancel file (wish)."""
A_WORKER, ITS_WORKER, AGENT, HOLDER, PERSON = "a worker", "its worker", "the agent", "its holder", "a person"
AN_AGENT, EVALUATOR = "any agent", "an evaluator"
ASKED_BY: dict[str, dict[str, str]] = {
    "job": {
        "enqueue": "fdagent enqueue; the agent",
        "claim": A_WORKER,
        "renew": ITS_WORKER,
        "succeed": ITS_WORKER,
        "fail": ITS_WORKER,
        "retry": ITS_WORKER,
        "bury": ITS_WORKER,
        "recover": AGENT,
        "ask_to_stop": "fdagent cancel",
        "cancel": "fdagent cancel; its worker",
        "requeue": AGENT,
        "revive": "fdagent retry",
        "prune": AGENT,
    },
    "lease": {
        "acquire": "a worker that needs the table",
        "renew": HOLDER,
        "release": HOLDER,
        "break": "fdagent lease break",
    },
    "request": {
        "cancel": AN_AGENT,
        "expire": AN_AGENT,
        "give_up": AN_AGENT,
        "reject": AN_AGENT,
        "take_over": "another agent",
        "adopt": "a new start of its agent",
        "claim": AN_AGENT,
        "start": ITS_WORKER,
        "report": ITS_WORKER,
        "wait": "its agent",
        "hand_back": "its agent",
        "succeed": "its agent",
        "fail": "its agent",
        "abandon": "fdagent request --abandon",
        "sweep": AN_AGENT,
    },
    "slot": {"post": "an agent that has the schedule; fdagent request", "sweep": AN_AGENT},
    "wish": {"post": "fdagent cancel; fdagent request --cancel", "sweep": AN_AGENT},
    "agent": {
        "announce": "an agent of this name that starts",
        "beat": "itself",
        "drain": "itself, after fdagent drain",
        "stop": "itself",
        "forget": "fdagent agents --forget",
    },
    "schedule": {"run": AGENT},
    "release": {"promote": "fdagent promote"},
    "ledger": {"write": EVALUATOR},
    "incident": {
        "open": EVALUATOR,
        "see": EVALUATOR,
        "acknowledge": PERSON,
        "recover": EVALUATOR,
        "clear": EVALUATOR,
        "resolve": PERSON,
        "reopen": EVALUATOR,
        "escalate": EVALUATOR,
        "announce": "whoever sent its message",
        "forget": EVALUATOR,
    },
}
"""Chart -> event -> who asks for it."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One record and what may happen to it: `notes` say what a person should know beside the guards."""

    kind: str
    name: str
    env: str
    state: str
    answers: "list[Answer]"
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "kind": self.kind,
            "name": self.name,
            "env": self.env,
            "state": self.state,
            "arrows": [
                {
                    "event": answer.event,
                    "asked_by": ASKED_BY[self.kind].get(answer.event, ""),
                    "to": answer.dest,
                    "write": answer.write,
                    "open": answer.open,
                    "guards": [
                        {"guard": check.guard, "held": check.held, "sentence": check.sentence}
                        for check in answer.checks
                    ],
                }
                for answer in self.answers
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Named:
    """One record that a name fits. `exact`: the name is all of its name, not how it begins."""

    kind: str
    env: str
    name: str
    explain: "Callable[[], list[Explained]]"
    exact: bool = True

    @property
    def qualified(self) -> str:
        """The name that fits no record of another environment."""
        return self.name if self.kind == "job" else f"{self.env}/{self.name}"


@dataclass(frozen=True, slots=True)
class Mailroom:
    """One environment whose shared records are looked through."""

    place: "Where"
    env: str
    store: "Store"


def chosen(word: str, found: Sequence[Named]) -> Named:
    """The one record that a word names; a whole name goes before the beginning of one.

    Raises:
        NotFound: Several are; the sentence asks which, and each can be named by what it says.
    """
    fits = [one for one in found if one.exact] or list(found)
    if len(fits) == 1:
        return fits[0]
    kinds, envs = {one.kind for one in fits}, {one.env for one in fits}
    if kinds == {"job"}:
        names = _listed([one.name for one in fits])
        raise NotFound(f"{shown(word)} begins the ids of {len(fits)} jobs: {names}.", fix="Give more letters of it.")
    which = _listed([f"the {one.kind} {one.qualified}" for one in fits])
    ways = []
    if len(envs - {""}) > 1:
        ways.append(f"name the environment, such as {fits[0].qualified}")
    if len(kinds) > 1:
        ways.append(f"add --kind, such as --kind {fits[0].kind}")
    asked = " or ".join(ways)
    raise NotFound(f"{shown(word)} may mean {which}. Which one?", fix=f"{asked[:1].upper()}{asked[1:]}.")


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    listed = [*names[:MOST_LISTED], *more]
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
