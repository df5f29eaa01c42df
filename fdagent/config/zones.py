"""Time zones by their name in the tz database.

Guarantees: a name without a problem can be loaded on this machine, and means the same on every other. A missing
database is said as such: no time zone is ever taken for UTC.
"""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from fdagent.project.problems import nearest

MAX_NAME = 64

_NOT_ZONES = frozenset({"localtime", "posixrules", "Factory"})
"""Files among the zones that mean something else on each machine, or nothing."""


def zone_problem(name: str) -> str:
    """What keeps `name` from being a time zone here, as the end of a sentence; empty when nothing does."""
    if len(name) <= MAX_NAME and name not in _NOT_ZONES and _loads(name):
        return ""
    known = available_timezones()
    if not known:
        return (
            "can't be looked up: this machine has no tz database; install the operating system's package `tzdata`, "
            "or the Python package of that name beside fdagent"
        )
    meant = nearest(name, known)
    hint = f"did you mean `{meant}`?" if meant else "expected a name such as Europe/Berlin"
    return f"is no time zone of the tz database; {hint}"


def _loads(name: str) -> bool:
    try:
        ZoneInfo.no_cache(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is an OSError, a path is a ValueError
        return False
    return True
