"""Whatever goes wrong in a command, a person reads a sentence, and a program JSON."""

import errno

import pytest

from fdagent.daemon.home import taken


def raising(err):
    def fails(*_args, **_more):
        raise err

    return fails


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("err", "words"),
    [
        (OSError(errno.EIO, "Input/output error", "/srv/x"), "The system says input/output error: /srv/x."),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/srv/x"), "no such file or directory: /srv/x."),
        (OSError(errno.EIO, "Input/output error"), "The system says input/output error."),
        (KeyError("a secret"), "an error that nobody foresaw: KeyError at test_cli_unforeseen.py"),
        (AssertionError("a secret"), "an error that nobody foresaw: AssertionError"),
    ],
)
def test_an_error_that_no_command_expects_is_a_sentence_without_its_values(desk, monkeypatch, err, words, as_json):
    monkeypatch.setattr("fdagent.cli.agents._look", raising(err))
    said = desk("agents", "dev", *(["--json"] if as_json else []))
    assert said.code == 1
    text = said.json["error"] if as_json else said.err
    assert words in text
    assert "secret" not in said.out + said.err


def test_a_demo_where_no_folder_can_be_made_is_a_sentence(desk):
    said = desk("demo", "--folder", str(desk.project / "layers.toml" / "x"))
    assert said.code == 2
    assert "layers.toml" in said.err


def test_who_runs_a_queued_job_is_said_as_it_is(desk):
    assert "Run it with `fdagent run --until-idle`." in desk("enqueue", "dev").out
    with taken(desk.home, desk.clock):
        assert "The agent that runs here takes it." in desk("enqueue", "dev").out


def test_an_environment_that_is_broken_is_named_beside_what_was_not_found(desk):
    desk.file("agents", "")
    said = desk("why", "nope")
    assert said.code == 3
    assert "not everything could be looked through, in dev: " in said.err
