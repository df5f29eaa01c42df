"""A good project becomes exactly the values it declares."""

from pathlib import Path

import pytest
from project_kit import (
    BRONZE,
    BRONZE_FILE,
    ENVIRONMENTS,
    FILES,
    GOLD,
    LAYERS,
    SILVER,
    SILVER_FILE,
    problems,
    project,
    write,
)

from fdagent.errors import ProjectError
from fdagent.project.load import load_project
from fdagent.project.model import Check, Column, Csv, EntitySource, FileSource, Layer, Load, Objective

EVERY_KEY = """\
format = 1
description = "One row per order"
owner = "sales@example.com"
team = "sales"
criticality = "critical"
freshness_minutes = 1560
objective = { success_rate = 0.95, over_runs = 30, duration_minutes = 2.5 }
[source]
files = "{landing}/orders_*.csv"
take = "newest"
[source.csv]
delimiter = ";"
encoding = "Latin-1"
decimal = ","
thousands = "."
null = ["", "NA"]
quote = "'"
header = true
on_bad_row = "fail"
on_empty = "ignore"
[columns]
"Order ID" = { rename = "order_id", type = "integer" }
amount = { type = "decimal( 18 , 2 )", null = "-" }
at = { type = "timestamp", format = "%d.%m.%Y %H:%M", zone = "Europe/Zurich" }
day = { type = "date", format = "%Y%m%d" }
paid = { type = "boolean" }
share = { type = "double" }
note = {}
[transform]
sql = "select * from {source}"
[load]
mode = "scd1"
key = ["order_id", "note"]
order_by = "at"
on_duplicate_key = "fail"
on_null_key = "fail"
on_new_column = "fail"
[[checks]]
not_null = ["order_id", "amount"]
severity = "quarantine"
[[checks]]
accepted = { note = ["NEW", 1, true, 2027-01-15, "NEW"] }
severity = "warn"
[[checks]]
unique = ["order_id"]
"""


def test_every_key_is_read_as_it_is_declared(tmp_path: Path) -> None:
    entity = load_project(project(tmp_path, bronze=EVERY_KEY)).entities["bronze.orders"]
    assert entity.files == FileSource(
        files="{landing}/orders_*.csv",
        take="newest",
        csv=Csv(
            delimiter=";",
            encoding="iso8859-1",
            decimal=",",
            thousands=".",
            null=("", "NA"),
            quote="'",
            header=True,
            on_bad_row="fail",
            on_empty="ignore",
        ),
    )
    assert entity.columns == (
        Column(source="Order ID", name="order_id", type="integer"),
        Column(source="amount", name="amount", type="decimal(18,2)", null=("-",)),
        Column(source="at", name="at", type="timestamp", format="%d.%m.%Y %H:%M", zone="Europe/Zurich"),
        Column(source="day", name="day", type="date", format="%Y%m%d"),
        Column(source="paid", name="paid", type="boolean"),
        Column(source="share", name="share", type="double"),
        Column(source="note", name="note"),
    )
    assert entity.load == Load(
        mode="scd1",
        key=("order_id", "note"),
        order_by="at",
        on_duplicate_key="fail",
        on_null_key="fail",
        on_new_column="fail",
    )
    assert entity.checks == (
        Check(kind="not_null", columns=("order_id", "amount"), severity="quarantine"),
        Check(kind="accepted", columns=("note",), severity="warn", values=("NEW", "1", "true", "2027-01-15")),
        Check(kind="unique", columns=("order_id",), severity="fail"),
    )
    assert entity.objective == Objective(success_rate=0.95, over_runs=30, duration_minutes=2.5)
    assert (entity.description, entity.owner, entity.team) == ("One row per order", "sales@example.com", "sales")
    assert (entity.criticality, entity.freshness_minutes) == ("critical", 1560.0)
    assert (entity.layer, entity.table) == (Layer("bronze", 1, "LH_Bronze"), "orders")
    assert entity.file == tmp_path.resolve() / BRONZE_FILE


def test_what_is_not_declared_has_the_documented_default(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    bronze, silver = loaded.entities["bronze.orders"], loaded.entities["silver.orders"]
    assert bronze.files == FileSource(files="{landing}/orders_*.csv", take="new", csv=Csv())
    assert bronze.load == Load(mode="append")
    assert (bronze.sql, bronze.columns, bronze.checks, bronze.sources) == ("", (), (), ())
    assert (bronze.criticality, bronze.freshness_minutes, bronze.objective) == ("normal", None, None)
    assert silver.load == Load(mode="scd1", key=("order_id",), order_by="updated_at")
    assert silver.sources == (EntitySource(alias="source", entity="bronze.orders"),)
    assert silver.files is None


def test_without_an_order_no_row_is_newest_so_duplicates_are_quarantined(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path, silver=SILVER.replace('order_by = "updated_at"\n', "")))
    assert loaded.entities["silver.orders"].load.on_duplicate_key == "quarantine"


def test_aliases_have_their_own_watermark_and_lag(tmp_path: Path) -> None:
    gold = """\
[source]
o = { entity = "silver.orders", watermark = "updated_at", lag = "2h" }
raw = "bronze.orders"
again = "silver.orders"
[transform]
sql = "select * from {o}, {raw}, {again}"
[load]
mode = "append"
"""
    entity = load_project(project(tmp_path, gold=gold)).entities["gold.revenue"]
    assert entity.sources == (
        EntitySource(alias="o", entity="silver.orders", watermark="updated_at", lag_seconds=7200.0),
        EntitySource(alias="raw", entity="bronze.orders"),
        EntitySource(alias="again", entity="silver.orders"),
    )
    assert entity.upstream == ("silver.orders", "bronze.orders")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90.0), ("1.5", 1.5), ('"45s"', 45.0), ('"10m"', 600.0), ('"2h"', 7200.0), ('"1d"', 86400.0)],
)
def test_lag_is_seconds_or_a_number_with_its_unit(tmp_path: Path, written: str, seconds: float) -> None:
    silver = SILVER.replace('"bronze.orders"', f'"bronze.orders"\nwatermark = "at"\nlag = {written}')
    assert load_project(project(tmp_path, silver=silver)).entities["silver.orders"].sources[0].lag_seconds == seconds


