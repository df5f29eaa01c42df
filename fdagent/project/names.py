"""Which names layers, tables, columns and lakehouses may have, so that Fabric, Delta and every file system take them.

Guarantees: each function answers with the end of a sentence that says what is wrong, or with an empty text. A name that
passes needs no escaping in a path and means one thing on Windows and on Linux, apart from letter case: that two names
are not equal but for case is the caller's to see. Does not know about columns that only a transform's SQL makes.
"""

import re
import unicodedata
from collections.abc import Iterable

from models.ids import MAX_LENGTH, id_problem

MAX_COLUMN_LENGTH = 128
MAX_LAKEHOUSE_LENGTH = 123

RESERVED_LAKEHOUSES = ("LH_Meta", "LH_Keys")
"""Lakehouses of the agent itself: control files, run log and quarantine; surrogate keys."""

_REFUSED_IN_COLUMNS = frozenset("\"'#%+:?`/\\ ,;{}()=")
_LAKEHOUSE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def part_problem(text: str) -> str:
    """What keeps `text` from being a layer, schema or table name: rule C8, no dot, and nothing Spark would hide."""
    problem = id_problem(text)
    if problem:
        return problem
    if "." in text:
        return "has a dot, which stands between a layer and its table"
    if text.startswith("_"):
        return "begins with an underscore; Spark and Fabric take such a folder for a hidden one"
    return ""


def column_problem(text: str) -> str:
    """What keeps `text` from being a column of a table that Fabric can read without column mapping."""
    if not text:
        return "is empty"
    if len(text) > MAX_COLUMN_LENGTH:
        return f"has {len(text)} characters; {MAX_COLUMN_LENGTH} are allowed"
    for character in text:
        if character in _REFUSED_IN_COLUMNS or character.isspace():
            return f"has {character!r}, which Fabric refuses in a column's name"
        if unicodedata.category(character).startswith("C"):
            return f"has {character!r}, which can't be seen"
    return ""


def lakehouse_problem(text: str) -> str:
    """What keeps `text` from being a lakehouse that holds a layer's tables (Fabric's rule for lakehouse names)."""
    if not _LAKEHOUSE.fullmatch(text):
        return "is not a letter followed by letters, digits and underscores"
    if len(text) > MAX_LAKEHOUSE_LENGTH:
        return f"has {len(text)} characters; {MAX_LAKEHOUSE_LENGTH} are allowed"
    if text.casefold() in {name.casefold() for name in RESERVED_LAKEHOUSES}:
        return "is the agent's own lakehouse"
    return id_problem(text[:MAX_LENGTH])


def word_problem(text: str) -> str:
    """What keeps `text` from standing between braces: an alias in SQL, a variable in a file pattern."""
    if not _WORD.fullmatch(text):
        return "is not a letter or underscore followed by letters, digits and underscores"
    return ""


def equal_but_for_case(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of names that are one name to Windows and to Fabric: each later one with the first of its kind."""
    first: dict[str, str] = {}
    pairs = []
    for name in dict.fromkeys(names):
        known = first.setdefault(name.casefold(), name)
        if known != name:
            pairs.append((known, name))
    return pairs
