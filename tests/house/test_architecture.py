"""The house's own rules, read from the code: who imports whom, how long things are, where the outside comes in."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fdagent.errors
import models.errors

ROOT = Path(__file__).parents[2]
PACKAGES = ("models", "machines", "fdagent")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
RANKS = [
    ("cli", "demo", "__main__"),
    ("daemon", "probe"),
    ("incidents", "fleet", "work"),
    ("queue", "engine"),
    ("stores", "project", "config", "azure"),
    ("why", "commit"),
    ("attempt", "system"),
    ("ports",),
    ("errors",),
]
"""Inside `fdagent`, top to bottom: a part imports only parts below it (or its own, or a neighbour that is listed)."""
NEIGHBOURS = {
    ("__main__", "cli"),
    ("cli", "demo"),
    ("demo", "cli"),
    ("work", "fleet"),
    ("config", "project"),
    ("stores", "system"),
}
"""Parts of one rank that may know each other, in this direction."""
OUTSIDE = {("time", "time"), ("time", "monotonic"), ("time", "sleep"), ("uuid", "uuid4"), ("random", "random")}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(path: Path) -> set[str]:
    """Every module a file imports, lazily or not; `from a import b` counts as `a.b` where that is a module."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_go_down_only(path):
    package = path.relative_to(ROOT).parts[0]
    allowed = PACKAGES[: PACKAGES.index(package) + 1]
    for name in imports_of(path):
        top = name.split(".")[0]
        if top in PACKAGES:
            assert top in allowed, f"{name_of(path)} imports {name}"
        if package == "models":
            assert top in allowed or top in sys.stdlib_module_names, f"{name_of(path)} imports {name}"


def part_of(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def rank_of(part: str) -> int:
    return next((number for number, parts in enumerate(RANKS) if part in parts), -1)


@pytest.mark.parametrize("path", [path for path in SOURCES if name_of(path).startswith("fdagent.")], ids=name_of)
def test_the_parts_of_fdagent_import_only_what_is_below_them(path):
    mine = part_of(name_of(path))
    if mine == "__init__":
        return
    assert rank_of(mine) >= 0, f"{mine} has no rank: give it one in this test and in docs/architecture.md"
    for name in imports_of(path):
        if not name.startswith("fdagent."):
            continue
        theirs = part_of(name)
        if theirs in {mine, "__version__"} or (mine, theirs) in NEIGHBOURS:
            continue
        assert rank_of(mine) < rank_of(theirs), f"{name_of(path)} imports {name}"


def test_transitions_is_imported_in_one_file():
    users = [name_of(path) for path in SOURCES if any(n.split(".")[0] == "transitions" for n in imports_of(path))]
    assert users == ["machines.chart"]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_and_functions_stay_short(path):
    assert path.read_text(encoding="utf-8").count("\n") <= 400
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno + 1 <= 40, f"{node.name} in {path}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(tree_of(path))


@pytest.mark.parametrize("path", [path for path in SOURCES if name_of(path) != "fdagent.system"], ids=name_of)
def test_clocks_and_random_numbers_come_through_the_ports(path):
    for node in ast.walk(tree_of(path)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            assert (node.func.value.id, node.func.attr) not in OUTSIDE, f"{path}:{node.lineno}"


def test_the_three_packages_lie_side_by_side_and_are_typed():
    folders = {Path(importlib.import_module(name).__file__).parents[1] for name in PACKAGES}
    assert len(folders) == 1
    assert all((folders.copy().pop() / name / "py.typed").exists() for name in PACKAGES)


def test_the_error_tree_is_drawn_whole():
    drawn = set(re.findall(r"[A-Z]\w+", inspect.getdoc(fdagent.errors)))
    shared = {"FdagentError", "InvalidInput", "BadRecord", "BadId", "BadTime"}
    real = {
        name
        for module in (fdagent.errors, models.errors)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, models.errors.FdagentError)
    } - {"Problems"}
    assert real - drawn == set()
    assert shared <= drawn
    elsewhere = {
        node.name
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id in real for b in node.bases)
    }
    assert elsewhere - {"Problems"} - drawn == set()


def test_a_models_package_of_somebody_else_is_never_taken_for_ours(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("raise SystemExit('theirs')")
    command = [sys.executable, "-P", "-m", "fdagent", "--help"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "promote" in answer.stdout


def test_a_status_imports_no_table_library():
    code = "import sys; sys.argv=['fdagent','status','--help']\nimport fdagent.cli.main as m\nm.run(m.commands(sys.argv[1:]), sys.argv[1:])\nprint(sorted(sys.modules))"
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.split(".")[0] for name in ast.literal_eval(answer.stdout.splitlines()[-1])}
    assert loaded & {"duckdb", "deltalake", "pyarrow", "httpx", "azure"} == set()