def test_an_sql_file_beside_the_entity_is_read_with_its_mark_and_line_ends_normalised(tmp_path: Path) -> None:
    silver = SILVER.replace('sql = "select * from {source}"', 'sql_file = "orders.sql"')
    root = project(tmp_path, silver=silver)
    write(root, {"entities/silver/orders.sql": b"\xef\xbb\xbfselect 'a'\r\n-- it's {not} a place\r\nfrom {source}\r\n"})
    assert load_project(root).entities["silver.orders"].sql == "select 'a'\n-- it's {not} a place\nfrom {source}"


def test_a_closing_semicolon_is_left_out(tmp_path: Path) -> None:
    for end in (";", " ;\\n", ";;\\n\\n"):
        silver = SILVER.replace("from {source}", f"from {{source}}{end}")
        assert load_project(project(tmp_path, silver=silver)).entities["silver.orders"].sql == "select * from {source}"


def test_an_sql_file_may_be_shared_inside_the_project(tmp_path: Path) -> None:
    silver = SILVER.replace('sql = "select * from {source}"', 'sql_file = "../../sql/all.sql"')
    root = write(project(tmp_path, silver=silver), {"sql/all.sql": "select * from {source}"})
    assert load_project(root).entities["silver.orders"].sql == "select * from {source}"


def test_a_byte_order_mark_and_windows_line_ends_are_tolerated(tmp_path: Path) -> None:
    files = {name: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() for name, text in FILES.items()}
    assert problems(write(tmp_path, files)) == ()


def test_layers_and_environments_are_read(tmp_path: Path) -> None:
    layers = LAYERS.replace('"LH_Gold"', '"LH_Gold"\nschema = "dbo"')
    guid = "0F8FAD5B-d9cb-469f-a165-70867728950e"
    names = ", ".join(f'{name} = "{guid}"' for name in ("LH_Bronze", "LH_Silver", "LH_Gold", "LH_Meta", "LH_Keys"))
    environments = f"""{ENVIRONMENTS}
[prod]
target = "fabric"
workspace = "{guid}"
keys_workspace = "{guid}"
lakehouses = {{ {names} }}
vars = {{ landing = "abfss://raw@onelake.dfs.fabric.microsoft.com/landing" }}
"""
    loaded = load_project(project(tmp_path, layers=layers, environments=environments))
    assert loaded.layers["gold"] == Layer("gold", 3, "LH_Gold", "dbo")
    assert loaded.environments["dev"].vars == {"landing": "landing"}
    prod = loaded.environments["prod"]
    assert (prod.target, prod.workspace, prod.keys_workspace) == ("fabric", guid.lower(), guid.lower())
    assert set(prod.lakehouses) == {"LH_Bronze", "LH_Silver", "LH_Gold", "LH_Meta", "LH_Keys"}


def test_loading_writes_nothing(tmp_path: Path) -> None:
    root = project(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    load_project(root)
    write(root, {SILVER_FILE: "mode = 3"})
    before[root / SILVER_FILE] = (root / SILVER_FILE).stat().st_mtime_ns
    assert problems(root)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_what_lies_beside_entities_and_is_none_is_left_alone(tmp_path: Path) -> None:
    root = write(
        project(tmp_path),
        {
            "entities/README.md": "",
            "entities/silver/orders.sql": "not used, not read: \0",
            "entities/silver/orders.toml~": "[",
            "entities/silver/.orders.toml.swp": "[",
            "entities/silver/.checkpoints/orders.toml": "[",
            "entities/.hidden/orders.toml": "[",
            "entities/__pycache__/orders.pyc": "",
            "entities/silver/sql/part.sql": "",
        },
    )
    assert problems(root) == ()


def test_a_folder_without_layers_toml_is_not_a_metadata_project(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"is not a metadata project: it has no layers\.toml\. .*fdagent init"):
        load_project(tmp_path)


def test_a_folder_that_is_not_there_and_a_file_are_not_metadata_projects(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="is not a metadata project: there is no such folder"):
        load_project(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProjectError, match="is not a metadata project: it is a file"):
        load_project(tmp_path / "file")


def test_a_project_reached_through_a_link_is_the_project_it_leads_to(tmp_path: Path) -> None:
    root = project(tmp_path / "real")
    (tmp_path / "link").symlink_to(root, target_is_directory=True)
    assert load_project(tmp_path / "link").root == root.resolve()


def test_the_error_counts_the_problems_and_shows_each_on_its_own_line(tmp_path: Path) -> None:
    root = project(
        tmp_path, bronze=BRONZE.replace("append", "apend"), gold=GOLD.replace("silver.orders", "silver.order")
    )
    with pytest.raises(ProjectError) as caught:
        load_project(root)
    assert str(caught.value).splitlines() == [
        f"The metadata project in {tmp_path.resolve()} has 2 problems.",
        (
            '  - entities/bronze/orders.toml, [load] mode: found "apend", expected "overwrite", "append" or "scd1"; '
            "did you mean `append`?"
        ),
        '  - entities/gold/revenue.toml, [source] o: there is no entity "silver.order"; did you mean `silver.orders`?',
    ]
    assert caught.value.exit_code == 2
