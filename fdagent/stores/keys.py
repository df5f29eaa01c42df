"""Which keys a record may have, and how a prefix is taken apart.

Guarantees: a checked key names a file below the store's root on Linux, macOS and Windows, and a blob whose name OneLake
keeps as it is: no step out of the root, no separator but `/`, no `%` (OneLake collapses `%XX`), no name that Windows
gives a meaning. Does not guarantee that an id in the key is one of ours: ids are narrower (64 characters).
"""

import re

from fdagent.errors import BadKey

MAX_SEGMENTS = 4
MAX_NAME = 140
"""Characters in one segment: the longest is a lease, two ids of 64 with a dot between and `.json` behind."""

_NAME = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9._-]*", re.ASCII)
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
)

_FIX = "A key is made of names joined by '/': letters, digits, '.', '_' and '-', no dot first or last."


def check_key(key: str) -> str:
    """The key, if a record may have it.

    Raises:
        BadKey: It may not; nothing was touched.
    """
    names = key.split("/")
    if len(names) > MAX_SEGMENTS:
        raise BadKey(f"The key {_shown(key)} has {len(names)} parts; {MAX_SEGMENTS} is the most.", fix=_FIX)
    for name in names:
        _check_name(key, name)
    return key


def split_prefix(prefix: str) -> tuple[str, str]:
    """A prefix as (folder, the beginning of a name): `status/ab` is `("status/", "ab")`, `` is `("", "")`.

    Raises:
        BadKey: No key starts like that.
    """
    folder, slash, start = prefix.rpartition("/")
    if slash:
        check_key(folder)
    if start.startswith(".") or not _PART.fullmatch(start) or len(start) > MAX_NAME:
        raise BadKey(f"No key starts with {_shown(prefix)}.", fix=_FIX)
    return folder + slash, start


def _check_name(key: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadKey(f"The key {_shown(key)} has a part that no record may have: {_shown(name)}.", fix=_FIX)
    if len(name) > MAX_NAME:
        raise BadKey(f"The key {_shown(key)} has a part of {len(name)} characters; {MAX_NAME} is the most.", fix=_FIX)
    if name.split(".", 1)[0].casefold() in _DEVICES:
        raise BadKey(f"The key {_shown(key)} names a Windows device.", fix="Choose another name.")


def _shown(text: str) -> str:
    """Quoted and cut, so that no key can flood a message or carry control characters into it."""
    return ascii(text if len(text) <= MAX_NAME else text[:MAX_NAME] + "...")
