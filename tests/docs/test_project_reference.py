"""docs/project.md is true: its blocks load, every key that works stands in it, with the default it has."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fdagent.project import entities, layers, source
from fdagent.project.graph import order
from fdagent.project.load import load_project
from fdagent.project.model import Check, Column, Csv, Entity, EntitySource, FileSource, Layer, Load, Objective

PAGE = Path(__file__).parents[2] / "docs" / "project.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(TEXT)
PROSE = BLOCK.sub("", TEXT)

SECTIONS = {
    "layers.toml": layers.LAYER_KEYS,
    "environments.toml": layers.ENVIRONMENT_KEYS,
    "Entities": entities.ENTITY_KEYS,
    "objective": entities.OBJECTIVE_KEYS,
    "[source]": source.SOURCE_KEYS,
    "[source.csv]": source.CSV_KEYS,
    "[columns]": source.COLUMN_KEYS,
    "[transform]": entities.TRANSFORM_KEYS,
    "[load]": entities.LOAD_KEYS,
    "[[checks]]": entities.CHECK_KEYS,
}


def write_blocks(root: Path) -> Path:
    for kind, text in BLOCKS:
        if kind in ("toml", "sql"):
            name = text.split("\n", 1)[0].removeprefix("# " if kind == "toml" else "-- ")
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
    return root


def rows(section: str) -> list[list[str]]:
    """The cells of a section's first table of keys."""
    heading = re.search(rf"^#+ {re.escape(section)}\n(.*?)(?=^#|\Z)", PROSE, re.MULTILINE | re.DOTALL)
    assert heading, section
    table = re.search(r"^\| key \| default \| meaning \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", heading[1], re.MULTILINE)
    assert table, section
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()]


def defaults(section: str) -> dict[str, Any]:
    """Key -> its default where the page gives it as TOML."""
    written = {key.strip("`"): default for key, default, *_ in rows(section)}
    return {key: tomllib.loads(f"x = {text.strip('`')}")["x"] for key, text in written.items() if text.startswith("`")}


def test_every_toml_and_sql_block_names_its_file_and_all_together_are_a_project(tmp_path: Path) -> None:
    root = write_blocks(tmp_path)
    named = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert len(named) == sum(kind in ("toml", "sql") for kind, _ in BLOCKS)
    assert order(load_project(root)) == (
        "bronze.customers",
        "bronze.orders",
        "silver.customers",
        "silver.orders",
        "gold.revenue_by_region",
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_lists_exactly_the_keys_that_work(section: str) -> None:
    assert [row[0] for row in rows(section)] == [f"`{key}`" for key in SECTIONS[section]]


def test_the_page_gives_the_defaults_that_the_code_has() -> None:
    csv = Csv()
    assert defaults("[source.csv]") == {
        **{key: getattr(csv, key) for key in source.CSV_KEYS if key != "null"},
        "null": csv.null[0],
    }
    assert csv.null == ("",)
    assert defaults("[source]") == {"take": FileSource(files="").take, "lag": EntitySource("a", "b.c").lag_seconds}
    assert defaults("[columns]") == {"type": Column("a", "a").type}
    load = Load(mode="append")
    assert defaults("[load]") == {"on_null_key": load.on_null_key, "on_new_column": load.on_new_column}
    assert defaults("objective") == {"over_runs": Objective().over_runs}
    plain = Entity(name="a.b", layer=Layer("a", 1, "A"), table="b", file=Path(), load=load)
    assert defaults("Entities") == {
        "format": 1,
        **{key: getattr(plain, key) for key in ("description", "owner", "team", "criticality")},
    }


def test_the_default_severity_and_duplicates_are_as_the_page_says(tmp_path: Path) -> None:
    root = write_blocks(tmp_path)
    file = root / "entities/silver/customers.toml"
    plain = file.read_text().replace('on_duplicate_key = "fail"\n', "")
    file.write_text(f'{plain}[[checks]]\nnot_null = ["region"]\n')
    customers = load_project(root).entities["silver.customers"]
    assert defaults("[[checks]]") == {"severity": customers.checks[0].severity}
    assert customers.checks == (Check("not_null", ("region",), "fail"),)
    assert customers.load.on_duplicate_key == "quarantine"
    assert '`on_duplicate_key` is `"newest"` where `order_by` is given and `"quarantine"` where it is not' in TEXT


def test_every_place_in_the_contents_is_a_heading() -> None:
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", PROSE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", TEXT)) <= headings
