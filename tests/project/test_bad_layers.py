"""layers.toml and environments.toml with each kind of mistake."""

from pathlib import Path

import pytest
from project_kit import ENVIRONMENTS, GOLD, LAYERS, SILVER, problems, project, write

GUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
ALL = ", ".join(f'{name} = "{GUID}"' for name in ("LH_Bronze", "LH_Silver", "LH_Gold", "LH_Meta"))
FABRIC = f'target = "fabric"\nvars = {{ landing = "x" }}\nworkspace = "{GUID}"\nlakehouses = {{ {ALL} }}\n'

LAYER = [
    ("rank = '1'\nlakehouse = 'LH_X'", 'rank: found "1", expected a whole number from 0 to 1000.'),
    ("rank = true\nlakehouse = 'LH_X'", "rank: found true, expected a whole number from 0 to 1000."),
    ("rank = 1.0\nlakehouse = 'LH_X'", "rank: found 1.0, expected a whole number from 0 to 1000."),
    ("rank = -1\nlakehouse = 'LH_X'", "rank: found -1, expected a whole number from 0 to 1000."),
    ("lakehouse = 'LH_X'", "rank: missing, expected a whole number from 0 to 1000."),
    ("rank = 1", "lakehouse: missing, expected the name of a lakehouse."),
    ("rank = 1\nlakehouse = 3", "lakehouse: found 3, expected the name of a lakehouse."),
    ("rank = 1\nlakehouse = '_control'", 'lakehouse: "_control" is not a letter followed by letters, digits and underscores.'),
    ("rank = 1\nlakehouse = '../LH'", 'lakehouse: "../LH" is not a letter followed by letters, digits and underscores.'),
    ("rank = 1\nlakehouse = 'con'", 'lakehouse: "con" is a device name on Windows.'),
    (f"rank = 1\nlakehouse = 'L{'x' * 123}'", f'lakehouse: "L{"x" * 58}…" has 124 characters; 123 are allowed.'),
    ("rank = 1\nlakehouse = 'LH_Meta'", 'lakehouse: "LH_Meta" is the agent\'s own lakehouse.'),
    ("rank = 1\nlakehouse = 'lh_keys'", 'lakehouse: "lh_keys" is the agent\'s own lakehouse.'),
    ("rank = 1\nlakehouse = 'lh_gold'", 'lakehouse: "lh_gold" and "LH_Gold" of [gold] differ only in letter case.'),
    ("rank = 1\nlakehouse = 'LH_Gold'\nschema = 'dbo'", "schema: [gold] uses the same lakehouse; expected a schema in both layers or in neither."),
    ("rank = 1\nlakehouse = 'LH_X'\nschema = 'a.b'", 'schema: "a.b" has a dot, which stands between a layer and its table.'),
    ("rank = 1\nlakehouse = 'LH_X'\nschema = ''", 'schema: found "", expected the name of a schema.'),
    ("rank = 1\nlakehouse = 'LH_X'\nlakehuose = 'LH_Y'", "lakehuose: unknown key; did you mean `lakehouse`?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), LAYER, ids=[text[:40] for text, _ in LAYER])
def test_a_wrong_layer_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    assert problems(project(tmp_path, layers=f"{LAYERS}[extra]\n{text}\n")) == (f"layers.toml, [extra] {sentence}",)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (LAYERS.replace("format = 1\n", ""), ("layers.toml, format: missing, expected `format = 1`.",)),
        (LAYERS.replace("= 1\n[", "= 2\n["), ("layers.toml, format: found 2, expected 1, the only format this version reads.",)),
        ("format = 1\n", ("layers.toml: declares no layer, expected at least one such as [bronze].",)),
        (f"{LAYERS}extra = 1\n", ("layers.toml, [gold] extra: unknown key; known: lakehouse, rank, schema.",)),
        (f"extra = 1\n{LAYERS}", ("layers.toml, extra: found 1, expected a table.",)),
        (f'{LAYERS}["a.b"]\nrank = 1\nlakehouse = "LH_X"\n', ('layers.toml: the layer name "a.b" has a dot, which stands between a layer and its table.',)),
        (f'{LAYERS}[Gold]\nrank = 1\nlakehouse = "LH_X"\n', ('layers.toml: the layers "gold" and "Gold" differ only in letter case.',)),
        (f'{LAYERS}[""]\nrank = 1\nlakehouse = "LH_X"\n', ('layers.toml: the layer name "" is empty.',)),
    ],
)  # fmt: skip
def test_a_wrong_layers_toml_is_one_sentence(tmp_path: Path, text: str, sentences: tuple[str, ...]) -> None:
    assert problems(project(tmp_path, layers=text)) == sentences


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('target = "locla"', 'target: found "locla", expected "local" or "fabric"; did you mean `local`?'),
        ("vars = { landing = 'x' }", 'target: missing, expected "local" or "fabric".'),
        (f'target = "local"\nworkspace = "{GUID}"', 'workspace: is for `target = "fabric"`; a local environment has folders instead.'),
        ('target = "local"\nvar = {}', "var: unknown key; did you mean `vars`?"),
        ('target = "local"\nvars = "landing"', 'vars: found "landing", expected a table.'),
        ('target = "local"\nvars = { a = 1 }', "vars.a: expected a text of at least one character, on one line."),
        ('target = "local"\nvars = { a = "" }', "vars.a: expected a text of at least one character, on one line."),
        ('target = "local"\nvars = { a = "x\\ny" }', "vars.a: expected a text of at least one character, on one line."),
        ('target = "local"\nvars = { "a-b" = "x" }', 'vars: the variable name "a-b" is not a letter or underscore followed by letters, digits and underscores.'),
        (FABRIC.replace(f'workspace = "{GUID}"\n', ""), "workspace: missing, expected a GUID."),
        (FABRIC.replace(f'workspace = "{GUID}"', 'workspace = "my workspace"'), f"workspace: expected a GUID, such as {GUID}."),
        (f'{FABRIC}keys_workspace = "{GUID}x"', f"keys_workspace: expected a GUID, such as {GUID}."),
        (f'{FABRIC}keys_workspace = ["{GUID}"]', "keys_workspace: found a list, expected a GUID."),
        (FABRIC.replace(f"lakehouses = {{ {ALL} }}\n", ""), 'lakehouses: missing, expected a table of GUIDs, such as { LH_Meta = "<guid>" }.'),
        (FABRIC.replace(f', LH_Meta = "{GUID}"', ""), "lakehouses LH_Meta: missing, expected its GUID."),
        (FABRIC.replace("LH_Bronze =", f'LH_Glod = "{GUID}", LH_Bronze ='), "lakehouses LH_Glod: is no layer's lakehouse; did you mean `LH_Gold`?"),
        (FABRIC.replace(f'LH_Gold = "{GUID}"', 'LH_Gold = "?"'), f"lakehouses LH_Gold: expected a GUID, such as {GUID}."),
    ],
)  # fmt: skip
def test_a_wrong_environment_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    bronze = '[source]\nfiles = "a.csv"\n[load]\nmode = "append"\n'
    root = project(tmp_path, environments=f"{ENVIRONMENTS}[prod]\n{text}\n", bronze=bronze)
    assert problems(root) == (f"environments.toml, [prod] {sentence}",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ENVIRONMENTS.replace("format = 1\n", ""), "environments.toml, format: missing, expected `format = 1`."),
        ("format = 1\n", "environments.toml: declares no environment, expected at least one such as [dev]."),
        (f"{ENVIRONMENTS}[DEV]\n{ENVIRONMENTS.split(']')[1]}", 'environments.toml: the environments "dev" and "DEV" differ only in letter case.'),
        (ENVIRONMENTS.replace("[dev]", '["../dev"]'), "environments.toml: the environment name \"../dev\" has a character that is not a letter, a digit, '.', '_' or '-'."),
    ],
)  # fmt: skip
def test_a_wrong_environments_toml_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    assert problems(project(tmp_path, environments=text)) == (sentence,)


