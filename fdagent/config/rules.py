"""Rules of agent.toml that look at more than one key. Each one's first line is its sentence in the reference page.

Guarantees: a rule says nothing about keys that are wrong by themselves, which was reported; every broken rule is
reported, not only the first. What only a metadata project can tell is in `against.py`.
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

from fdagent.config.keys import declared
from fdagent.config.reading import Reading
from fdagent.config.schedules import Schedule
from fdagent.config.secrets import described
from fdagent.config.settings import Identity, IdentityKind
from fdagent.project.problems import choices, did_you_mean
from models.ids import MAX_SHARED_SCHEDULE_LENGTH, id_problem

AGENT, IDENTITY, RETRY, PIPELINE, INCIDENTS = "[agent]", "[identity]", "[retry]", "[pipeline]", "[incidents]"
TIMES = ("every_minutes", "daily", "weekly")
NEEDED: dict[IdentityKind, tuple[str, ...]] = {
    "certificate": ("tenant_id", "client_id", "certificate_path"),
    "client_secret": ("tenant_id", "client_id", "client_secret_env"),
    "managed_identity": (),
    "user": (),
    "none": (),
}
"""What each kind of identity must have."""
ALLOWED: dict[IdentityKind, tuple[str, ...]] = {
    "certificate": ("certificate_password_env", "send_certificate_chain", "authority"),
    "client_secret": ("authority",),
    "managed_identity": ("client_id",),
    "user": ("tenant_id", "authority"),
    "none": (),
}
"""What each kind of identity may have besides."""


def identity_has_what_its_kind_needs(reading: Reading) -> None:
    """Each kind of identity needs its own keys and refuses the others, unless they have their default."""
    if reading.report.has(IDENTITY, "kind"):
        return
    identity, given = reading.settings.identity, reading.given[IDENTITY]
    kind = identity.kind
    defaults = {key.name: key.default for key in declared(Identity)}
    for key in NEEDED[kind]:
        if key not in given:
            reading.report(IDENTITY, key, f'missing, `kind = "{kind}"` needs it')
    for key in sorted({key for keys in (*NEEDED.values(), *ALLOWED.values()) for key in keys}):
        if key in given and key not in (*NEEDED[kind], *ALLOWED[kind]) and getattr(identity, key) != defaults[key]:
            takers = [other for other in NEEDED if key in (*NEEDED[other], *ALLOWED[other])]
            reading.report(IDENTITY, key, f'is for kind {choices(takers)}; found `kind = "{kind}"`')


def stale_is_longer_than_two_beats(reading: Reading) -> None:
    """`stale_seconds` is at least twice `status_seconds`: one late heartbeat loses nobody."""
    agent = reading.settings.agent
    if reading.report.has(AGENT, "stale_seconds", "status_seconds"):
        return
    if agent.stale_seconds < 2 * agent.status_seconds:
        what = f"found {agent.stale_seconds}, expected at least twice status_seconds ({agent.status_seconds})"
        reading.report(AGENT, "stale_seconds", what)


def jobs_are_kept_as_long_as_requests(reading: Reading) -> None:
    """With a mailbox, `[agent] retention_days` is at least `[pipeline] retention_days`."""
    agent, pipeline = reading.settings.agent, reading.settings.pipeline
    if reading.report.has(AGENT, "retention_days") or reading.report.has(PIPELINE, "retention_days", "enabled"):
        return
    if pipeline.enabled and agent.retention_days < pipeline.retention_days:
        what = f"found {agent.retention_days}, expected at least the mailbox's {pipeline.retention_days}"
        reading.report(AGENT, "retention_days", f"{what} ({PIPELINE} retention_days)")


def waits_grow(reading: Reading) -> None:
    """`[retry] max_backoff_seconds` is at least `backoff_seconds`."""
    retry = reading.settings.retry
    if reading.report.has(RETRY, "backoff_seconds", "max_backoff_seconds"):
        return
    if retry.max_backoff_seconds < retry.backoff_seconds:
        what = f"found {retry.max_backoff_seconds}, expected at least backoff_seconds ({retry.backoff_seconds})"
        reading.report(RETRY, "max_backoff_seconds", what)


def mailboxes_are_of_its_environments(reading: Reading) -> None:
    """`[pipeline] environments` are among `[agent] environments`."""
    if reading.report.has(PIPELINE, "environments"):
        return
    for env in reading.settings.pipeline.environments:
        _must_run(reading, PIPELINE, "environments", env)


def names_are_unique(reading: Reading) -> None:
    """No two schedules have the same `id`, no two routes the same `name`, letter case aside."""
    schedules = [(place, one.id) for place, one in reading.schedules()]
    routes = [(place, one.name) for place, one in reading.routes()]
    for key, named in (("id", schedules), ("name", routes)):
        first: dict[str, str] = {}
        for place, name in named:
            other = first.setdefault(name.casefold(), place)
            if name and other != place:
                reading.report(place, key, f"{described(name)} is also that of {other}, letter case aside")


def schedules_have_one_kind_of_time(reading: Reading) -> None:
    """A schedule has exactly one of `every_minutes`, `daily` and `weekly`."""
    for place, _ in reading.schedules():
        given = [key for key in TIMES if key in reading.given[place]]
        if not given:
            reading.report(place, "", "says no time, expected one of every_minutes, daily and weekly")
        elif len(given) > 1:
            reading.report(place, "", f"has {' and '.join(given)}, expected one of them")


def schedules_are_of_its_environments(reading: Reading) -> None:
    """A schedule's `env` is among `[agent] environments`."""
    for place, schedule in reading.schedules():
        if schedule.env:
            _must_run(reading, place, "env", schedule.env)


