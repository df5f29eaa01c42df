r"""The places in a transform's SQL: `{source}` and `{alias}`, where the engine puts its relations.

Guarantees: `places` and `fill` see the same places, and none inside a quoted text, a quoted name, a comment or a
dollar-quoted text, so that `'{"a": 1}'`, `'\d{4}'` and a struct `{'a': 1}` stay what they are. Does not parse SQL.
"""

import re
from collections.abc import Mapping

_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*(?:'|\Z)                  # a quoted text
    | "(?:[^"]|"")*(?:"|\Z)                  # a quoted name
    | --[^\n]*                               # a comment to the end of the line
    | /\*.*?(?:\*/|\Z)                       # a comment
    | \$(?P<tag>[A-Za-z_]\w*|)\$.*?(?:\$(?P=tag)\$|\Z)  # a dollar-quoted text
    | \{\s*(?P<place>[A-Za-z_][A-Za-z0-9_]*)\s*\}
    """,
    re.DOTALL | re.VERBOSE,
)


def places(sql: str) -> tuple[str, ...]:
    """The names of the places, each once, in their order."""
    names = (match["place"] for match in _TOKEN.finditer(sql))
    return tuple(dict.fromkeys(name for name in names if name))


def fill(sql: str, relations: Mapping[str, str]) -> str:
    """The SQL with each place replaced by its relation, which must be SQL already (a quoted name, a subquery).

    Raises:
        KeyError: A place has no relation; a loaded project has none such.
    """
    return _TOKEN.sub(lambda match: relations[match["place"]] if match["place"] else match[0], sql)


def is_blank(sql: str) -> bool:
    """Is there nothing but white space and comments?"""
    return not _TOKEN.sub(lambda match: "" if match[0].startswith(("--", "/*")) else match[0], sql).strip()
