"""Writes the same values as TOML in many ways: key order, tables in line or under headers, comments, spaces, quotes."""

import json
import re
from random import Random
from typing import Any


def write_toml(values: dict[str, Any], random: Random) -> bytes:
    """One of the many files that hold `values`."""
    lines = [random.choice(["", "# a comment", "\t # it's = [another] {one}"])]
    _table(values, (), lines, random)
    text = random.choice(["\n", "\n\n"]).join(lines) + random.choice(["", "\n", "\n# end"])
    body = text.replace("\n", random.choice(["\n", "\r\n"])).encode()
    return random.choice([b"", b"\xef\xbb\xbf"]) + body


def _table(values: dict[str, Any], path: tuple[str, ...], lines: list[str], random: Random) -> None:
    keys = random.sample(list(values), len(values))
    below = [key for key in keys if _has_header(values[key], random)]
    for key in keys:
        if key not in below:
            equals = random.choice(["=", " = ", "  =\t"])
            lines.append(f"{_key(key, random)}{equals}{_value(values[key], random)}{random.choice(['', ' # why'])}")
    for key in below:
        inner = (*path, key)
        name = ".".join(_key(part, random) for part in inner)
        if isinstance(values[key], list):
            for item in values[key]:
                lines.append(f"[[{name}]]")
                _table(item, inner, lines, random)
        else:
            lines.append(f"[{name}]{random.choice(['', ' # here'])}")
            _table(values[key], inner, lines, random)


def _has_header(value: Any, random: Random) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) for item in value) and random.random() < 0.7
    return isinstance(value, dict) and random.random() < 0.7


def _key(key: str, random: Random) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]+", key) and random.random() < 0.7:
        return key
    return json.dumps(key)


def _value(value: Any, random: Random) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = "'" not in value and value.isprintable()
        return f"'{value}'" if plain and random.random() < 0.5 else json.dumps(value)
    if isinstance(value, list):
        space = random.choice(["", " ", "\n  ", "\n # in between\n"])
        items = [_value(item, random) for item in value]
        return f"[{space}{f',{space}'.join(items)}{space}]" if items else "[]"
    if isinstance(value, dict):
        keys = random.sample(list(value), len(value))
        return "{ " + ", ".join(f"{_key(key, random)} = {_value(value[key], random)}" for key in keys) + " }"
    return str(value)
