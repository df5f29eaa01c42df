"""`fdagent run` is understood without the command line library where it is plain, and as that library would."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdagent.cli.run as command
from fdagent.cli import quick
from fdagent.cli.main import commands, run

WORDS = st.sampled_from(
    [
        "--project",
        "-p",
        "--config",
        "-c",
        "here",
        "a b",
        "--until-idle",
        "--json",
        "--search",
        "-w",
        "--help",
        "--",
        "-",
        "",
    ]
)


@given(words=st.lists(WORDS, max_size=5))
def test_what_is_understood_without_typer_is_what_typer_understands(words):
    words = ["run", *words]
    plain = quick.running(words)
    if plain is None:
        return
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "where", lambda *paths: asked.append(paths))
        patch.setattr(command, "serve", lambda _place: 0)
        assert run(commands(words), words) == 0
    assert asked == [(plain.get("project"), plain.get("config"))]


def test_plain_words_are_understood_without_typer():
    assert quick.running(["run"]) == {}
    assert quick.running(["run", "-p", "here", "--config", "x.toml"]) == {
        "project": Path("here"),
        "config": Path("x.toml"),
    }
    for words in (
        ["run", "--until-idle"],
        ["run", "--json"],
        ["run", "--search", "x"],
        ["run", "--help"],
        ["status"],
        [],
    ):
        assert quick.running(words) is None
