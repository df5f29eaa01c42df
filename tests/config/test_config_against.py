"""agent.toml beside a metadata project."""

from dataclasses import replace
from pathlib import Path

import pytest
from config_kit import MAILBOX, loaded

from fdagent.config.against import check_against_project
from fdagent.project.model import Entity, EntitySource, Environment, Layer, Load, Project

WORKSPACE = "0f8fad5b-d9cb-469f-a165-70867728950e"
KEYS_WORKSPACE = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
SIGNED_IN = '[identity]\nkind = "managed_identity"\n'


def entity(name, *reads):
    layer, table = name.split(".")
    return Entity(
        name=name,
        layer=Layer(layer, 1, "LH"),
        table=table,
        file=Path(f"entities/{layer}/{table}.toml"),
        load=Load("append"),
        sources=tuple(EntitySource("source", read) for read in reads),
    )


ENTITIES = [
    entity("bronze.orders"),
    entity("silver.orders", "bronze.orders"),
    entity("silver.lines", "bronze.orders"),
    entity("gold.revenue", "silver.orders", "silver.lines"),
]
PROJECT = Project(
    root=Path("project"),
    layers={},
    environments={"dev": Environment("dev", "local"), "prod": Environment("prod", "local")},
    entities={one.name: one for one in ENTITIES},
    metadata_version="3f2a",
)
FABRIC = replace(
    PROJECT,
    environments={
        "dev": Environment("dev", "local"),
        "prod": Environment("prod", "fabric", workspace=WORKSPACE, keys_workspace=KEYS_WORKSPACE),
    },
)


def schedule(more="", ident="nightly"):
    return f'[[schedule]]\nid = "{ident}"\nenv = "prod"\nevery_minutes = 15\n{more}\n'


def said(folder, text, project=PROJECT):
    return [one.removeprefix("agent.toml, ") for one in check_against_project(loaded(folder, text), project)]


def test_settings_that_fit_give_no_problem(tmp_path):
    text = MAILBOX + 'entities = ["silver.*"]\n' + schedule('entities = ["silver.orders"]\nshared = true')
    assert said(tmp_path, text) == []


def test_an_environment_is_one_of_the_projects(tmp_path):
    text = (
        MAILBOX.replace('"dev"', '"dve"')
        + '[[incidents.route]]\nname = "x"\nwebhook_env = "HOOK"\nenvs = ["test", "prod"]\n'
    )
    assert said(tmp_path, text) == [
        '[agent] environments: "dve" is no environment of the project; did you mean `dev`?',
        '[[incidents.route]] 1 (x) envs: "test" is no environment of the project; known: dev, prod.',
    ]


def test_an_environment_in_fabric_needs_an_identity(tmp_path):
    [problem] = said(tmp_path, MAILBOX, FABRIC)
    assert problem == '[identity] kind: found "none", but "prod" lies in Fabric; expected another kind.'
    assert said(tmp_path, MAILBOX + SIGNED_IN, FABRIC) == []


def test_an_environment_in_fabric_that_is_not_run_needs_no_identity(tmp_path):
    assert said(tmp_path, MAILBOX.replace(', "prod"', ""), FABRIC) == []


@pytest.mark.parametrize(
    ("allowed", "missing"),
    [
        ([], []),
        ([WORKSPACE.upper(), KEYS_WORKSPACE], []),
        ([WORKSPACE], [KEYS_WORKSPACE]),
        (["11111111-1111-1111-1111-111111111111"], [WORKSPACE, KEYS_WORKSPACE]),
    ],
)
def test_the_allowed_workspaces_hold_those_of_each_environment(tmp_path, allowed, missing):
    workspaces = str(allowed).replace("'", '"')
    text = MAILBOX.replace("[pipeline]", f"workspaces = {workspaces}\n[pipeline]") + SIGNED_IN
    problems = said(tmp_path, text, FABRIC)
    assert [one.split(", ")[1] for one in problems] == missing
    assert all(one.startswith("[agent] workspaces: the ") for one in problems)


def test_a_schedules_names_and_globs_mean_something(tmp_path):
    text = MAILBOX + schedule('entities = ["silver.*", "silver.order", "copper.*", "x"]')
    assert said(tmp_path, text) == [
        '[[schedule]] 1 (nightly) entities: "silver.order" is no entity; did you mean `silver.orders`?',
        '[[schedule]] 1 (nightly) entities: "copper.*" matches no entity.',
        '[[schedule]] 1 (nightly) entities: "x" is no entity; known: bronze.orders, gold.revenue, silver.lines, silver.orders.',
    ]


def test_the_allowlists_names_and_globs_mean_something(tmp_path):
    assert said(tmp_path, MAILBOX + 'entities = ["slver.*"]') == ['[pipeline] entities: "slver.*" matches no entity.']


def test_a_shared_schedules_cascade_stays_inside_the_allowlist(tmp_path):
    text = MAILBOX + 'entities = ["silver.*"]\n' + schedule('entities = ["silver.*"]\nshared = true\ncascade = true')
    assert said(tmp_path, text) == [
        '[[schedule]] 1 (nightly) cascade: would run "gold.revenue", which [pipeline] entities doesn\'t allow.'
    ]
    assert said(tmp_path, text.replace('["silver.*"]\n', '["silver.*", "gold.*"]\n', 1)) == []
    assert said(tmp_path, text.replace("shared = true", "")) == []


def test_several_entities_that_a_cascade_reaches_are_counted(tmp_path):
    text = MAILBOX + 'entities = ["bronze.*"]\n' + schedule('entities = ["bronze.*"]\nshared = true\ncascade = true')
    assert 'would run "gold.revenue" and 2 more' in said(tmp_path, text)[0]
