"""The reference page and the example of agent.toml, made from the declarations of the settings.

`python -m fdagent.config.reference`, called in the repository, writes `docs/agent-toml.md` and
`deploy/agent.example.toml`; a test fails when one of them is not what this makes.

Guarantees: every declared key is in both, with its default, its range and its meaning, and nothing else is. The example
loads as it is.
"""

import inspect
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fdagent.config.find import CONFIG_VARIABLE, HOME_VARIABLE, LINUX_CONFIG, LINUX_HOME
from fdagent.config.keys import Declared, declared
from fdagent.config.rules import ALLOWED, NEEDED, RULES
from fdagent.config.settings import TABLES, TableOf

PAGE = Path("docs", "agent-toml.md")
EXAMPLE = Path("deploy", "agent.example.toml")

_WIDTH = 100
_INTRO = f"""\
# agent.toml

<!-- Made from the settings by `python -m fdagent.config.reference`. -->

What one agent may be told. Every key below with its default, ready to be copied:
[deploy/agent.example.toml](../deploy/agent.example.toml). The least that is enough:

```toml
[agent]
project = "/srv/fabric-desktop/project"
environments = ["dev"]
```

**Where it is.** The file that `--config` names, else `{CONFIG_VARIABLE}`, else `{LINUX_CONFIG}`, on Windows
`C:\\ProgramData\\FabricDesktop\\agent.toml`. A file that is named must be there. Where none is named and none found, the
commands work on the project of the folder they are called in.

**Where the agent lives.** In the folder that `{HOME_VARIABLE}` names, else `[agent] home`, else `{LINUX_HOME}`, on Windows
`C:\\ProgramData\\FabricDesktop`.

**What is refused.** An unknown key, a value of a wrong type or out of its range, and a broken rule; all problems are told
at once, each with the table and key, what was found and what is expected. The file is UTF-8 and at most 256 KiB.

**Secrets never stand in this file.** A certificate is a path; a client secret, a certificate's password and a webhook's
address are *names of environment variables*, in keys that end with `_env`, written in capitals, digits and underscores.
A value that looks like a secret is refused, whatever its key: a key named like a secret, password, token or webhook
without `_env`, an address with a signature, a PEM block, a token. The error names the key and never shows the value.
"""


def page() -> str:
    """The reference page."""
    parts = [_INTRO, *(_section(table) for table in TABLES), _rules()]
    return "\n".join(parts)


def example() -> str:
    """The example: defaults stand as they are, what has none is commented out with a value to start from."""
    lines = [
        "# agent.toml with every key. Defaults stand as they are; a line that begins with # and no space is a key",
        "# without a default, or a table there may be many of: take the # away to use it. See docs/agent-toml.md.",
    ]
    for table in TABLES:
        off = "#" if table.many else ""
        lines += ["", *_comment(_purpose(table)), f"{off}{table.header}"]
        for key in declared(table.settings):
            lines += [*_comment(_remark(key)), f"{off or _off(key)}{key.name} = {_shown(key)}"]
    return "\n".join(lines) + "\n"


def _section(table: TableOf) -> str:
    many = ". As many as there are" if table.many else ""
    rows = [
        f"| `{key.name}` | {_cell(key.key.kind.expected)} | {_cell(_default(key))} | {_cell(key.key.meaning)} |"
        for key in declared(table.settings)
    ]
    lines = [f"## {table.header}", "", f"{_purpose(table).removesuffix('.')}{many}.", ""]
    if table.name == "identity":
        lines += [*_kinds_of_identity(), ""]
    return "\n".join([*lines, "| key | value | default | meaning |", "|---|---|---|---|", *rows, ""])


def _kinds_of_identity() -> Iterator[str]:
    yield "| kind | needs | may have |"
    yield "|---|---|---|"
    for kind in NEEDED:
        needs, may = (", ".join(f"`{key}`" for key in keys[kind]) or "nothing" for keys in (NEEDED, ALLOWED))
        yield f"| `{kind}` | {needs} | {may} |"


def _rules() -> str:
    sentences = [(inspect.getdoc(rule) or "").splitlines()[0] for rule in RULES]
    return "\n".join(["## Rules across keys", "", *(f"- {sentence}" for sentence in sentences), ""])


def _purpose(table: TableOf) -> str:
    return inspect.getdoc(table.settings) or ""


def _default(key: Declared) -> str:
    if key.key.required:
        return "required"
    return key.key.unset or f"`{toml(key.default)}`"


def _remark(key: Declared) -> str:
    if key.key.required:
        return f"{key.key.meaning} Required."
    return f"{key.key.meaning} Not set: {key.key.unset}." if key.key.unset else key.key.meaning


def _off(key: Declared) -> str:
    return "#" if key.key.unset else ""


def _shown(key: Declared) -> str:
    return key.key.example or toml(key.default)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text.replace("`", ""), _WIDTH)]


def toml(value: Any) -> str:
    """A default as TOML writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(toml(item) for item in value)}]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


if __name__ == "__main__":
    for file, text in ((PAGE, page()), (EXAMPLE, example())):
        file.write_text(text, encoding="utf-8", newline="\n")