def shared_schedules_have_a_mailbox(reading: Reading) -> None:
    """A shared schedule needs `[pipeline] enabled` for its environment: its times are requests in the mailbox."""
    pipeline = reading.settings.pipeline
    if reading.report.has(PIPELINE, "enabled", "environments"):
        return
    for place, schedule in _shared(reading):
        if not pipeline.enabled:
            reading.report(place, "shared", f"needs `enabled = true` in {PIPELINE}")
        elif schedule.env in reading.settings.agent.environments and schedule.env not in pipeline.environments:
            reading.report(place, "shared", f"needs {described(schedule.env)} among {PIPELINE} environments")


def shared_ids_fit_a_request(reading: Reading) -> None:
    """A shared schedule's `id` has at most 40 characters: it is part of its requests' ids."""
    for place, schedule in _shared(reading):
        problem = id_problem(schedule.id, longest=MAX_SHARED_SCHEDULE_LENGTH) if schedule.id else ""
        if problem:
            reading.report(place, "id", f"of a shared schedule {problem}")


def shared_minutes_are_whole(reading: Reading) -> None:
    """A shared schedule's `every_minutes` is a whole number of at least 1."""
    for place, schedule in _shared(reading):
        minutes = schedule.every_minutes
        if minutes is not None and (minutes < 1 or not minutes.is_integer()):
            what = f"found {minutes:g}, expected a whole number of at least 1 since the schedule is shared"
            reading.report(place, "every_minutes", what)


def shared_times_name_their_zone(reading: Reading) -> None:
    """A shared schedule with `daily` or `weekly` times needs a `time_zone`, here or in `[agent]`: machines differ."""
    for place, schedule in _shared(reading):
        timed = schedule.daily or schedule.weekly
        known = reading.report.has(place, "time_zone") or reading.report.has(AGENT, "time_zone")
        if timed and not schedule.time_zone and not known:
            what = "missing, a shared schedule's times must mean the same on every agent; name it here or in [agent]"
            reading.report(place, "time_zone", what)


def shared_entities_are_served(reading: Reading) -> None:
    """A shared schedule's `entities` are inside `[pipeline] entities`; where that is given, it must name some."""
    allowed = reading.settings.pipeline.entities
    if not allowed:
        return
    for place, schedule in _shared(reading):
        if not schedule.entities and not reading.report.has(place, "entities"):
            reading.report(place, "entities", f"missing, which means all, but {PIPELINE} entities allows only some")
        for word in schedule.entities:
            if not any(covers(glob, word) for glob in allowed):
                reading.report(place, "entities", f"{described(word)} is not inside {PIPELINE} entities")


def shared_backfills_are_allowed(reading: Reading) -> None:
    """A shared schedule with `backfill` needs `[pipeline] allow_backfill`."""
    if reading.settings.pipeline.allow_backfill or reading.report.has(PIPELINE, "allow_backfill"):
        return
    for place, schedule in _shared(reading):
        if schedule.backfill:
            reading.report(place, "backfill", f"needs `allow_backfill = true` in {PIPELINE}, since it is shared")


def escalations_reach_somebody(reading: Reading) -> None:
    """`escalate_to` names a route and comes with `escalate_after_minutes`, which needs it or a default webhook."""
    incidents = reading.settings.incidents
    routes = [route.name for _, route in reading.routes() if route.name]
    after = "escalate_after_minutes" in reading.given[INCIDENTS]
    if incidents.escalate_to:
        if incidents.escalate_to not in routes:
            what = f"{described(incidents.escalate_to)} is no route's name{did_you_mean(incidents.escalate_to, routes)}"
            reading.report(INCIDENTS, "escalate_to", what)
        if not after:
            reading.report(INCIDENTS, "escalate_to", "says nothing without `escalate_after_minutes`")
    elif (
        after and "escalate_to" not in reading.given[INCIDENTS] and "teams_webhook_env" not in reading.given["[alerts]"]
    ):
        what = "reaches nobody, expected `escalate_to` or a `teams_webhook_env` in [alerts]"
        reading.report(INCIDENTS, "escalate_after_minutes", what)


Rule = Callable[[Reading], None]
RULES: tuple[Rule, ...] = (
    identity_has_what_its_kind_needs,
    stale_is_longer_than_two_beats,
    jobs_are_kept_as_long_as_requests,
    waits_grow,
    mailboxes_are_of_its_environments,
    schedules_have_one_kind_of_time,
    schedules_are_of_its_environments,
    shared_schedules_have_a_mailbox,
    shared_ids_fit_a_request,
    shared_minutes_are_whole,
    shared_times_name_their_zone,
    shared_entities_are_served,
    shared_backfills_are_allowed,
    escalations_reach_somebody,
    names_are_unique,
)


def covers(glob: str, word: str) -> bool:
    """Is every entity that `word` can mean one that `glob` means? Where that can't be seen from the texts: no.

    A class in brackets stands for one character, so `word` with `?` in its place means at least as much. As long as
    `glob` has no such places itself, matching that text decides: whatever `word` leaves open, a `*` of `glob` takes.
    """
    if glob == word:
        return True
    wider = re.sub(r"\[!?[^\]]+\]", "?", word)
    plain = not set("*?[") & set(word)
    return (plain or not set("?[") & set(glob)) and fnmatchcase(wider, glob)


def _shared(reading: Reading) -> Iterable[tuple[str, Schedule]]:
    return [(place, schedule) for place, schedule in reading.schedules() if schedule.shared]


def _must_run(reading: Reading, place: str, key: str, env: str) -> None:
    """Report an environment that this agent doesn't run, unless it is not known what it runs."""
    runs = reading.settings.agent.environments
    if runs and env not in runs:
        reading.report(place, key, f"{described(env)} is not among [agent] environments{did_you_mean(env, runs)}")
