"""The metadata version: the same for the same content however it is written, another one for any change that matters."""

import copy
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project_kit import BRONZE, BRONZE_FILE, ENVIRONMENTS, GOLD, LAYERS, SILVER, project, write
from toml_writer import write_toml

from fdagent.project.load import load_project
from fdagent.project.version import short

CONTENT: dict[str, dict[str, Any]] = {
    "layers.toml": {
        "format": 1,
        "bronze": {"rank": 1, "lakehouse": "LH_Bronze"},
        "silver": {"rank": 2, "lakehouse": "LH_Silver", "schema": "dbo"},
    },
    "environments.toml": {
        "format": 1,
        "dev": {"target": "local", "vars": {"landing": "landing", "other": "x y"}},
        "test": {"target": "local", "vars": {"landing": "it's here"}},
    },
    "entities/bronze/orders.toml": {
        "description": "As delivered, it's all text",
        "source": {"files": "{landing}/*.csv", "take": "all", "csv": {"delimiter": ";", "null": ["", "NA"]}},
        "columns": {"Order ID": {"rename": "order_id", "type": "integer"}, "amount": {"type": "decimal(18,2)"}},
        "load": {"mode": "append"},
    },
    "entities/silver/orders.toml": {
        "freshness_minutes": 60,
        "objective": {"success_rate": 0.95, "duration_minutes": 30},
        "source": {
            "o": {"entity": "bronze.orders", "watermark": "at", "lag": 60},
            "again": "bronze.orders",
        },
        "transform": {"sql": "select o.*\nfrom {o} as o, {again}"},
        "load": {"mode": "scd1", "key": ["order_id", "line"], "order_by": "at"},
        "checks": [
            {"not_null": ["order_id", "amount"], "severity": "quarantine"},
            {"accepted": {"status": ["NEW", "PAID"]}, "severity": "warn"},
        ],
    },
}


def version_of(content: dict[str, dict[str, Any]], random: Random) -> str:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / f"anywhere{random.randrange(10)}"
        files = list(content)
        random.shuffle(files)
        return load_project(write(root, {name: write_toml(content[name], random) for name in files})).metadata_version


PLAIN = version_of(CONTENT, Random(0))


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32))
def test_no_way_of_writing_the_same_content_changes_the_version(seed: int) -> None:
    assert version_of(CONTENT, Random(seed)) == PLAIN


def leaves(values: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(values, dict):
        return [leaf for key, value in values.items() for leaf in leaves(value, (*path, key))]
    return [path]


CHANGES: dict[tuple[Any, ...], Any] = {
    ("layers.toml", "bronze", "rank"): 0,
    ("layers.toml", "bronze", "lakehouse"): "LH_Raw",
    ("layers.toml", "silver", "schema"): "sales",
    ("environments.toml", "dev", "vars", "landing"): "landing2",
    ("environments.toml", "test", "vars"): {"landing": "x", "more": "y"},
    ("entities/bronze/orders.toml", "description"): "as delivered",
    ("entities/bronze/orders.toml", "source", "files"): "{landing}/*.txt",
    ("entities/bronze/orders.toml", "source", "take"): "new",
    ("entities/bronze/orders.toml", "source", "csv", "delimiter"): ",",
    ("entities/bronze/orders.toml", "source", "csv", "null"): ["NA", ""],
    ("entities/bronze/orders.toml", "columns", "Order ID", "rename"): "id",
    ("entities/bronze/orders.toml", "columns", "amount", "type"): "decimal(18,3)",
    ("entities/bronze/orders.toml", "load", "mode"): "overwrite",
    ("entities/silver/orders.toml", "freshness_minutes"): 61,
    ("entities/silver/orders.toml", "objective", "success_rate"): 0.96,
    ("entities/silver/orders.toml", "source", "o", "lag"): 61,
    ("entities/silver/orders.toml", "source", "o", "watermark"): "at2",
    ("entities/silver/orders.toml", "transform", "sql"): "select o.*\nfrom {o} as o,  {again}",
    ("entities/silver/orders.toml", "load", "key"): ["line", "order_id"],
    ("entities/silver/orders.toml", "load", "order_by"): "at2",
    ("entities/silver/orders.toml", "checks"): [],
    ("entities/silver/orders.toml", "owner"): "someone@example.com",
    ("entities/silver/orders.toml", "criticality"): "high",
}


@pytest.mark.parametrize("path", CHANGES, ids=".".join)
def test_each_change_of_content_changes_the_version(path: tuple[Any, ...]) -> None:
    content = copy.deepcopy(CONTENT)
    inner: Any = content
    for key in path[:-1]:
        inner = inner[key]
    assert inner.get(path[-1]) != CHANGES[path]
    inner[path[-1]] = CHANGES[path]
    assert version_of(content, Random(0)) != PLAIN


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("entities/bronze/orders.toml", "criticality", "normal"),
        ("entities/bronze/orders.toml", "format", 1),
        ("entities/bronze/orders.toml", "checks", []),
        ("entities/silver/orders.toml", "freshness_minutes", 60.0),
    ],
)
def test_writing_a_default_out_changes_nothing(file: str, key: str, value: Any) -> None:
    content = copy.deepcopy(CONTENT)
    content[file][key] = value
    assert version_of(content, Random(0)) == PLAIN


