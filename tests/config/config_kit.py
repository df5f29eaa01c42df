"""A small agent.toml to change, and the sentences that loading it gives."""

from pathlib import Path

from fdagent.config.load import load_settings
from fdagent.config.settings import Settings
from fdagent.errors import ConfigError

AGENT = """\
[agent]
project = "project"
environments = ["dev", "prod"]
"""
MAILBOX = AGENT + "[pipeline]\nenabled = true\n"


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "agent.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def loaded(folder: Path, text: str | bytes) -> Settings:
    return load_settings(written(folder, text), host="etl-01.contoso.com")


def refusal(file: Path) -> ConfigError | None:
    """The error that loading a file gives."""
    try:
        load_settings(file, host="host")
    except ConfigError as error:
        return error
    return None


def problems(folder: Path, text: str | bytes) -> list[str]:
    """The sentences that an agent.toml gives; none when it loads."""
    error = refusal(written(folder, text))
    if error is None:
        return []
    assert error.problems
    assert error.fix
    assert str(folder) in error.what
    return list(error.problems)


def problem(folder: Path, text: str | bytes) -> str:
    """The one sentence that an agent.toml gives, without the file's name."""
    [sentence] = problems(folder, text)
    assert sentence.startswith("agent.toml")
    assert sentence.endswith((".", "?"))
    return sentence.removeprefix("agent.toml, ").removeprefix("agent.toml: ")
