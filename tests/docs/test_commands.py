"""Every command that a page or a message names is one; every page's `sh` blocks are run by some test; links lead somewhere."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.exceptions import TyperException

from fdagent.cli.main import COMMANDS, commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"^```(\w*)\n(.*?)^```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
SECONDS = 60
EXIT_CODES = {"fdagent status --watch": 2, "fdagent status --health": 1}
"""In a pipe, and where no agent runs: as their page says."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code_of(page: Path) -> list[tuple[str, str]]:
    """The page's code: language (empty for code in a sentence) and text."""
    text = page.read_text(encoding="utf-8")
    return [(found[1] or "", found[2] or found[3]) for found in CODE.finditer(text)]


def said_in(text: str) -> list[str]:
    """The commands in a text: `fdagent ...` at the start of a line, or after `&&`, without its comment."""
    lines = [part.strip() for line in text.splitlines() for part in line.split("&&")]
    return [re.split(r"\s+#|;|\s\s", line)[0] for line in lines if re.match(r"fdagent( |$)", line)]


def messages() -> list[tuple[str, str]]:
    """Each command between backticks in a text of the program, with its file; what is filled in is a word."""
    found = []
    for path in sorted((ROOT / "fdagent").rglob("*.py")) + sorted((ROOT / "models").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            found += [(name_of(path), command) for command in re.findall(r"`(fdagent [^`\n]+)`", text)]
    return found


NAMED = sorted(
    {(name_of(page), command) for page in PAGES for _, text in code_of(page) for command in said_in(text)}
    | set(messages())
)


@pytest.mark.parametrize(("where", "command"), NAMED, ids=str)
def test_a_command_that_a_page_or_message_names_is_one_of_the_program(where, command):
    words = [word for word in shlex.split(command)[1:] if word not in {"...", "…"}]
    if not words:
        return
    assert words[0] in COMMANDS or words[0].startswith("-"), f"{where}: {command}"
    if words[0].startswith("-"):
        return
    app = typer.main.get_command(commands(words))
    try:
        context = app.make_context("fdagent", list(words))
        while context.args or getattr(context, "_protected_args", []):
            left = [*getattr(context, "_protected_args", []), *context.args]
            name, inner, rest = context.command.resolve_command(context, left)
            context = inner.make_context(name, rest, parent=context)
            if not hasattr(context.command, "resolve_command"):
                break
    except TyperException as err:
        # A page may name a command without its arguments; one that it does not have is a mistake.
        if "Missing argument" not in err.format_message():
            pytest.fail(f"{where}: {command}: {err.format_message()}")


def has_a_test(page: Path) -> bool:
    """Does another test read the page, to run its blocks in their own order?"""
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    return any(f'"{page.name}"' in path.read_text(encoding="utf-8") for path in tests)


def give(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("FABRIC_DESKTOP")}
    command = [sys.executable, "-P", "-m", "fdagent", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.mark.process
def test_the_commands_of_the_readme_make_a_project_that_runs(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    steps = [command for command in re.findall(r"`(fdagent [^`]+)`", text) if not command.startswith("fdagent why")]
    assert [step.split()[1] for step in steps] == ["init", "promote", "enqueue", "run"]
    said = ""
    for step in steps:
        done = give(tmp_path, *shlex.split(step)[1:], *(["--yes"] if "promote" in step else []))
        assert done.returncode == 0, done.stdout + done.stderr
        said = done.stdout
    assert "Nothing is left to do." in said
    assert (tmp_path / ".local/dev/LH_Gold/Tables/revenue_by_customer/_delta_log").is_dir()


@pytest.mark.process
def test_the_shell_blocks_of_pages_without_a_test_of_their_own_run_where_a_project_ran(tmp_path):
    blocks = [
        (page, command)
        for page in PAGES
        if not has_a_test(page)
        for language, text in code_of(page)
        if language == "sh"
        for command in said_in(text)
    ]
    for words in (["init"], ["promote", "dev", "--yes"], ["enqueue", "dev"], ["run", "--until-idle"]):
        assert give(tmp_path, *words).returncode == 0
    for page, command in blocks:
        done = give(tmp_path, *shlex.split(command)[1:])
        assert done.returncode == EXIT_CODES.get(command, 0), (page, command, done.stdout, done.stderr)


def test_the_make_commands_of_the_readme_are_targets():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = {
        name for page in PAGES for _, text in code_of(page) for name in re.findall(r"^make (\w+)", text, re.MULTILINE)
    }
    assert {"demo", "test"} <= named
    assert named <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_to_something(page):
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{name_of(page)} links to {target}"
        if anchor and path.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}, anchor
