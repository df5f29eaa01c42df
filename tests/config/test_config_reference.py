"""The example and the reference page: complete, right, and made from what the code says now."""

import re
import tomllib
from pathlib import Path

import pytest
from config_kit import loaded

from fdagent.config.keys import declared
from fdagent.config.reference import EXAMPLE, PAGE, example, page, toml
from fdagent.config.rules import RULES
from fdagent.config.settings import TABLES

ROOT = Path(__file__).parents[2]
FILE = (ROOT / EXAMPLE).read_text(encoding="utf-8")
DOC = (ROOT / PAGE).read_text(encoding="utf-8")
WHOLE = tomllib.loads(re.sub(r"^#(?=\S)", "", FILE, flags=re.MULTILINE))
EVERY_KEY = [(table, key) for table in TABLES for key in declared(table.settings)]


def in_example(table):
    outer, _, inner = table.name.partition(".")
    value = WHOLE[outer][inner] if inner else WHOLE[outer]
    return value[0] if table.many else value


def test_both_files_are_what_the_settings_say_now():
    again = "run `python -m fdagent.config.reference`"
    assert example() == FILE, again
    assert page() == DOC, again


def test_the_example_loads_as_it_is_and_changes_no_default(tmp_path):
    required = tomllib.loads(FILE)["agent"]
    least = f'[agent]\nproject = "{required["project"]}"\nenvironments = ["prod"]\n'
    assert loaded(tmp_path, FILE) == loaded(tmp_path, least)


@pytest.mark.parametrize(("table", "key"), EVERY_KEY, ids=lambda at: at.name)
def test_the_example_shows_each_key_with_its_default_or_a_value_that_is_right(table, key):
    value = in_example(table)[key.name]
    said: list[str] = []
    read = key.key.kind.read(value, said.append)
    assert said == []
    if not (key.key.required or key.key.unset):
        assert read == key.default


def test_the_example_has_no_key_that_is_not_declared():
    for table in TABLES:
        inner = {"route"} if table.name == "incidents" else set()
        assert in_example(table).keys() - inner == {key.name for key in declared(table.settings)}
    assert WHOLE.keys() == {table.name for table in TABLES if "." not in table.name}


@pytest.mark.parametrize("of", [table for table in TABLES if table.many], ids=lambda of: of.name)
def test_the_examples_tables_load_when_they_are_used(tmp_path, of):
    """Every key of the block, but of three ways to say a time only one."""
    block = FILE[FILE.index(f"#{of.header}") :].split("\n\n")[0]
    used = re.sub(r"^#(?=\S)", "", block, flags=re.MULTILINE)
    used = re.sub(r"^(daily|weekly) = .*$", "", used, flags=re.MULTILINE)
    settings = loaded(tmp_path, f"{FILE}\n{used}")
    assert len(settings.schedules) + len(settings.routes) == 1


@pytest.mark.parametrize(("table", "key"), EVERY_KEY, ids=lambda at: at.name)
def test_the_page_explains_each_key(table, key):
    section = DOC[DOC.index(f"## {table.header}\n") :].split("\n## ")[0]
    [row] = [line for line in section.splitlines() if line.startswith(f"| `{key.name}` |")]
    assert key.key.meaning in row
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    if not (key.key.required or key.key.unset):
        assert f"`{toml(key.default)}`" in row


def test_the_page_has_each_rule():
    for rule in RULES:
        assert f"- {rule.__doc__.splitlines()[0]}" in DOC


def test_each_block_of_the_page_loads(tmp_path):
    blocks = re.findall(r"```toml\n(.*?)```", DOC, re.DOTALL)
    assert blocks
    for block in blocks:
        loaded(tmp_path, block)


@pytest.mark.parametrize("text", [FILE, DOC], ids=["example", "page"])
def test_both_files_are_plain_text_with_a_line_end(text):
    assert text.endswith("\n")
    assert "\t" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
