"""Whether another agent lives, judged by a reader from what it has seen; nothing of it is ever stored.

Guarantees: no time that another machine wrote is compared with a clock of this one (rule C4). Spans are differences
of two times of one record; how long a record was seen unchanged is counted by the reader's own clock. What is missing,
unreadable or absurd is unknown, and unknown is never lost and never gone.
"""

import math
from enum import StrEnum
from fnmatch import fnmatchcase

from models.agent import AgentRecord, AgentState

BEATS_A_SPAN = 3
SHORTEST_SPAN_SECONDS = 90.0
LONGEST_GRACE_SECONDS = 60.0
STOPPED_SECONDS = 60.0
"""A stopped agent may be replaced in what it held after this long."""
WATCHED_BEATS = 2


class Liveness(StrEnum):
    """`late`: silent for its stale span, and still within its grace."""

    ALIVE = "alive"
    LATE = "late"
    LOST = "lost"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


def default_span_seconds(status_seconds: float) -> float:
    """The stale span of an agent that beats every `status_seconds`: three beats, at least 90 s."""
    return max(BEATS_A_SPAN * status_seconds, SHORTEST_SPAN_SECONDS)


def grace_for(span_seconds: float) -> float:
    """How much longer than its span an agent is waited for: 60 s, or the span if that is shorter."""
    return min(LONGEST_GRACE_SECONDS, span_seconds)


def span_seconds(record: AgentRecord) -> float | None:
    """Its stale span; None when the record does not say."""
    if record.stale_after is not None and record.heartbeat_at is not None:
        span = record.stale_after - record.heartbeat_at
        if span > 0:
            return span
    beat = record.status_seconds
    return default_span_seconds(beat) if beat is not None and _sane(beat) else None


def lost_after_seconds(record: AgentRecord) -> float | None:
    """How long a reader must see it unchanged before it is lost; None: it never is."""
    span = span_seconds(record)
    if span is None:
        return None
    grace = record.grace_seconds
    return span + (grace if grace is not None and _sane(grace) else grace_for(span))


def gone_after_seconds(record: AgentRecord) -> float | None:
    """How long a reader must see it unchanged before what it holds may be taken from it; None: it never may."""
    return STOPPED_SECONDS if record.state is AgentState.STOPPED else lost_after_seconds(record)


def liveness(record: AgentRecord | None, unchanged_seconds: float | None) -> Liveness:
    """Judge an agent.

    Args:
        record: Its record; None: there is none, or it can't be read.
        unchanged_seconds: For how long this reader has seen this very version, by its own clock; None: not watched.
            A command that can't watch passes the age by the store's clock, and says that it is an estimate.
    """
    if record is None:
        return Liveness.UNKNOWN
    if record.state is AgentState.STOPPED:
        return Liveness.STOPPED
    span, lost_after = span_seconds(record), lost_after_seconds(record)
    if span is None or lost_after is None or unchanged_seconds is None or not _sane(unchanged_seconds):
        return Liveness.UNKNOWN
    if unchanged_seconds >= lost_after:
        return Liveness.LOST
    return Liveness.LATE if unchanged_seconds >= span else Liveness.ALIVE


def is_lost(record: AgentRecord | None, unchanged_seconds: float | None) -> bool:
    """Seen unchanged for its stale span and grace, and not stopped."""
    return liveness(record, unchanged_seconds) is Liveness.LOST


def is_away(record: AgentRecord, unchanged_seconds: float | None) -> bool:
    """Is it lost, or stopped for longer than a restart takes?"""
    state = liveness(record, unchanged_seconds)
    return state is Liveness.LOST or (state is Liveness.STOPPED and (unchanged_seconds or 0.0) > STOPPED_SECONDS)


def is_silent(record: AgentRecord | None, unchanged_seconds: float | None) -> bool:
    """Watched for two of its beats without a change: enough to take over its name, not its work."""
    if record is None or record.status_seconds is None or not _sane(record.status_seconds):
        return False
    return unchanged_seconds is not None and unchanged_seconds >= WATCHED_BEATS * max(record.status_seconds, 1.0)


def is_gone(
    record: AgentRecord | None,
    *,
    holder: str | None,
    unchanged_seconds: float | None,
    instance_seconds: float | None,
    serves_mailbox: bool | None,
) -> bool:
    """May what this agent held be taken from it?

    Args:
        record: The holder's agent record; None: there is none, or it can't be read.
        holder: The instance that the request's status names; None: it names none.
        unchanged_seconds: For how long this reader has seen this version of the record.
        instance_seconds: For how long it has seen the record name the instance that it names now.
        serves_mailbox: Does it serve this mailbox at all, by its record? None: not known.
    """
    state = liveness(record, unchanged_seconds)
    if record is None or unchanged_seconds is None or state is Liveness.UNKNOWN:
        return False
    if state in (Liveness.STOPPED, Liveness.LOST):
        return is_away(record, unchanged_seconds)
    span = span_seconds(record)
    if holder is not None and record.instance is not None and holder != record.instance:
        return span is not None and instance_seconds is not None and instance_seconds > span
    return state is Liveness.ALIVE and serves_mailbox is False


def serves(
    record: AgentRecord, *, env: str, entities: tuple[str, ...] | None, backfill: bool, version: str | None
) -> bool | None:
    """Does the agent, by its record, serve such a request? None: the record leaves it open.

    Args:
        record: Its record.
        env: The environment of the mailbox.
        entities: The names the request resolves to; None: not known.
        backfill: The request asks for a rebuild.
        version: The promoted metadata version; None: leave the version out of it, as it passes by itself.
    """
    pipeline = record.pipeline
    if pipeline is None:
        return None
    answers = (
        None if record.env is None else record.env == env,
        pipeline.enabled,
        pipeline.allow_backfill if backfill else True,
        covers(pipeline.entities, entities),
        True if version is None else _equal(record.metadata_version, version),
    )
    if False in answers:
        return False
    return None if None in answers else True


def covers(globs: tuple[str, ...] | None, names: tuple[str, ...] | None) -> bool | None:
    """Does each name match one of the globs, letter case counting? None: either is not known."""
    if globs is None or names is None:
        return None
    return all(any(fnmatchcase(name, glob) for glob in globs) for name in names)


def _equal(said: str | None, version: str) -> bool | None:
    return None if said is None else said == version


def _sane(seconds: float) -> bool:
    return math.isfinite(seconds) and seconds >= 0