def test_the_other_way_to_write_one_value_changes_nothing() -> None:
    content = copy.deepcopy(CONTENT)
    content["entities/silver/orders.toml"]["source"]["o"]["lag"] = "1m"
    content["entities/silver/orders.toml"]["source"]["again"] = {"entity": "bronze.orders"}
    content["entities/bronze/orders.toml"]["columns"]["amount"]["type"] = "decimal( 18, 2 )"
    content["entities/bronze/orders.toml"]["source"]["csv"]["encoding"] = "UTF8"
    assert version_of(content, Random(0)) == PLAIN


def test_sql_in_the_file_and_beside_it_is_the_same_sql_whatever_its_line_ends(tmp_path: Path) -> None:
    inline = load_project(
        project(tmp_path / "a", gold=GOLD.replace('"select count(*) as orders from {o}"', '"select 1\\nfrom {o}"'))
    )
    beside = GOLD.replace('sql = "select count(*) as orders from {o}"', 'sql_file = "q.sql"')
    for number, body in enumerate(
        (b"select 1\nfrom {o}\n", b"\xef\xbb\xbfselect 1\r\nfrom {o}", b"\n select 1\rfrom {o}  \n\n")
    ):
        root = write(project(tmp_path / f"b{number}", gold=beside), {"entities/gold/q.sql": body})
        assert load_project(root).metadata_version == inline.metadata_version


def test_moving_or_copying_the_folder_changes_nothing(tmp_path: Path) -> None:
    root = project(tmp_path / "a")
    before = load_project(root).metadata_version
    shutil.copytree(root, tmp_path / "some where" / "else")
    assert load_project(tmp_path / "some where" / "else").metadata_version == before


def test_files_that_are_no_part_of_the_project_change_nothing(tmp_path: Path) -> None:
    root = project(tmp_path)
    before = load_project(root).metadata_version
    write(root, {"README.md": "x", "landing/orders_1.csv": "a,b\n", ".local/dev/x": "", "entities/gold/notes.sql": "x"})
    assert load_project(root).metadata_version == before


def test_a_new_entity_changes_the_version_and_taking_it_away_restores_it(tmp_path: Path) -> None:
    root = project(tmp_path)
    before = load_project(root).metadata_version
    write(root, {"entities/gold/more.toml": GOLD})
    assert load_project(root).metadata_version != before
    write(root, {"entities/gold/more.toml": None})
    assert load_project(root).metadata_version == before


def test_the_order_of_columns_counts_exactly_where_there_is_no_header(tmp_path: Path) -> None:
    def version(header: str, columns: str) -> str:
        bronze = f"{BRONZE}[source.csv]\nheader = {header}\n[columns]\n{columns}"
        return load_project(project(tmp_path, bronze=bronze)).metadata_version

    assert version("true", "a = {}\nb = {}\n") == version("true", "b = {}\na = {}\n")
    assert version("false", "a = {}\nb = {}\n") != version("false", "b = {}\na = {}\n")


def test_the_version_of_a_known_project_stays_what_it_was(tmp_path: Path) -> None:
    """A new version of this program must give old projects their old version, or every environment stands still."""
    root = write(
        tmp_path,
        {
            "layers.toml": LAYERS,
            "environments.toml": ENVIRONMENTS,
            BRONZE_FILE: BRONZE,
            "entities/silver/orders.toml": SILVER,
            "entities/gold/revenue.toml": GOLD,
        },
    )
    assert load_project(root).metadata_version == ("8be70b6c64bda4a7c239e53b4c217d9915f7b5ceb4e44ab42affb7503a60b0e1")


def test_the_short_form_is_twelve_hex_digits() -> None:
    assert len(PLAIN) == 64
    assert short(PLAIN) == PLAIN[:12]
    int(PLAIN, 16)
