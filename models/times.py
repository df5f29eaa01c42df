"""Times as records write them: `2027-01-15T09:00:00Z`, whole seconds, UTC.

Guarantees: what `stamp` writes, `seconds` reads back. A time read from a record is shown to people and never decides
who may do what (rule C4).
"""

import re
from datetime import UTC, datetime, timedelta

from models.errors import BadTime

_SHAPE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- its zone is the Z that is written behind it


def stamp(seconds_since_epoch: float) -> str:
    """The time as text, cut (not rounded) to the second."""
    # Not strftime: it writes the year 1, which other programs use for "no time", without its zeros.
    return (_EPOCH + timedelta(seconds=int(seconds_since_epoch))).isoformat() + "Z"


def seconds(text: str) -> float:
    """The text as seconds since the epoch.

    Raises:
        BadTime: The text is not such a time, or names one that does not exist.
    """
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise BadTime(f"{text[:64]!r} is not a time.", fix="Write it in UTC as 2027-01-15T09:00:00Z.")
    try:
        moment = datetime(*(int(part) for part in found.groups()[:6]), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError as err:
        raise BadTime(f"{text!r} does not exist: {err}.", fix="Write it in UTC as 2027-01-15T09:00:00Z.") from err
    return moment.timestamp() + float(found.group(7) or 0)


def reached(moment: float | None, now: float | None) -> bool:
    """Is it `moment` or later? No, when either is not known."""
    return moment is not None and now is not None and now >= moment


def ahead(moment: float | None, now: float | None) -> bool:
    """Is it earlier than `moment`? No, when either is not known: so this is not the opposite of `reached`."""
    return moment is not None and now is not None and now < moment
