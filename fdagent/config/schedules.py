"""`[[schedule]]` and `[pipeline]`: what an agent runs by itself, and what it runs for others.

Guarantees and limits are those of `settings.py`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from fdagent.config.forms import ENTITIES, ENVIRONMENT, ENVIRONMENTS, NAME, YEAR_MINUTES, ZONE
from fdagent.config.keys import Choice, Flag, Key, Many, Number, Text, Whole
from fdagent.config.shapes import clock_problem, week_problem
from models.ids import MAX_SHARED_SCHEDULE_LENGTH

Claim = Literal["always", "when_free"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When which entities run: one of `every_minutes`, `daily` and `weekly`."""

    id: Annotated[
        str,
        Key(
            NAME,
            f"Its name, unique in this file; a shared one has at most {MAX_SHARED_SCHEDULE_LENGTH} characters.",
            required=True,
            example='"nightly"',
        ),
    ] = ""
    env: Annotated[
        str,
        Key(ENVIRONMENT, "The environment it runs.", required=True, example='"prod"'),
    ] = ""
    entities: Annotated[
        tuple[str, ...],
        Key(ENTITIES, "Names of entities, and globs over them.", unset="all entities", example='["silver.*"]'),
    ] = ()
    cascade: Annotated[bool, Key(Flag(), "Run everything downstream of them too.")] = False
    backfill: Annotated[
        Literal["", "full"],
        Key(
            Choice(("full",)),
            "`full` loads everything again instead of what is new.",
            unset="only what is new",
            example='"full"',
        ),
    ] = ""
    every_minutes: Annotated[
        float | None,
        Key(
            Number(0.02, YEAR_MINUTES),
            "Minutes from one time to the next, counted in UTC since 1970, so that no clock change moves them. Whole "
            "ones for a shared schedule.",
            unset="`daily` or `weekly` says when",
            example="15",
        ),
    ] = None
    daily: Annotated[
        tuple[str, ...],
        Key(
            Many(Text("a time of day", clock_problem), '["02:00"]', least=1),
            "Times of each day. One that a clock change leaves out runs at the shifted instant; one that comes twice "
            "runs once.",
            unset="`every_minutes` or `weekly` says when",
            example='["02:00"]',
        ),
    ] = ()
    weekly: Annotated[
        tuple[str, ...],
        Key(
            Many(Text("a day and time", week_problem, tidy=str.lower), '["mon 06:00"]', least=1),
            "Days and times of each week.",
            unset="`every_minutes` or `daily` says when",
            example='["mon 06:00"]',
        ),
    ] = ()
    time_zone: Annotated[
        str,
        Key(ZONE, "The time zone of its `daily` and `weekly` times.", unset="that of `[agent]`", example='"UTC"'),
    ] = ""
    shared: Annotated[
        bool,
        Key(
            Flag(),
            "Every agent that has it posts its times as requests into the mailbox, and one of them runs each.",
        ),
    ] = False
    enabled: Annotated[bool, Key(Flag(), "`false` keeps it here without running it.")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The mailbox: requests of Fabric pipelines, of people and of shared schedules, served by any agent."""

    enabled: Annotated[bool, Key(Flag(), "Serve the mailbox.")] = False
    environments: Annotated[
        tuple[str, ...],
        Key(ENVIRONMENTS, "The environments whose mailbox it serves.", unset="all it runs", example='["prod"]'),
    ] = ()
    entities: Annotated[
        tuple[str, ...],
        Key(ENTITIES, "The only entities a request may run here.", unset="all", example='["silver.*", "gold.*"]'),
    ] = ()
    allow_backfill: Annotated[bool, Key(Flag(), "Serve requests that load everything again.")] = False
    claim: Annotated[
        Claim,
        Key(
            Choice(get_args(Claim)),
            "`when_free` takes a request only when a worker is free, `always` also to let it wait here.",
        ),
    ] = "always"
    take_over: Annotated[bool, Key(Flag(), "Go on with requests whose agent is gone.")] = False
    retention_days: Annotated[int, Key(Whole(1, 3650), "Days a finished request is kept.")] = 14