def test_two_layers_may_share_a_lakehouse_but_no_two_entities_a_table(tmp_path: Path) -> None:
    layers = LAYERS.replace("LH_Gold", "LH_Silver")
    assert problems(project(tmp_path, layers=layers)) == ()
    assert problems(write(tmp_path, {"entities/gold/Orders.toml": GOLD})) == (
        "entities/silver/orders.toml: `silver.orders` and `gold.Orders` would both write LH_Silver/orders.",
    )


def test_schemas_keep_equal_tables_of_one_lakehouse_apart(tmp_path: Path) -> None:
    layers = LAYERS.replace('"LH_Silver"', '"LH_One"\nschema = "s"').replace('"LH_Gold"', '"LH_One"\nschema = "g"')
    assert problems(write(project(tmp_path, layers=layers), {"entities/gold/orders.toml": GOLD})) == ()
    assert problems(write(tmp_path, {"layers.toml": layers.replace('"g"', '"S"')})) == (
        "entities/silver/orders.toml: `silver.orders` and `gold.orders` would both write LH_One/s/orders.",
    )


def test_two_entities_whose_quarantine_would_be_one_table_are_refused(tmp_path: Path) -> None:
    layers = f'{LAYERS}[silver_a]\nrank = 2\nlakehouse = "LH_X"\n'
    files = {"entities/silver_a/b.toml": SILVER, "entities/silver/a_b.toml": SILVER}
    assert problems(write(project(tmp_path, layers=layers), files)) == (
        "entities/silver_a/b.toml: `silver_a.b` and `silver.a_b` would both write LH_Meta/quarantine_silver_a_b.",
    )
