"""Words that mean nothing, ids that name nothing, and what nobody promoted: exit codes 2, 3 and 4, and nothing is changed."""

import io
import sys

import pytest


class Terminal(io.StringIO):
    """A keyboard with some keys pressed already."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "No such command 'nothing'."),
        (["status", "--nothing"], "No such option: --nothing"),
        (["enqueue"], "Missing argument 'env'."),
        (["job"], "Missing argument 'ID'."),
        (["promote"], "Missing argument 'env'."),
        (["enqueue", "dev", "--backfill", "half"], "--backfill 'half' is not known.\nUse --backfill full."),
        (["init", "layers.toml"], "A project can't be written to layers.toml"),
        (["init", "."], "is not empty; nothing was written."),
        (["status", "--project", "entities"], "entities is not a metadata project: it has no layers.toml."),
        (["status", "--project", "no/where"], "is not a metadata project"),
        (["diagram", "job", "--format", "gif"], "Invalid value"),
        (["demo", "--folder", "entities"], "is not empty"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_a_sentence_and_2(person, words, says):
    said = person.changes_nothing(lambda: person(*words, code=2))
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert says in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["promote", "prod"], "There is no environment `prod`"),
        (["enqueue", "dve"], "There is no environment `dve` in"),
        (["enqueue", "dve"], "Did you mean `dev`?"),
        (["enqueue", "dev", "silver.order"], "No entity of this project is named or matched by `silver.order`."),
        (["enqueue", "dev", "silver.order"], "Did you mean `silver.orders`?"),
        (["enqueue", "dev", "platinum.*"], "`platinum.*`"),
        (["job", "x"], "No job's id begins with 'x'."),
        (["job", ""], "No job's id begins with ''."),
        (["diagram", "nothing"], "There is no chart 'nothing'."),
    ],
    ids=str,
)
def test_what_is_not_there_is_a_sentence_and_3(person, words, says):
    said = person.changes_nothing(lambda: person(*words, code=3))
    assert says in said.err


def test_an_id_that_two_jobs_begin_with_is_refused_with_their_number(person):
    ids = [person("enqueue", "dev", "--json").json["id"] for _ in range(17)]
    first = next(letter for letter in "0123456789abcdef" if sum(job.startswith(letter) for job in ids) > 1)
    number = sum(job.startswith(first) for job in ids)
    assert f"{number} jobs' ids begin with '{first}'." in person("job", first, code=3).err


@pytest.mark.parametrize(
    "words", [["status"], ["enqueue", "dev"], ["run", "--until-idle"], ["promote", "dev"], ["job", "x"]]
)
def test_outside_any_project_every_command_says_how_to_get_into_one(bare, words):
    said = bare.changes_nothing(lambda: bare(*words, code=2))
    assert "No metadata project is in" in said.err
    assert "fdagent init" in said.err


def test_what_was_never_promoted_is_not_even_queued(bare):
    bare("init", ".")
    said = bare.changes_nothing(lambda: bare("enqueue", "dev", code=4))
    assert said.err == "Error: Nothing was promoted to dev yet.\nPromote this project: `fdagent promote dev`.\n"


def test_a_changed_project_is_not_queued_before_it_is_promoted(person):
    person.edit("entities/silver/orders.toml", '"NEW", ', "")
    said = person.changes_nothing(lambda: person("enqueue", "dev", code=4))
    assert "dev has metadata " in said.err
    assert "this project is " in said.err
    assert "`fdagent promote dev` shows what would change and asks." in said.err
    person("promote", "dev", "--yes")
    person("enqueue", "dev")


def test_a_project_that_changed_after_it_was_queued_fails_the_job_and_writes_no_table(person):
    person("enqueue", "dev")
    person.edit("entities/silver/orders.toml", '"NEW", ', "")
    said = person("run", "--until-idle", code=1)
    assert "check out the promoted version, or promote" in said.out
    assert person.last_job()["state"] == "failed"
    assert not person.table("LH_Bronze", "orders").exists()


def test_going_back_to_the_older_version_is_a_promotion_too(person):
    before = person("promote", "dev").out
    person.edit("entities/silver/orders.toml", '"NEW", ', "")
    person("promote", "dev", "--yes")
    person.edit("entities/silver/orders.toml", "accepted = { status = [", 'accepted = { status = ["NEW", ')
    person("enqueue", "dev", code=4)
    assert "dev goes from metadata" in person("promote", "dev", "--yes").out
    assert person("promote", "dev").out == before
    person("enqueue", "dev")
    person("run", "--until-idle")


def test_nobody_at_the_keyboard_promotes_nothing(bare, monkeypatch):
    bare("init", ".")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    said = bare.changes_nothing(lambda: bare("promote", "dev", code=2))
    assert "The project has 3 entities in 3 layers." in said.out
    assert said.err == "Error: Nobody is there to ask whether to promote.\nAdd --yes.\n"


@pytest.mark.parametrize(("keys", "code"), [("n\n", 1), ("\n", 1), ("", 130), ("what\n" * 9, 1)])
def test_whoever_does_not_say_yes_promotes_nothing(bare, monkeypatch, keys, code):
    bare("init", ".")
    monkeypatch.setattr(sys, "stdin", Terminal(keys))
    bare.changes_nothing(lambda: bare("promote", "dev", code=code))
    bare("enqueue", "dev", code=4)


def test_an_answer_that_is_neither_yes_nor_no_is_said_and_asked_again(bare, monkeypatch):
    bare("init", ".")
    monkeypatch.setattr(sys, "stdin", Terminal("what\n\x1b[31m\nYES\n"))
    out = bare("promote", "dev").out
    assert "'what' is neither yes nor no: answer y or n.\n" in out
    assert "\x1b" not in out
    assert out.count("Promote to dev? [y/N]: ") == 3
    assert "from now on" in out


def test_a_yes_promotes(bare, monkeypatch):
    bare("init", ".")
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert "from now on" in bare("promote", "dev").out
    bare("enqueue", "dev")


def test_a_release_record_that_is_no_json_stops_promotion_and_queueing_with_what_to_do(person):
    person.write(".local/dev/_control/release.json", "{")
    for words in (["promote", "dev", "--yes"], ["enqueue", "dev"]):
        said = person.changes_nothing(lambda words=words: person(*words, code=2))
        assert "release.json" in said.err
        assert "Mend or remove it, then promote." in said.err
