"""The forms a text in agent.toml may have: times of day, addresses, paths, sizes, names.

Guarantees: each function answers with the end of a sentence that says what is wrong with the text, or with an empty
text; none repeats the text, raises, or looks at anything outside it. Whether a folder, a host or an entity exists is
not seen here.
"""

import re
from urllib.parse import urlsplit

MAX_TEXT = 500
"""Characters a text may have, paths and addresses included."""
MIN_MEMORY_BYTES = 128 * 1024**2
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WORKSPACE = "{workspace}"

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DOMAIN = re.compile(r"([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}")
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([KMGT])(i?)B", re.IGNORECASE)
_GLOB = re.compile(r"[A-Za-z0-9._*?\[\]!-]+")
_EXPANDED = re.compile(r"^~|\$\{?[A-Za-z_]|%[A-Za-z_][A-Za-z0-9_()]*%")
_TABLES = re.compile(r"(abfss|az|https)://[A-Za-z0-9.:@{}/_-]+[A-Za-z0-9}_-]")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def line_problem(text: str) -> str:
    """What keeps a text from being one line that a record, a card and a terminal can show."""
    if not text.strip():
        return "is blank"
    if len(text) > MAX_TEXT:
        return f"has {len(text)} characters; {MAX_TEXT} are allowed"
    return "" if text.isprintable() else "has a character that can't be shown"


def path_problem(text: str) -> str:
    """What keeps a text from being a path. Nothing in it is expanded: a service has another home than a person."""
    problem = line_problem(text)
    if problem == "has a character that can't be shown":
        return f"{problem}; write a Windows path between 'single quotes', where a backslash means itself"
    if not problem and _EXPANDED.search(text):
        return "has a `~` or a variable, which is not expanded here; expected the path itself"
    return problem


def certificate_problem(text: str) -> str:
    """What keeps a path from being a certificate's with its private key."""
    problem = path_problem(text)
    return problem or ("" if text.lower().endswith((".pem", ".pfx")) else "is no path to a .pem or .pfx file")


def guid_problem(text: str) -> str:
    """What keeps a text from being a GUID."""
    return "" if _GUID.fullmatch(text) else "is no GUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"


def tenant_problem(text: str) -> str:
    """What keeps a text from naming a tenant."""
    if _GUID.fullmatch(text) or _DOMAIN.fullmatch(text):
        return ""
    return "is neither a tenant's GUID nor a domain of it, such as contoso.onmicrosoft.com"


def clock_problem(text: str) -> str:
    """What keeps a text from being a time of day."""
    return "" if _CLOCK.fullmatch(text) else 'is no time of day from "00:00" to "23:59", such as "06:30"'


def week_problem(text: str) -> str:
    """What keeps a text from being a time of the week."""
    day, _, clock = text.partition(" ")
    if day.lower() in DAYS and _CLOCK.fullmatch(clock):
        return ""
    return f'is no day and time such as "mon 06:30" (days: {", ".join(DAYS)})'


def span_problem(text: str) -> str:
    """What keeps a text from being a span of the day, which may cross midnight."""
    start, _, end = text.partition("-")
    if not (_CLOCK.fullmatch(start) and _CLOCK.fullmatch(end)):
        return 'is no span of the day such as "22:00-06:00"'
    return "begins and ends at the same time" if start == end else ""


def size_problem(text: str) -> str:
    """What keeps a text from being an amount of memory that the engine can work with."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return 'is no amount of memory such as "512MB" or "4GiB"'
    number, unit, binary = match.groups()
    size = float(number) * (1024 if binary else 1000) ** (1 + "KMGT".index(unit.upper()))
    return "" if size >= MIN_MEMORY_BYTES else "is less than 128MiB, with which the engine can't work"


def glob_problem(text: str) -> str:
    """What keeps a text from being an entity's name or a glob over such names."""
    if len(text) > MAX_TEXT:
        return f"has {len(text)} characters; {MAX_TEXT} are allowed"
    return "" if _GLOB.fullmatch(text) else 'is no entity such as "silver.orders" and no glob such as "silver.*"'


def address_problem(text: str) -> str:
    """What keeps a text from being a service's address. Tokens are sent there, so only a loopback may go without TLS."""
    if problem := line_problem(text):
        return problem
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no address such as https://host"
    if parts.scheme not in {"https", "http"} or not host or port == 0 or " " in text:
        return "is no address such as https://host"
    if parts.username is not None or parts.query or parts.fragment:
        return "is more than an address: leave out user, query and fragment"
    return "" if parts.scheme == "https" or host in _LOOPBACK else "is http, expected https"


def authority_problem(text: str) -> str:
    """What keeps a text from being the address of an identity provider."""
    problem = address_problem(text)
    if problem or (text.startswith("https://") and not urlsplit(text).path.strip("/")):
        return problem
    return "is no address such as https://login.microsoftonline.com, without a path"


def tables_problem(text: str) -> str:
    """What keeps a text from being what tables' URLs begin with."""
    if text.count(WORKSPACE) == 1 and _TABLES.fullmatch(text) and "{" not in text.replace(WORKSPACE, ""):
        return ""
    return f"is no table URL prefix such as abfss://{WORKSPACE}@host, with {WORKSPACE} once and no slash at the end"
