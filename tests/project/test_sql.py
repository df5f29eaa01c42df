"""Places in SQL: seen where SQL would see them, and nowhere else."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdagent.project.sql import fill, is_blank, places


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from {source}", ("source",)),
        ("select * from {a} join {b} using (x) where y in (select y from {a})", ("a", "b")),
        ("select * from { source }", ("source",)),
        ("select '{source}' from {b}", ("b",)),
        ("select 'it''s {a}' from {b}", ("b",)),
        ('select "{a}" from {b}', ("b",)),
        ('select "a""{a}" from {b}', ("b",)),
        ("select 1 -- it's {a}\nfrom {b}", ("b",)),
        ("select 1 /* don't {a} */ from {b}", ("b",)),
        ("select $$ {a} ' $$ from {b}", ("b",)),
        ("select $x$ {a} $$ {c} $x$ from {b}", ("b",)),
        ("select {'a': 1} from {b}", ("b",)),
        ("select {a: 1} from {b}", ("b",)),
        ("select regexp_matches(x, '\\d{4}') from {b}", ("b",)),
        ("select '{\"a\": 1}'::json from {b}", ("b",)),
        ("select $1, {b}", ("b",)),
        ("select 'never closed {a}", ()),
        ("select 1 /* never closed {a}", ()),
        ('select "never closed {a}', ()),
        ("select $$ never closed {a}", ()),
        ("{1} {} {a b} {a-b} {ä}", ()),
        ("", ()),
    ],
)
def test_places_are_found_outside_texts_names_and_comments(sql: str, expected: tuple[str, ...]) -> None:
    assert places(sql) == expected


def test_filling_changes_the_places_only() -> None:
    sql = "select '{a}', {'a': 1} -- {a}\nfrom {a} join {b} on true /* {b} */"
    assert fill(sql, {"a": '"x"', "b": "(select 1)"}) == (
        "select '{a}', {'a': 1} -- {a}\nfrom \"x\" join (select 1) on true /* {b} */"
    )


def test_a_place_without_a_relation_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        fill("select * from {a}", {})


def test_a_relation_that_looks_like_a_place_or_a_pattern_is_taken_literally() -> None:
    assert fill("{a}{b}", {"a": "{b}", "b": r"\1\g<0>"}) == r"{b}\1\g<0>"


def test_duckdb_agrees_on_what_is_text_and_what_is_a_comment() -> None:
    sql = "select '{a} it''s' as t, $$ {a} ' $$ as d, {'k': 1} as s /* {a} ' */ -- {a} '\nfrom {a}"
    rows = duckdb.connect().execute(fill(sql, {"a": "range(1)"})).fetchall()
    assert rows == [("{a} it's", " {a} ' ", {"k": 1})]


@given(st.text(alphabet="{}ab '\"-/*$\n", max_size=40))
def test_any_text_is_read_without_an_error_and_only_places_change(sql: str) -> None:
    names = places(sql)
    filled = fill(sql, {name: "{" + name + "}" for name in names})
    assert "".join(filled.split()) == "".join(sql.split())


@pytest.mark.parametrize(
    ("sql", "blank"), [("", True), (" \n", True), ("-- a\n/* b */ ", True), ("'a'", False), ("{a}", False)]
)
def test_sql_is_blank_when_nothing_but_comments_is_left(sql: str, blank: bool) -> None:
    assert is_blank(sql) is blank


def test_a_megabyte_of_quotes_and_comment_openers_is_read_at_once() -> None:
    for text in (
        "'" * 1_000_001,
        "/*" * 500_000,
        "$a" * 500_000,
        '"' * 1_000_001,
        "{" * 1_000_000,
        "--" * 500_000,
        "$" * 1_000_001,
    ):
        assert places(text) == ()
