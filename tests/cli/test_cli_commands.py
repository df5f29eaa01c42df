"""Each command as it is meant to go: what it prints, its JSON, and its exit code."""

import json
import re
from pathlib import Path

import pytest

from fdagent.cli.main import COMMANDS, commands, run
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from models.job import Job, JobState

JOB_KEYS = {
    "id", "state", "env", "entities", "cascade", "backfill", "source", "run_key", "attempt", "max_attempts", "worker",
    "stop", "reason", "error", "category", "not_before", "deadline", "created_at", "started_at", "updated_at",
    "finished_at", "tables",
}  # fmt: skip


def test_init_promote_enqueue_run_status_and_job_go_together(bare):
    said = bare("init", "orders")
    assert "cd orders && fdagent promote dev && fdagent enqueue dev && fdagent run --until-idle" in said.out
    project = ("--project", str(bare.project / "orders"))
    said = bare("promote", "dev", "--yes", *project)
    assert "dev goes from nothing to metadata" in said.out
    assert "The project has 3 entities in 3 layers." in said.out
    assert "nothing to promote" in bare("promote", "dev", *project).out

    said = bare("enqueue", "dev", *project)
    job = re.match(r"Queued (\w{12}): 3 tables of dev\.", said.out)[1]
    said = bare("status", *project)
    assert "1 queued" in said.out
    said = bare("run", "--until-idle", *project)
    assert [line.split()[:2] for line in said.out.splitlines()[1:4]] == [
        ["bronze.orders", "succeeded"],
        ["silver.orders", "succeeded"],
        ["gold.revenue_by_customer", "succeeded"],
    ]
    assert "5 read, 3 inserted, 1 quarantined" in said.out
    assert said.out.endswith(f"job {job} succeeded.\nNothing is left to do.\n")
    assert "1 succeeded" in bare("status", *project).out
    said = bare("job", job[:3], *project)
    assert f"Job {job}: succeeded" in said.out
    assert re.search(r"silver\.orders +succeeded +5 +3 +1", said.out)

    said = bare("run", "--until-idle", *project)
    assert said.out == "Nothing was waiting.\n"


def test_a_project_is_found_from_a_folder_below_it(person, monkeypatch):
    monkeypatch.chdir(person.project / "entities" / "gold")
    assert f"project {person.project} " in person("status").out


def test_init_in_the_folder_one_stands_in_needs_no_cd(bare):
    assert "  fdagent promote dev && " in bare("init").out
    assert (bare.project / "layers.toml").exists()


def test_the_folder_that_init_names_can_be_pasted_into_a_shell(bare):
    assert "  cd 'my own project' && fdagent promote dev" in bare("init", "my own project").out


def test_enqueue_takes_names_globs_and_what_reads_them(person):
    said = person("enqueue", "dev", "silver.*", "--cascade", "--json").json
    assert set(said) == {"id", "state", "entities"}
    assert said["state"] == "queued"
    assert said["entities"] == ["silver.orders", "gold.revenue_by_customer"]
    assert "1 table of dev" in person("enqueue", "dev", "bronze.orders").out


def test_a_backfill_is_shown_as_one(person):
    job = person("enqueue", "dev", "bronze.orders", "--backfill", "full", "--json").json["id"]
    assert "(backfill)" in person("job", job).out
    assert person("job", job, "--json").json["backfill"] is True


def test_status_and_job_print_json_with_stable_keys(person):
    empty = person("status", "--json").json
    assert (empty["counts"], empty["unfinished"], empty["finished"]) == ({}, [], [])
    person("enqueue", "dev")
    waiting = person("status", "--json").json
    assert waiting["counts"] == {"queued": 1}
    assert set(waiting["unfinished"][0]) >= JOB_KEYS
    person("run", "--until-idle")
    done = person("status", "--json").json
    assert {"agent", "home", "project", "counts", "unfinished", "finished"} <= set(done)
    (job,) = done["finished"]
    assert person("job", job["id"], "--json").json == job
    assert job["state"] == "succeeded"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", job["finished_at"])
    tables = job["tables"]
    assert {name: (at["state"], at["rows"]) for name, at in tables.items()} == {
        "bronze.orders": ("succeeded", 5),
        "silver.orders": ("succeeded", 3),
        "gold.revenue_by_customer": ("succeeded", 2),
    }
    assert all(re.fullmatch(r"[0-9a-f]{32}", at["run_id"]) for at in tables.values())


