"""Times as records write them: `2027-01-15T09:00:00Z`, whole seconds, UTC; and spans as people read them.

Guarantees: what `stamp` writes, `seconds` reads back; a span is rounded before it is cut into units, so that no unit
is ever full (`10 min 00 s`, never `9 min 60 s`). A time read from a record is shown to people and never decides who may do
what (rule C4).
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from models.errors import BadTime

_SHAPE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?Z", re.ASCII)
MINUTE, HOUR, DAY = 60, 3600, 86_400
WEEK_DAYS = 7
TENTHS_BELOW = 9.95
"""Shorter spans are told with tenths of a second: from here on they would round to `10.0 s`."""
MAX_KEPT = 1000
"""Times that are remembered with their texts: each version of a record repeats most of those of the one before."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- its zone is the Z that is written behind it


@lru_cache(MAX_KEPT)
def stamp(seconds_since_epoch: float) -> str:
    """The time as text, cut (not rounded) to the second.

    Raises:
        BadTime: It lies outside the years 1 to 9999, or is no number.
    """
    try:
        # Not strftime: it writes the year 1, which other programs use for "no time", without its zeros.
        return (_EPOCH + timedelta(seconds=int(seconds_since_epoch))).isoformat() + "Z"
    except (OverflowError, ValueError) as err:
        raise BadTime(
            f"{seconds_since_epoch:g} seconds since 1970 is no time of the years 1 to 9999.", fix="Name a nearer time."
        ) from err


@lru_cache(MAX_KEPT)
def seconds(text: str) -> float:
    """The text as seconds since the epoch.

    Raises:
        BadTime: The text is not such a time, or names one that does not exist.
    """
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise BadTime(f"{text[:64]!r} is not a time.", fix="Write it in UTC as 2027-01-15T09:00:00Z.")
    try:
        year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as err:
        raise BadTime(f"{text!r} does not exist: {err}.", fix="Write it in UTC as 2027-01-15T09:00:00Z.") from err
    return moment.timestamp() + float(found.group(7) or 0)


def reached(moment: float | None, now: float | None) -> bool:
    """Is it `moment` or later? No, when either is not known."""
    return moment is not None and now is not None and now >= moment


def ahead(moment: float | None, now: float | None) -> bool:
    """Is it earlier than `moment`? No, when either is not known: so this is not the opposite of `reached`."""
    return moment is not None and now is not None and now < moment


def lasted(span: float) -> str:
    """How long something lasts, in one unit or two: `3.2 s`, `45 s`, `9 min 05 s`, `3 h 20 min`, `2 days 4 h`.

    Args:
        span: Seconds; less than none counts as none.
    """
    span = max(span, 0.0)
    if span < TENTHS_BELOW:
        return f"{span:.1f} s"
    whole = round(span)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE:02} s"
    minutes = round(span / MINUTE)
    if minutes < DAY // MINUTE:
        return f"{minutes // 60} h {minutes % 60:02} min"
    days, hours = divmod(round(span / HOUR), 24)
    if days >= WEEK_DAYS:
        return f"{round(span / DAY)} days"
    return f"{days} day{'' if days == 1 else 's'}" + (f" {hours} h" if hours else "")
