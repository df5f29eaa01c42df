"""Ids that may be part of a path, and those that may not."""

from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdagent.errors import BadId
from models.ids import MAX_LENGTH, check_id, id_problem, shown


@pytest.mark.parametrize(
    "text",
    ["a", "0", "etl-01", "A.b_c-9", "-", "_", "--", "a..b", "x" * MAX_LENGTH, "console", "com", "com10", "a.con"],
)
def test_plain_ids_pass_unchanged(text):
    assert check_id(text, "request id") == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("x" * 65, "has 65 characters, 64 are allowed"),
        ("a/b", "has a character that is not a letter"),
        ("a\\b", "has a character that is not a letter"),
        ("a b", "has a character that is not a letter"),
        ("a\n", "has a character that is not a letter"),
        ("a\x00b", "has a character that is not a letter"),
        ("ä", "has a character that is not a letter"),
        ("１", "has a character that is not a letter"),
        ("a%2e", "has a character that is not a letter"),
        ("a:b", "has a character that is not a letter"),
        ("C:", "has a character that is not a letter"),
        ("..", "begins or ends with a dot"),
        (".", "begins or ends with a dot"),
        (".hidden", "begins or ends with a dot"),
        ("end.", "begins or ends with a dot"),
        ("con", "is a device name on Windows"),
        ("NUL.json", "is a device name on Windows"),
        ("Com1", "is a device name on Windows"),
        ("lpt9.a.b", "is a device name on Windows"),
    ],
)
def test_what_may_not_be_in_a_path_is_refused_and_says_why(text, problem):
    assert problem in id_problem(text)
    with pytest.raises(BadId, match="Use letters, digits") as caught:
        check_id(text, "request id")
    assert str(caught.value).startswith("The request id '")


def test_a_shorter_limit_can_be_asked_for():
    assert check_id("x" * 40, "schedule id", longest=40)
    with pytest.raises(BadId, match="has 41 characters, 40 are allowed"):
        check_id("x" * 41, "schedule id", longest=40)


@given(st.text(max_size=70))
def test_an_id_that_passes_is_one_plain_file_name_everywhere(text):
    if id_problem(text):
        return
    assert 1 <= len(text) <= MAX_LENGTH
    assert text.isascii()
    for path in (PurePosixPath("folder") / text, PureWindowsPath("folder") / text):
        assert path.name == text
        assert len(path.parts) == 2


@pytest.mark.parametrize("text", ["\x1b[2Jgone", "a\nb", "\u202eevil"])
def test_an_id_in_a_sentence_can_not_write_to_a_terminal(text):
    assert shown(text).isprintable()


def test_a_long_text_is_shortened_in_a_sentence():
    assert len(shown("x" * 1_000_000)) <= MAX_LENGTH + 2
