"""`layers.toml` and `environments.toml`: where tables belong, and where they lie.

Guarantees: layers whose tables can't collide in a lakehouse; environments with all they need for their target; problems
as sentences. Never shows a variable's value, which may be an address with a signature. Reads no other file.
"""

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

from fdagent.project.model import Environment, Layer
from fdagent.project.names import equal_but_for_case, lakehouse_problem, part_problem, word_problem
from fdagent.project.problems import Findings, did_you_mean, found
from fdagent.project.table import Table
from models.ids import id_problem

LAYERS_FILE = "layers.toml"
ENVIRONMENTS_FILE = "environments.toml"
LAYER_KEYS = ("rank", "lakehouse", "schema")
ENVIRONMENT_KEYS = ("target", "vars", "workspace", "keys_workspace", "lakehouses")
META, KEYS = "LH_Meta", "LH_Keys"
MAX_RANK = 1000
UNKNOWN_RANK = -1
"""The rank of a layer that is not declared, or declared with a rank that is none: no reference is judged by it."""

Target = Literal["local", "fabric"]

_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def read_layers(values: dict[str, Any], findings: Findings) -> dict[str, Layer] | None:
    """The layers of `layers.toml`; None when its format is not known, so that nothing can be said about layers."""
    top = Table(values, LAYERS_FILE, "", findings)
    if not top.format_is_known(required=True):
        return None
    layers = {}
    for name in _names(top, part_problem, "layer"):
        table = top.table(name, LAYER_KEYS, shown=f"[{name}]")
        if table is not None:
            layers[name] = _layer(name, table)
    if not layers:
        findings.add(LAYERS_FILE, "", "declares no layer, expected at least one such as [bronze]")
    _check_lakehouses(layers.values(), findings)
    return layers


def read_environments(
    values: dict[str, Any], layers: dict[str, Layer] | None, findings: Findings
) -> dict[str, Environment]:
    """The environments of `environments.toml`."""
    top = Table(values, ENVIRONMENTS_FILE, "", findings)
    environments: dict[str, Environment] = {}
    if not top.format_is_known(required=True):
        return environments
    for name in _names(top, id_problem, "environment"):
        table = top.table(name, ENVIRONMENT_KEYS, shown=f"[{name}]")
        if table is not None:
            environments[name] = _environment(name, table, layers)
    if not environments:
        findings.add(ENVIRONMENTS_FILE, "", "declares no environment, expected at least one such as [dev]")
    return environments


def _names(top: Table, problem_of: Any, what: str) -> list[str]:
    """The tables' names at the top of a file, those with a problem reported."""
    names = [name for name in top.values if name != "format"]
    for name in names:
        problem = problem_of(name)
        if problem:
            top.problem("", f"the {what} name {found(name)} {problem}")
    for one, other in equal_but_for_case(names):
        top.problem("", f"the {what}s {found(one)} and {found(other)} differ only in letter case")
    return names


def _layer(name: str, table: Table) -> Layer:
    lakehouse = table.text("lakehouse", required=True, expected="the name of a lakehouse")
    schema = table.text("schema", expected="the name of a schema")
    for key, value, problem in (
        ("lakehouse", lakehouse, lakehouse_problem(lakehouse)),
        ("schema", schema, part_problem(schema)),
    ):
        if value and problem:
            table.problem(key, f"{found(value)} {problem}")
    rank = table.whole("rank", 0, MAX_RANK, UNKNOWN_RANK, required=True)
    return Layer(name=name, rank=rank, lakehouse=lakehouse, schema=schema or None)


def _check_lakehouses(layers: Iterable[Layer], findings: Findings) -> None:
    """Two layers may share a lakehouse; they then write it alike, and both have a schema or neither has."""
    first: dict[str, Layer] = {}
    for layer in layers:
        other = first.setdefault(layer.lakehouse.casefold(), layer)
        if other.lakehouse != layer.lakehouse:
            what = f"{found(layer.lakehouse)} and {found(other.lakehouse)} of [{other.name}] differ only in letter case"
            findings.add(LAYERS_FILE, f"[{layer.name}] lakehouse", what)
        elif layer.lakehouse and (other.schema is None) != (layer.schema is None):
            what = f"[{other.name}] uses the same lakehouse; expected a schema in both layers or in neither"
            findings.add(LAYERS_FILE, f"[{layer.name}] schema", what)


def _environment(name: str, table: Table, layers: dict[str, Layer] | None) -> Environment:
    target: Target = table.choice("target", get_args(Target), "local", required=True)
    variables = _variables(table)
    fabric_keys = ("workspace", "keys_workspace", "lakehouses")
    if target == "local":
        for key in fabric_keys:
            if key in table:
                table.problem(key, 'is for `target = "fabric"`; a local environment has folders instead')
        return Environment(name=name, target=target, vars=variables)
    return Environment(
        name=name,
        target=target,
        vars=variables,
        workspace=_guid(table, "workspace", required=True),
        keys_workspace=_guid(table, "keys_workspace"),
        lakehouses=_lakehouses(table, layers),
    )


def _variables(table: Table) -> dict[str, str]:
    """The variables of `vars`; a sentence names the variable, never its value."""
    variables = {}
    inner = table.table("vars")
    for key, value in inner.values.items() if inner else ():
        problem = word_problem(key)
        if problem:
            table.problem("vars", f"the variable name {found(key)} {problem}")
        if isinstance(value, str) and value.strip() and value.isprintable():
            variables[key] = value
        else:
            table.problem(f"vars.{key}", "expected a text of at least one character, on one line")
    return variables


def _guid(table: Table, key: str, *, required: bool = False) -> str:
    text = table.text(key, required=required, expected="a GUID")
    if text and not _GUID.fullmatch(text):
        table.problem(key, "expected a GUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e")
    return text.lower()


def _lakehouses(table: Table, layers: dict[str, Layer] | None) -> dict[str, str]:
    """The lakehouses' GUIDs: one for each layer's, for LH_Meta, and for LH_Keys where it is used."""
    if "lakehouses" not in table:
        table.missing("lakehouses", 'a table of GUIDs, such as { LH_Meta = "<guid>" }')
    inner = table.table("lakehouses", shown=f"{table.path} lakehouses")
    if inner is None:
        return {}
    guids = {key: _guid(inner, key) for key in inner.values}
    if layers is not None:
        needed = dict.fromkeys([*(layer.lakehouse for layer in layers.values() if layer.lakehouse), META])
        for name in needed:
            if name not in guids:
                inner.missing(name, "its GUID")
        for name in guids:
            if name not in needed and name != KEYS:
                inner.problem(name, f"is no layer's lakehouse{did_you_mean(name, [*needed, KEYS])}")
    return guids
