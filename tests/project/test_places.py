"""Where things lie, and that nothing lies where another thing does."""

import glob
from pathlib import Path

import pytest
from project_kit import BRONZE, ENVIRONMENTS, LAYERS, project, write

from fdagent.errors import NotFound, UsageError
from fdagent.project.load import load_project
from fdagent.project.places import Places, environment_named, require_local

GUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
IDS = ", ".join(f'{name} = "{GUID}"' for name in ("LH_Bronze", "LH_Silver", "LH_Gold", "LH_Meta"))
PROD = (
    f'[prod]\ntarget = "fabric"\nvars = {{ landing = "abfss://x" }}\nworkspace = "{GUID}"\nlakehouses = {{ {IDS} }}\n'
)


def test_a_local_environment_has_everything_below_its_own_folder(tmp_path: Path) -> None:
    layers = LAYERS.replace('"LH_Gold"', '"LH_Gold"\nschema = "dbo"')
    loaded = load_project(project(tmp_path, layers=layers))
    places = Places(loaded, loaded.environments["dev"])
    base = tmp_path.resolve() / ".local" / "dev"
    assert places.folder == base
    assert places.table(loaded.entities["silver.orders"]) == base / "LH_Silver" / "Tables" / "orders"
    assert places.table(loaded.entities["gold.revenue"]) == base / "LH_Gold" / "Tables" / "dbo" / "revenue"
    assert places.run_log == base / "LH_Meta" / "Tables" / "run_log"
    assert places.check_log == base / "LH_Meta" / "Tables" / "check_log"
    assert places.quarantine(loaded.entities["silver.orders"]) == base / "LH_Meta/Tables/quarantine_silver_orders"
    assert places.control == base / "_control"
    assert not base.exists()


def test_the_glob_of_source_files_is_absolute_and_finds_them(tmp_path: Path) -> None:
    root = project(tmp_path / "odd name", bronze=BRONZE.replace("orders_*", "{kind}_*"))
    write(
        root, {"environments.toml": 'format = 1\n[dev]\ntarget = "local"\nvars = { landing = "in/put", kind = "o" }\n'}
    )
    write(root, {"in/put/o_1.csv": "a\n", "in/put/x_1.csv": "a\n"})
    loaded = load_project(root)
    pattern = Places(loaded, loaded.environments["dev"]).source_files(loaded.entities["bronze.orders"])
    assert Path(pattern).is_absolute()
    assert glob.glob(pattern) == [str(root.resolve() / "in/put/o_1.csv")]  # noqa: PTH207  the glob is a text


def test_a_variable_may_be_an_absolute_path_and_its_own_braces_are_text(tmp_path: Path) -> None:
    environments = f'format = 1\n[dev]\ntarget = "local"\nvars = {{ landing = "{tmp_path}/{{x}}", x = "y" }}\n'
    loaded = load_project(project(tmp_path / "p", environments=environments))
    pattern = Places(loaded, loaded.environments["dev"]).source_files(loaded.entities["bronze.orders"])
    assert pattern == f"{tmp_path}/{{x}}/orders_*.csv"


def test_an_entity_that_reads_entities_has_no_source_files(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    with pytest.raises(ValueError, match=r"silver\.orders has no source files"):
        Places(loaded, loaded.environments["dev"]).source_files(loaded.entities["silver.orders"])


def test_a_fabric_environment_loads_and_is_refused_only_when_it_is_to_run(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path, environments=ENVIRONMENTS + PROD))
    require_local(loaded.environments["dev"])
    for refused in (
        lambda: require_local(loaded.environments["prod"]),
        lambda: Places(loaded, loaded.environments["prod"]),
    ):
        with pytest.raises(
            UsageError, match=r'`prod` has `target = "fabric"`, which this version can\'t run'
        ) as caught:
            refused()
        assert caught.value.exit_code == 2


def test_an_environment_is_found_by_name_or_the_nearest_is_named(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path, environments=ENVIRONMENTS + PROD))
    assert environment_named(loaded, "dev") is loaded.environments["dev"]
    with pytest.raises(NotFound, match=r"no environment `Prod` in .*\. Did you mean `prod`\?$"):
        environment_named(loaded, "Prod")
    with pytest.raises(NotFound, match=r"no environment `zzz` in .*\. Known: dev, prod\.$"):
        environment_named(loaded, "zzz")
