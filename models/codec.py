"""Shared records as JSON, read with suspicion and written one way (rules C6 and C7).

Guarantees: `parse` takes one object in UTF-8 (or UTF-16 with a byte order mark) and refuses everything else in a
sentence: too large, too deep, duplicate keys, NaN, Infinity, numbers that overflow, lone surrogates. `dump` writes
sorted keys, two-space indent, UTF-8, and never what `parse` would refuse. Knows no record's fields.
"""

import json
import math
from typing import Any

from models.errors import BadRecord

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_DIGITS = 32
"""Longest integer in digits: no field holds one longer, and turning a huge text into a number is quadratic."""

_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def parse(body: bytes) -> dict[str, Any]:
    """Read one record.

    Args:
        body: The bytes as the store gave them.

    Raises:
        BadRecord: Says what is wrong; the caller knows the key and adds it.
    """
    if len(body) > MAX_BYTES:
        raise BadRecord(f"The record has {len(body)} bytes, {MAX_BYTES} are allowed.")
    try:
        text = body.decode(next((name for bom, name in _BOMS if body.startswith(bom)), "utf-8"))
    except UnicodeDecodeError as err:
        raise BadRecord(f"The record is not UTF-8 text (byte {err.start}).") from err
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as err:
        raise BadRecord(f"The record is not JSON: {err.msg} at line {err.lineno}, column {err.colno}.") from err
    except RecursionError as err:
        raise BadRecord(f"The record is nested deeper than {MAX_DEPTH} levels.") from err
    if not isinstance(value, dict):
        raise BadRecord("The record is not a JSON object.")
    # Each level opens with a bracket, so most texts hold too few of them to be too deep.
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(value)
    _check_text(text, value)
    return value


def dump(record: dict[str, Any]) -> bytes:
    """Write one record.

    Raises:
        BadRecord: The record holds what no reader would take; nothing was written.
    """
    try:
        body = (_ENCODER.encode(record) + "\n").encode("utf-8")
    except (ValueError, TypeError, RecursionError) as err:
        raise BadRecord(f"The record can't be written as JSON: {err}.") from err
    if len(body) > MAX_BYTES:
        raise BadRecord(f"The record would have {len(body)} bytes, {MAX_BYTES} are allowed.")
    parse(body)  # the one list of what readers refuse: depth, long numbers, two keys that are written alike
    return body


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRecord(f"The record has the key {twice!r} twice.")
    return found


def _no_constant(name: str) -> Any:
    raise BadRecord(f"The record has the number {name}.")


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise BadRecord(f"The record has a number of {len(text)} digits.")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadRecord(f"The record has the number {text[:MAX_DIGITS]}, which is too large.")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_integer, parse_float=_float
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, indent=2, allow_nan=False)


def _check_depth(record: Any) -> None:
    """Refuse what is nested deeper than every reader is sure to follow; level by level, so never by recursion."""
    level = [record]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise BadRecord(f"The record is nested deeper than {MAX_DEPTH} levels.")


def _children(value: Any) -> list[Any]:
    """The values inside one, as long as they can hold values themselves."""
    inside: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [child for child in inside if isinstance(child, dict | list)]


def _check_text(text: str, value: Any) -> None:
    """Refuse lone surrogates: they come only through escapes, and no UTF-8 writer could write them back."""
    if "\\u" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as err:
        raise BadRecord("The record has half of a surrogate pair in a text.") from err
