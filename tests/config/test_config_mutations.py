"""Whatever becomes of a file that was right: it loads, or there is a ConfigError with sentences, never anything else."""

import json
from pathlib import Path

from config_kit import loaded, refusal, written
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fdagent.config.keys import declared
from fdagent.config.reference import EXAMPLE
from fdagent.config.settings import TABLES

FILE = (Path(__file__).parents[2] / EXAMPLE).read_bytes()
ALL = b"\n".join(line.removeprefix(b"#") if line[1:2].strip() else line for line in FILE.splitlines())
LINES = [line for line in ALL.splitlines() if line and not line.startswith(b"#")]
many = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

values = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats().map(lambda number: str(number).replace("e+", "e")),
        st.text(max_size=20).map(lambda text: json.dumps(text).replace("\x7f", "")),
        st.sampled_from(
            ["2027-01-15", "02:00:00", "2027-01-15T09:00:00Z", "nan", "inf", '"02:00"', '"mon 06:00"', '"prod"']
        ),
    ).map(lambda value: value if isinstance(value, str) else json.dumps(value)),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"k{n} = {v}" for n, v in enumerate(items)) + "}"
        )
    ),
    max_leaves=6,
)
keys = st.sampled_from([(table, key.name) for table in TABLES for key in declared(table.settings)])


def loads_or_says_why(folder, body):
    error = refusal(written(folder, body))
    if error is None:
        assert loaded(folder, body).agent.environments
        return
    assert error.problems
    for sentence in error.problems:
        assert sentence.startswith("agent.toml")
        assert sentence.endswith((".", "?"))
        assert sentence.isprintable()
        assert len(sentence) < 1_000


@many
@given(data=st.data())
def test_bytes_changed_anywhere(tmp_path, data):
    body = bytearray(data.draw(st.sampled_from([FILE, ALL])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=8))
    loads_or_says_why(tmp_path, bytes(body))


@many
@given(lines=st.lists(st.sampled_from(LINES), max_size=60))
@example(lines=LINES)
def test_lines_left_out_repeated_and_in_another_order(tmp_path, lines):
    loads_or_says_why(tmp_path, b"\n".join(lines))


@many
@given(
    changed=st.lists(
        st.tuples(keys, values), min_size=1, max_size=6, unique_by=lambda one: (one[0][0].name, one[0][1])
    ),
    whole=st.booleans(),
)
def test_values_of_every_kind_under_every_key(tmp_path, changed, whole):
    tables = {}
    for (table, key), value in changed:
        tables.setdefault(table.header, []).append(f"{key} = {value}")
    if whole and "[agent]" not in tables:
        tables["[agent]"] = ['project = "p"', 'environments = ["prod"]']
    text = "\n".join(line for header, lines in tables.items() for line in (header, *lines))
    loads_or_says_why(tmp_path, text.encode("utf-8", "replace"))


@many
@given(body=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_anything_at_all(tmp_path, body):
    loads_or_says_why(tmp_path, body)


def test_the_file_they_start_from_is_right(tmp_path):
    assert loaded(tmp_path, FILE).agent.environments == ("prod",)
