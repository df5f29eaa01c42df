"""Secrets never stand in agent.toml: what looks like one is refused, and its value is shown nowhere.

Guarantees: what `withhold` returns holds no value that looks like a secret, neither by its key's name nor by its form;
each one left out is a problem that names the key. `described` shows a value in a sentence only when it could not be a
secret that somebody put under a wrong key. Does not guarantee to know every secret: a short password under the name
of something harmless looks like a harmless value, and is never printed only while that value is right.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

from fdagent.project.problems import found

Report = Callable[[str, str, str], None]
"""Takes a problem: the table as a sentence shows it, the key, and what is wrong."""

MAX_DEPTH = 8
"""Tables and lists inside one another; agent.toml needs three."""
MAX_SHOWN = 60
MAX_LOOKED_AT = 2_000
"""Characters of a text that are searched for a secret's form; no text that long is taken anyway."""
ENV = "_env"

_SECRET_NAMES = re.compile(
    r"secret|password|passwd|passphrase|token|webhook|api_?key|account_?key|private_?key|connection_?string"
)
_FORMS = (
    (re.compile(r"-----\s*BEGIN\b"), "a PEM block"),
    (re.compile(r"([?&;]|^)\s*(sig|st|se|sp|skoid|code|key|token|access_token)=", re.IGNORECASE), "a signature"),
    (re.compile(r"\bsig=|SharedAccessSignature|SharedAccessKey|AccountKey\s*=", re.IGNORECASE), "a signature"),
    (re.compile(r"https?://\S*(webhook|hooks\.|logic\.azure\.com|/workflows/)", re.IGNORECASE), "a webhook's address"),
    (re.compile(r"://[^/@\s:]*:[^/@\s]*@"), "a password"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.|\bbearer\s+\S", re.IGNORECASE), "a token"),
    (re.compile(r"[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{20,}"), "a client secret"),
)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Z]*[A-Z])[A-Z0-9]{16,}")
_PART = re.compile(r"[A-Za-z0-9]{8,}")
"""A part of a name that mixes letters and digits and is that long is hardly a word."""


class Withheld:
    """Stands where a value was that looked like a secret and was reported."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(withheld)"


WITHHELD: Final = Withheld()


def withhold(values: dict[str, Any], report: Report) -> dict[str, Any]:
    """A copy of what a TOML file holds, with `WITHHELD` for each value that looks like a secret, which is reported."""
    return {key: _without_secrets(value, "", key, report, MAX_DEPTH) for key, value in values.items()}


def variable_problem(text: str) -> str:
    """What keeps `text` from being the name of an environment variable rather than the secret itself."""
    if _VARIABLE.fullmatch(text) and not _RANDOM.fullmatch(text):
        return ""
    return (
        "is no environment variable's name, expected one in capitals such as FABRIC_CLIENT_SECRET; "
        "if it is the secret itself, put it into such a variable"
    )


def secret_form(text: str) -> str:
    """What kind of secret a text looks like; empty when it looks like none."""
    text = text[:MAX_LOOKED_AT]
    plain = unquote(text)
    return next((what for form, what in _FORMS if form.search(text) or form.search(plain)), "")


def described(value: Any) -> str:
    """A value as a sentence shows it: itself, or only its length when it might be a secret under a wrong key."""
    if isinstance(value, str) and not _harmless(value):
        return f"a text of {len(value)} characters"
    return found(value)


def shown_key(key: str) -> str:
    """A key as a sentence shows it: itself, or only its length when it is no key anybody would choose."""
    if len(key) <= MAX_SHOWN and (re.fullmatch(r"[a-z_]+", key) or _harmless(key)):
        return key
    return f"(a key of {len(key)} characters)"


def _harmless(text: str) -> bool:
    random = any(not part.isdigit() and not part.isalpha() for part in _PART.findall(text))
    return len(text) <= MAX_SHOWN and not random and not secret_form(text)


def _without_secrets(value: Any, place: str, key: str, report: Report, depth: int) -> Any:
    what = _secret(key, value) if key else ""
    if not what and isinstance(value, str):
        what = _by_form(value)
    if not what and isinstance(value, dict | list) and depth == 0:
        what = f"lies more than {MAX_DEPTH} tables and lists deep; agent.toml needs no such depth"
    if what:
        report(place, key, what)
        return WITHHELD
    inner = depth - 1
    if isinstance(value, dict):
        where = _inside(place, key)
        return {name: _without_secrets(item, where, name, report, inner) for name, item in value.items()}
    if isinstance(value, list):
        return _list_without_secrets(value, place, key, report, inner)
    return value


def _list_without_secrets(items: list[Any], place: str, key: str, report: Report, depth: int) -> Any:
    """A list of tables is looked at table by table; another list is withheld whole when one item is a secret."""
    kept: list[Any] = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, dict):
            where = f"[{_inside(place, key)}] {number}"
            kept.append({name: _without_secrets(at, where, name, report, depth) for name, at in item.items()})
            continue
        kept.append(_without_secrets(item, place, key, report, depth))
        if kept[-1] is WITHHELD:
            return WITHHELD
    return kept


def _inside(place: str, key: str) -> str:
    """`[incidents]` and `route` are `[incidents.route]`."""
    return f"{place[:-1]}.{shown_key(key)}]" if place.endswith("]") else f"{place} [{shown_key(key)}]".strip()


def _secret(key: str, value: Any) -> str:
    """What is wrong with a key that names a secret, or names where one is to be found."""
    name = key.lower().replace("-", "_")
    if name.endswith(ENV):
        if not isinstance(value, str):
            return "expected the name of an environment variable (what was found is not shown)"
        problem = variable_problem(value)
        return f"what was found is not shown: it {problem}" if problem else ""
    if _SECRET_NAMES.search(name):
        return (
            "looks like a secret by its name; no secret stands in this file (its value is not shown): "
            f"put it into an environment variable and name that in a key such as `{shown_key(name)}{ENV}`"
        )
    return ""


def _by_form(text: str) -> str:
    form = secret_form(text)
    if not form:
        return ""
    return (
        f"holds what looks like {form}; no secret stands in this file (the value is not shown): put it into an "
        f"environment variable and name that in a key that ends with `{ENV}`"
    )
