"""Bytes that are a record, and bytes that are not."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdagent.errors import BadRecord
from models.codec import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, dump, parse

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10 ** (MAX_DIGITS - 1)) + 1, 10**MAX_DIGITS - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, JSON, max_size=5))
def test_what_is_written_reads_back_the_same(record):
    assert parse(dump(record)) == record


@given(st.binary(max_size=60))
def test_bytes_are_a_record_or_refused_in_a_sentence(body):
    try:
        assert isinstance(parse(body), dict)
    except BadRecord as err:
        assert str(err).startswith("The record ")  # noqa: PT017 -- either outcome is right, and each is checked


@given(st.text(max_size=40))
def test_texts_are_a_record_or_refused_in_a_sentence(text):
    try:
        assert isinstance(parse(text.encode("utf-8", "surrogatepass")), dict)
    except BadRecord as err:
        assert str(err).startswith("The record ")  # noqa: PT017 -- either outcome is right, and each is checked


def test_records_are_written_one_way():
    assert dump({"b": 1, "a": {"d": "ö", "c": [True, None]}}) == (
        b'{\n  "a": {\n    "c": [\n      true,\n      null\n    ],\n    "d": "\xc3\xb6"\n  },\n  "b": 1\n}\n'
    )


@pytest.mark.parametrize(
    "body",
    [
        b'\xef\xbb\xbf{"a": 1}',
        '\ufeff{"a": 1}'.encode("utf-16-le"),
        '\ufeff{"a": 1}'.encode("utf-16-be"),
        '{"a": 1}'.encode("utf-16"),
        b' \r\n\t{"a":1}\n',
    ],
)
def test_byte_order_marks_and_white_space_are_tolerated(body):
    assert parse(body) == {"a": 1}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "The record is not JSON: Expecting value at line 1, column 1"),
        (b'{"a": 1', "The record is not JSON: .* at line 1"),
        (b"{'a': 1}", "The record is not JSON"),
        (b'{"a": 1} x', "The record is not JSON: Extra data"),
        (b'{"a": 1}{"a": 1}', "The record is not JSON: Extra data"),
        (b'{"a": 1,}', "The record is not JSON"),
        (b'{"a": 01}', "The record is not JSON"),
        (b'{"a": "\n"}', "The record is not JSON: Invalid control character"),
        (b"[]", "The record is not a JSON object"),
        (b"null", "The record is not a JSON object"),
        (b'"{}"', "The record is not a JSON object"),
        (b"\xff\xfe\x00", "The record is not UTF-8 text"),
        (b'{"a": "\xff"}', r"The record is not UTF-8 text \(byte 7\)"),
        (b'{"a": "\xc3"}', "The record is not UTF-8 text"),
        ('{"a": 1}'.encode("utf-16-le"), "The record is not JSON"),
        (b'{"a": 1, "a": 1}', "The record has the key 'a' twice"),
        (b'{"x": {"a": 1, "b": 2, "a": 3}}', "The record has the key 'a' twice"),
        (b'{"\\u0061": 1, "a": 1}', "The record has the key 'a' twice"),
        (b'{"a": NaN}', "The record has the number NaN"),
        (b'{"a": Infinity}', "The record has the number Infinity"),
        (b'{"a": -Infinity}', "The record has the number -Infinity"),
        (b'{"a": 1e999}', "The record has the number 1e999, which is too large"),
        (b'{"a": -1e999}', "The record has the number -1e999, which is too large"),
        (b'{"a": ' + b"9" * 400 + b".0}", "which is too large"),
        (b'{"a": ' + b"9" * 33 + b"}", "The record has a number of 33 digits"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b'{"a": "\\udc00\\ud800"}', "half of a surrogate pair"),
        (b'{"\\udfff": 1}', "half of a surrogate pair"),
        (b'{"a": ["x", {"b": "\\ud83d"}]}', "half of a surrogate pair"),
    ],
)
def test_what_is_no_record_is_refused_and_says_why(body, sentence):
    with pytest.raises(BadRecord, match=sentence):
        parse(body)


def test_a_whole_surrogate_pair_is_one_character():
    assert parse(b'{"a": "\\ud83d\\ude00"}') == {"a": "😀"}


def nested(levels, opening="[", closing="]"):
    """An object with `levels` levels in all."""
    return ('{"a": ' + opening * (levels - 1) + closing * (levels - 1) + "}").encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"b": ', "}")])
def test_thirty_two_levels_are_read_and_no_more(opening, closing):
    value = "1" if opening != "[" else ""
    body = ('{"a": ' + opening * (MAX_DEPTH - 1) + value + closing * (MAX_DEPTH - 1) + "}").encode()
    assert parse(body)
    deeper = ('{"a": ' + opening * MAX_DEPTH + value + closing * MAX_DEPTH + "}").encode()
    with pytest.raises(BadRecord, match="nested deeper than 32 levels"):
        parse(deeper)


@pytest.mark.parametrize("levels", [1000, 100_000])
def test_a_bottomless_record_is_refused_without_a_stack_overflow(levels):
    with pytest.raises(BadRecord, match="nested deeper than 32 levels"):
        parse(nested(levels))


def test_a_record_is_at_most_256_kib():
    fits = json.dumps({"a": "x" * (MAX_BYTES - 9)}).encode()
    assert len(fits) == MAX_BYTES
    assert parse(fits)
    with pytest.raises(BadRecord, match="The record has 262145 bytes, 262144 are allowed"):
        parse(fits + b" ")


def test_nothing_too_large_is_written():
    with pytest.raises(BadRecord, match=r"The record would have \d+ bytes, 262144 are allowed"):
        dump({"a": "x" * MAX_BYTES})


@pytest.mark.parametrize(
    "record",
    [
        {"a": math.nan},
        {"a": math.inf},
        {"a": "\ud800"},
        {"a": 10**40},
        {1: "a", "1": "b"},
        {"a": {1, 2}},
        {"a": b"x"},
        {("a",): 1},
        {"a": 1, 2: 3},
    ],
)
def test_nothing_is_written_that_a_reader_would_refuse(record):
    with pytest.raises(BadRecord):
        dump(record)


def test_nothing_too_deep_is_written():
    deep = {}
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}
    with pytest.raises(BadRecord, match="deeper"):
        dump(deep)


def test_a_record_that_holds_itself_is_refused():
    record = {}
    record["a"] = record
    with pytest.raises(BadRecord, match="can't be written as JSON"):
        dump(record)
