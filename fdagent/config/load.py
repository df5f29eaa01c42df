"""Reading agent.toml: a file in, checked `Settings` out, or every problem it has at once.

Guarantees
- `Settings` that are returned were checked whole, but for what only a metadata project can tell (`against.py`).
- A `ConfigError` names every problem that could be seen, one sentence each, and holds no secret: neither in its text nor
  in what a traceback of it can reach.
- Writes nothing, opens nothing but the file, asks no network.

Does not guarantee that a folder, a certificate or a variable that is named exists: `fdagent check` looks.
"""

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from fdagent.config.file import read_toml
from fdagent.config.find import agent_name
from fdagent.config.incidents import Alerts, Incidents, Route
from fdagent.config.reading import Reading, Report, many_tables, one_table, places, read_table, report_unknown
from fdagent.config.rules import RULES
from fdagent.config.schedules import Pipeline, Schedule
from fdagent.config.secrets import withhold
from fdagent.config.settings import (
    LEAST_STALE_SECONDS,
    STALE_BEATS,
    TABLES,
    Agent,
    Identity,
    OneLake,
    Retry,
    Settings,
)
from fdagent.errors import ConfigError
from fdagent.project.problems import printable

T = TypeVar("T")

MAX_PROBLEMS = 200
"""Problems that an error names."""
FIX = "docs/agent-toml.md explains every key, deploy/agent.example.toml shows them all."


def load_settings(path: Path, *, host: str | None = None) -> Settings:
    """Read and check an agent.toml.

    What the file leaves open is filled in: the agent's name, `stale_seconds`, the mailbox's environments, and a
    schedule's time zone where the agent has one. An empty time zone is still the machine's.

    Args:
        path: The file.
        host: The machine's name; None: ask the machine.

    Raises:
        ConfigError: It can't be read, or has problems; `problems` has one sentence for each.
    """
    report = Report(printable(path.name) or "agent.toml")
    settings = _read(path, socket.gethostname() if host is None else host, report)
    sentences = tuple(dict.fromkeys(report.findings.sentences))
    number = len(sentences)
    if number > MAX_PROBLEMS:
        sentences = (*sentences[:MAX_PROBLEMS], f"{report.file}: has {number - MAX_PROBLEMS} more problems.")
    if settings is None or sentences:
        raise ConfigError(
            f"The configuration in {printable(str(path))} has {number} problem{'s' if number > 1 else ''}.",
            sentences,
            fix=FIX,
        )
    return settings


def _read(path: Path, host: str, report: Report) -> Settings | None:
    values = read_toml(path, lambda where, what: report(where, "", what))
    if values is None:
        return None
    values = withhold(values, report)
    report_unknown(values, "", "", report)
    raw = _tables(values, report)
    base = path.absolute().parent

    def one(of: type[T]) -> T:
        return every(of)[0]

    def every(of: type[T]) -> tuple[T, ...]:
        return tuple(read_table(of, raw[place], place, base, report) for place in places(raw, of))

    settings = Settings(
        file=path.absolute(),
        agent=one(Agent),
        identity=one(Identity),
        retry=one(Retry),
        schedules=every(Schedule),
        pipeline=one(Pipeline),
        incidents=one(Incidents),
        routes=every(Route),
        alerts=one(Alerts),
        onelake=one(OneLake),
    )
    settings = _filled(settings, host)
    reading = Reading(settings, report, {place: frozenset(table) for place, table in raw.items()})
    for rule in RULES:
        rule(reading)
    return settings


def _tables(values: Mapping[str, Any], report: Report) -> dict[str, Mapping[str, Any]]:
    """Place -> what stands there, for every table; those that may be there once are there, if only empty."""
    raw: dict[str, Mapping[str, Any]] = {}
    for of in TABLES:
        parent = of.name.rpartition(".")[0]
        outer = raw[f"[{parent}]"] if parent else values
        if of.many:
            raw.update(many_tables(outer, of, report))
        else:
            raw[of.header] = one_table(outer, of, report)
    return raw


def _filled(settings: Settings, host: str) -> Settings:
    """The settings with what the file leaves open."""
    agent = settings.agent
    agent = replace(
        agent,
        name=agent.name or agent_name(host),
        stale_seconds=agent.stale_seconds or max(STALE_BEATS * agent.status_seconds, LEAST_STALE_SECONDS),
    )
    pipeline = settings.pipeline
    return replace(
        settings,
        agent=agent,
        pipeline=replace(pipeline, environments=pipeline.environments or agent.environments),
        schedules=tuple(replace(one, time_zone=one.time_zone or agent.time_zone) for one in settings.schedules),
    )