def test_a_status_makes_nothing(person):
    said = person.changes_nothing(lambda: person("status"))
    assert "The queue is empty. Ask for a run with `fdagent enqueue ENV`." in said.out


def test_a_failed_job_shows_each_tables_error_and_ends_with_1(person):
    person.edit("entities/silver/orders.toml", '"NEW", "PAID", ', "")
    person.edit("entities/silver/orders.toml", 'severity = "warn"', 'severity = "fail"')
    said = person.runs(code=1)
    assert said.out.count("accepted(status) found 2 rows") == 2, "at its table, and at the job's end"
    assert "silver.orders: silver.orders:" not in said.out
    assert "silver.orders failed, so gold.revenue_by_customer was not run" in said.out
    job = person.last_job()
    assert (job["state"], job["category"]) == ("failed", "Data quality")
    assert "accepted(status) found 2 rows" in job["tables"]["silver.orders"]["error"]
    assert "was not run" in job["tables"]["gold.revenue_by_customer"]["error"]
    shown = person("job", job["id"]).out
    assert "accepted(status) found 2 rows" in shown
    assert "was not run" in shown
    assert "accepted(status) found 2 rows" in person("status").out


def test_a_job_whose_last_attempt_was_cut_off_is_told_as_dead_and_ends_with_1(person):
    jobs = Jobs(Database(person.project / ".local/agent"), clock=SystemClock(), ids=SystemIds())
    jobs.enqueue(Job("cut", JobState.QUEUED, "op", "dev", run_key="cut", dedupe_key="cut", max_attempts=1))
    gone = 2**22 + 1  # beyond the largest process id of Linux
    assert jobs.claim(Worker("a/1", SystemProcesses().place(), gone, 1.0)) is not None
    jobs.database.close()
    said = person("run", "--until-idle", code=1)
    assert "job cut dead\n      Its worker ended without finishing it." in said.out
    assert person.last_job()["state"] == "dead"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_that_begins_with_a_sentence(name, capsys):
    assert run(commands([name, "--help"]), [name, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    usage, sentence = [line.strip() for line in out.splitlines() if line.strip()][:2]
    assert usage.startswith("Usage: ")
    assert name in usage
    assert re.match(r"[A-Z][^.]*[a-z]", sentence)


def test_help_names_every_command_wherever_it_stands(capsys):
    for words in (["--help"], ["-h"], ["-h", "status"]):
        assert run(commands(words), words) == 0
        out = capsys.readouterr().out
        assert all(re.search(rf"^│ {name} ", out, re.MULTILINE) for name in COMMANDS)


def test_no_command_at_all_shows_the_help_and_ends_with_2(capsys):
    assert run(commands([]), []) == 2
    assert "Commands" in capsys.readouterr().out


def test_the_demo_is_removed_only_where_it_was_unpacked(person):
    said = person.changes_nothing(lambda: person("demo", "--clean", "--folder", str(person.project)))
    assert "nothing was removed" in said.out
    Path("d").mkdir()
    Path("d/.fdagent-demo").touch()
    person("demo", "--clean", "--folder", "d")
    assert not Path("d").exists()


def test_a_diagram_is_printed_and_written(bare):
    assert "job" in bare("diagram").out.split()
    assert "stateDiagram" in bare("diagram", "job").out
    bare("diagram", "job", "--format", "dot", "--output", "job.dot")
    assert "digraph" in Path("job.dot").read_text()


def test_an_error_in_json_is_one_object(person):
    found = person("job", "nothere", "--json", code=3).json
    assert found == {
        "error": "No job's id begins with 'nothere'.",
        "fix": "`fdagent status` lists the jobs.",
        "exit_code": 3,
    }
    person.write("layers.toml", "format = 1\n[bronze\n")
    found = person("enqueue", "dev", "--json", code=2).json
    assert set(found) == {"error", "fix", "exit_code", "problems"}
    assert json.dumps(found["problems"]).startswith('["layers.toml, line 2')
