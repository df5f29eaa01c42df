"""Whatever a project holds, loading it gives a project or a ProjectError whose sentences a terminal can show."""

import copy
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from project_kit import BRONZE, ENVIRONMENTS, FILES, LAYERS, SILVER, problems, write
from test_version import CONTENT
from toml_writer import write_toml

from fdagent.project.graph import order
from fdagent.project.load import load_project
from fdagent.project.model import Project

ANYTHING = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.sampled_from([10**400, -1, 0, 2**63]),
        st.floats(),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.sampled_from(["", " ", ".", "..", "/", "a.b", "{x}", "{", "'", "con", "silver.orders", "bronze.orders", "scd1"]),
        st.dates(),
        st.datetimes(),
        st.times(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def load(files: dict[str, str | bytes]) -> Project | tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder), files)
        found = problems(root)
        assert len(set(found)) == len(found), found
        assert all(sentence.isprintable() and sentence[-1] in ".?" for sentence in found)
        if found:
            return found
        project = load_project(root)
    assert sorted(order(project)) == sorted(project.entities)
    assert len(project.metadata_version) == 64
    return project


def places(values: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    return [place for key, value in below for place in [(*path, key), *places(value, (*path, key))]]


PLACES = [(file, *place) for file, values in CONTENT.items() for place in places(values)]


def put(content: Any, path: tuple[Any, ...], value: Any) -> None:
    """Put a value at a place, unless an earlier one took the place away."""
    with suppress(KeyError, IndexError, TypeError):
        for key in path[:-1]:
            content = content[key]
        if isinstance(content, list) or isinstance(path[-1], str):
            content[path[-1]] = value


@settings(deadline=None, max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(PLACES), ANYTHING), min_size=1, max_size=3))
def test_any_value_under_any_key_is_read_or_refused_in_words(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    content = copy.deepcopy(CONTENT)
    for path, value in changes:
        put(content, path, value)
    load({name: write_toml(values, Random(0)) for name, values in content.items()})


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_any_file_cut_short_or_with_other_bytes_in_it_is_read_or_refused_in_words(
    file: str, data: st.DataObject
) -> None:
    body = FILES[file].encode()
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 20)))
    load({**FILES, file: body[:start] + data.draw(st.binary(max_size=6)) + body[end:]})


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=40))
@example("x = 1")
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    body = text.encode("utf-8", "surrogatepass")
    for file in ("layers.toml", "environments.toml", "entities/silver/orders.toml"):
        load({**FILES, file: body})


@settings(deadline=None, max_examples=150)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_any_name_is_taken_or_refused_in_words(name: str) -> None:
    quoted = json.dumps(name, ensure_ascii=False)
    load(
        {
            **FILES,
            "layers.toml": f"{LAYERS}[{quoted}]\nrank = 1\nlakehouse = {quoted}\nschema = {quoted}\n",
            "environments.toml": f'{ENVIRONMENTS}[{quoted}]\ntarget = "local"\nvars = {{ landing = "x", {quoted} = "y" }}\n',
            "entities/bronze/orders.toml": f"{BRONZE}[columns]\n{quoted} = {{ rename = {quoted} }}\n",
            "entities/silver/orders.toml": SILVER.replace('"order_id"', quoted).replace('entity = "', f'{quoted} = "'),
        }
    )
