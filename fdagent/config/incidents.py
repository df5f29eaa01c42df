"""`[incidents]`, `[[incidents.route]]` and `[alerts]`: what an agent watches, and whom it tells.

Guarantees and limits are those of `settings.py`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from fdagent.config.forms import DAY_SECONDS, ENVIRONMENT, LINE, NAME, VARIABLE
from fdagent.config.keys import Choice, Flag, Key, Many, Number, Text, Whole
from fdagent.config.shapes import span_problem

Criticality = Literal["low", "normal", "high", "critical"]
IncidentKind = Literal["run_failed", "freshness", "objective", "agent_offline", "slot_missed", "cannot_evaluate"]

CRITICALITIES: tuple[Criticality, ...] = get_args(Criticality)
INCIDENT_KINDS: tuple[IncidentKind, ...] = get_args(IncidentKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents:
    """What the agent watches and tells people."""

    enabled: Annotated[bool, Key(Flag(), "Evaluate the environments it runs.")] = False
    seconds: Annotated[int, Key(Whole(5, DAY_SECONDS), "Seconds between two evaluations.")] = 300
    digest_over: Annotated[
        int, Key(Whole(1, 1000), "More changes than this in one evaluation are told in one message.")
    ] = 5
    quiet_hours: Annotated[
        str,
        Key(
            Text("a span of the day", span_problem),
            "Messages wait in this span of the machine's day, which may cross midnight.",
            unset="none",
            example='"22:00-06:00"',
        ),
    ] = ""
    quiet_except: Annotated[
        tuple[Criticality, ...],
        Key(Many(Choice(CRITICALITIES), '["high", "critical"]'), "Criticalities whose messages don't wait."),
    ] = ("critical",)
    escalate_after_minutes: Annotated[
        float | None,
        Key(
            Number(1, 43_200),
            "Minutes after which an incident that nobody acknowledged is escalated, once.",
            unset="nothing is escalated",
            example="60",
        ),
    ] = None
    escalate_to: Annotated[
        str,
        Key(
            NAME,
            "The route that an escalation goes to.",
            unset="`[alerts] teams_webhook_env`",
            example='"on-call"',
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where messages of some incidents go: of those that every filter matches. An empty filter matches everything."""

    name: Annotated[str, Key(NAME, "Its name, unique.", required=True, example='"on-call"')] = ""
    webhook_env: Annotated[
        str,
        Key(
            VARIABLE,
            "The environment variable that holds the address of a Teams workflow's webhook.",
            required=True,
            example='"TEAMS_WEBHOOK_ON_CALL"',
        ),
    ] = ""
    teams: Annotated[tuple[str, ...], Key(Many(LINE, '["sales"]'), "Teams of entities, letter case aside.")] = ()
    owners: Annotated[
        tuple[str, ...], Key(Many(LINE, '["ada@contoso.com"]'), "Owners of entities, letter case aside.")
    ] = ()
    criticality: Annotated[
        tuple[Criticality, ...], Key(Many(Choice(CRITICALITIES), '["high", "critical"]'), "Criticalities of entities.")
    ] = ()
    kinds: Annotated[
        tuple[IncidentKind, ...], Key(Many(Choice(INCIDENT_KINDS), '["run_failed"]'), "Kinds of incidents.")
    ] = ()
    envs: Annotated[
        tuple[str, ...],
        Key(
            Many(ENVIRONMENT, '["prod"]'),
            "Environments of the project, also those that only other agents run.",
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """Where messages go that no route takes, and the agent's own."""

    teams_webhook_env: Annotated[
        str,
        Key(
            VARIABLE,
            "The environment variable that holds the address of a Teams workflow's webhook.",
            unset="nobody is told",
            example='"TEAMS_WEBHOOK"',
        ),
    ] = ""
