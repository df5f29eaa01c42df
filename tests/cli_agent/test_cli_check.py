"""What an agent relies on, looked at before it starts: each line fine, worth knowing, or in the way with what to do."""

import errno
import shutil
import sqlite3
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes import FakeClock, FakeIds

from fdagent.errors import DiskFull
from fdagent.probe import machine
from fdagent.probe.check import control
from fdagent.probe.findings import Level
from fdagent.probe.home import FULL_BYTES, LOW_BYTES, home
from fdagent.queue.db import NAME
from fdagent.stores.memory import MemoryStore

CANARY = "c4n4ry-value-of-a-secret"
GUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
posix = pytest.mark.skipif(sys.platform == "win32", reason="rights as POSIX has them")


@pytest.fixture
def toml(desk):
    """Writes an agent.toml beside the project; the words that name it."""

    def write(text="", *, agent=""):
        file = desk.project.parent / "agent.toml"
        file.write_text(f'[agent]\nproject = "project"\nenvironments = ["dev"]\n{agent}\n{text}', encoding="utf-8")
        return ("check", "--config", str(file), "--json")

    return write


def lines(said, what=""):
    """(level, sentence, fix) of the lines about something."""
    found = [(f["level"], f["sentence"], f["fix"]) for f in said.json["findings"] if f["what"] == what]
    assert found, [f["what"] for f in said.json["findings"]]
    return found


def line(said, what):
    [found] = lines(said, what)
    return found


# The whole


def test_a_project_that_is_promoted_on_a_sound_machine_passes(desk):
    said = desk("check")
    assert said.code == 0
    assert said.err == ""
    assert "\n0 errors, " in said.out
    for what in (
        "agent.toml",
        "project",
        "promoted dev",
        "control folder dev",
        "Python",
        "SQLite",
        "deltalake",
        "duckdb",
    ):
        assert f"ok      {what}: " in said.out, what


def test_looking_leaves_nothing_behind(desk):
    before = sorted(path for path in desk.project.rglob("*") if ".locks" not in path.parts)
    assert desk("check").code == 0
    assert sorted(path for path in desk.project.rglob("*") if ".locks" not in path.parts) == before
    assert not desk.home.exists()


def test_json_has_each_line_the_counts_and_the_verdict(desk):
    answer = desk("check", "--json").json
    assert set(answer) == {"ok", "counts", "findings"}
    assert answer["ok"] is True
    assert sum(answer["counts"].values()) == len(answer["findings"])
    assert all(set(one) == {"level", "what", "sentence", "fix"} for one in answer["findings"])
    assert all(one["fix"] for one in answer["findings"] if one["level"] != "ok")


def test_no_library_of_tables_is_loaded_to_name_its_version():
    code = "import sys; import fdagent.probe.check as c; c.machine.tools(); print(sorted(sys.modules))"
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"duckdb", "deltalake", "pyarrow"} & set(answer.stdout.replace("'", "").strip("[]\n").split(", "))


# agent.toml and the project


def test_an_agent_toml_in_order_is_said_to_be(desk, toml):
    said = desk(*toml())
    assert said.code == 0
    assert line(said, "agent.toml")[0] == "ok"
    assert line(said, "agent.toml and project")[0] == "ok"


def test_every_problem_of_agent_toml_is_a_line_and_the_machine_is_looked_at_all_the_same(desk, toml):
    said = desk(*toml(agent='concurency = 1\nstatus_seconds = 0\npassword = "x"'))
    assert said.code == 1
    found = lines(said, "agent.toml")
    assert len(found) == 3
    assert any("did you mean `concurrency`" in sentence for _, sentence, _ in found)
    assert all(level == "error" for level, _, _ in found)
    assert line(said, "Python")[0] == "ok"


def test_an_agent_toml_that_is_not_there_is_a_line(desk):
    said = desk("check", "--config", "nowhere.toml", "--json")
    assert said.code == 1
    assert "no such file" in line(said, "agent.toml")[1]


def test_every_problem_of_the_project_is_a_line(desk):
    for layer, table in (("silver", "orders"), ("gold", "revenue_by_customer")):
        file = desk.project / "entities" / layer / f"{table}.toml"
        file.write_text(file.read_text().replace("[load]", "[lod]"))
    said = desk("check", "--json")
    assert said.code == 1
    assert {sentence.split(",")[0] for _, sentence, _ in lines(said, "project")} >= {
        "entities/silver/orders.toml",
        "entities/gold/revenue_by_customer.toml",
    }
    assert line(said, "home")[0] == "ok"


def test_outside_a_project_the_machine_is_looked_at(desk, monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    said = desk("check", "--json")
    assert said.code == 1
    assert "No metadata project" in line(said, "project")[1]
    assert line(said, "SQLite")[0] == "ok"


def test_an_environment_that_the_project_does_not_have_is_an_error(desk, toml):
    words = toml()
    file = Path(words[2])
    file.write_text(file.read_text().replace('["dev"]', '["dev", "prd"]'))
    said = desk(*words)
    assert said.code == 1
    assert "prd" in line(said, "agent.toml and project")[1]
    assert line(said, "promoted dev")[0] == "ok"


def test_a_schedule_for_what_the_project_does_not_have_is_an_error(desk, toml):
    said = desk(*toml('[[schedule]]\nid = "n"\nenv = "dev"\nentities = ["silver.nope"]\nevery_minutes = 5\n'))
    assert "silver.nope" in line(said, "agent.toml and project")[1]


def test_an_environment_in_fabric_says_that_this_version_does_not_run_it(desk):
    lakehouses = "".join(f'{name} = "{GUID}"\n' for name in ("LH_Bronze", "LH_Silver", "LH_Gold", "LH_Meta"))
    with (desk.project / "environments.toml").open("a") as file:
        file.write(f'[prod]\ntarget = "fabric"\nworkspace = "{GUID}"\nvars = {{ landing = "landing" }}\n')
        file.write(f"[prod.lakehouses]\n{lakehouses}")
    text = '[agent]\nproject = "project"\nenvironments = ["prod"]\n[identity]\nkind = "user"\n'
    file = desk.project.parent / "agent.toml"
    file.write_text(text)
    said = desk("check", "--config", str(file), "--json")
    assert said.code == 1
    level, sentence, fix = line(said, "promoted prod")
    assert (level, "can't run" in sentence, bool(fix)) == ("error", True, True)


# What is promoted, and the control folder


def test_before_anything_is_promoted_that_is_an_error_and_nothing_is_made(bare):
    said = bare("check", "--json")
    assert said.code == 1
    level, sentence, fix = line(said, "promoted dev")
    assert (level, sentence) == ("error", "Nothing was promoted to dev yet.")
    assert "fdagent promote dev" in fix
    assert not (bare.project / ".local").exists()


def test_another_version_than_the_promoted_one_is_an_error_and_its_folder_is_probed(desk):
    with (desk.project / "layers.toml").open("a") as file:
        file.write('[platinum]\nrank = 4\nlakehouse = "LH_Platinum"\n')
    said = desk("check", "--json")
    assert said.code == 1
    assert "check out the promoted version, or promote" in line(said, "promoted dev")[1]
    assert [level for level, _, _ in lines(said, "control folder dev")] == ["ok", "ok"]


def test_a_release_that_can_not_be_read_is_an_error(desk):
    (desk.control / "release.json").write_text("{")
    said = desk("check", "--json")
    assert said.code == 1
    assert "release.json" in line(said, "promoted dev")[1]


def test_a_control_folder_on_a_network_drive_is_an_error(desk, monkeypatch):
    monkeypatch.setattr("fdagent.stores.local.network_drive", lambda _folder: "nfs4")
    said = desk("check", "--json")
    assert "network drive (nfs4)" in line(said, "promoted dev")[1]


@pytest.mark.parametrize(("ahead", "levels"), [(0, ["ok", "ok"]), (30, ["ok", "warning"]), (-300, ["ok", "error"])])
def test_a_store_whose_clock_is_off_is_shown_and_beyond_four_minutes_an_error(ahead, levels):
    reader = FakeClock()
    store = MemoryStore(FakeClock(reader.now + ahead), reader=reader)
    assert [finding.level.value for finding in control("control", store, FakeIds())] == levels


def test_a_store_that_keeps_less_than_its_conditions_is_an_error_of_its_folder(desk, monkeypatch):
    monkeypatch.setattr("fdagent.stores.local.LocalStore._judge", lambda *_: None)
    said = desk("check", "--json")
    assert said.code == 1
    sentences = [sentence for level, sentence, _ in lines(said, "control folder dev") if level == "error"]
    assert "A second create of one record was accepted." in sentences


# The machine


@pytest.mark.parametrize(
    ("version", "level"), [((3, 10, 9), "error"), ((3, 11, 0), "ok"), ((3, 13, 5), "ok"), ((3, 14, 0), "warning")]
)
def test_pythons_that_were_not_tested_are_named(version, level):
    found = machine.python(version)
    assert found.level.value == level
    assert (found.fix == "") == (level == "ok")


@pytest.mark.parametrize(
    ("version", "level", "bug"),
    [
        ((3, 36, 0), "error", False),
        ((3, 37, 0), "ok", True),
        ((3, 44, 5), "ok", True),
        ((3, 44, 6), "ok", False),
        ((3, 50, 6), "ok", True),
        ((3, 50, 7), "ok", False),
        ((3, 51, 2), "ok", True),
        ((3, 51, 3), "ok", False),
        ((3, 53, 0), "ok", False),
    ],
)
def test_sqlite_is_told_with_its_wal_reset_bug_where_it_has_it(version, level, bug):
    found = machine.sqlite(version)
    assert found.level.value == level
    assert ("WAL-reset bug" in found.sentence) is bug


def test_a_library_that_is_not_installed_is_an_error():
    assert machine.library("deltalake").sentence == f"{metadata.version('deltalake')}."
    assert machine.library("no-such-library-of-tables").level is Level.ERROR


def test_without_a_tz_database_no_zone_can_be_looked_up():
    found = machine.time_zone(None, {}, FakeClock(), known=frozenset())
    assert (found[0].what, found[0].level) == ("tz data", Level.ERROR)
    assert "tzdata" in found[0].fix


def test_the_zone_that_is_named_is_said(desk, toml):
    assert "Europe/Berlin" in line(desk(*toml(agent='time_zone = "Europe/Berlin"')), "time zone")[1]


@pytest.mark.parametrize(
    ("zone", "level"), [("Europe/Berln", "warning"), (":Europe/Berlin", "ok"), ("CET-1CEST", "ok")]
)
def test_a_zone_that_the_system_would_silently_take_for_utc_is_a_warning(zone, level):
    [found] = machine.time_zone(None, {"TZ": zone}, FakeClock())
    assert found.level.value == level


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux keeps its zone")
def test_a_machine_that_names_no_zone_is_a_warning(tmp_path):
    [found] = machine.time_zone(None, {}, FakeClock(), localtime=tmp_path / "localtime")
    assert found.level is Level.WARNING
    assert "time_zone" in found.fix


# The home


def test_a_home_that_is_not_there_yet_is_fine_where_it_can_be_made(desk):
    assert "will be made" in line(desk("check", "--json"), "home")[1]


def test_a_home_that_is_a_file_is_an_error(desk):
    desk.home.write_text("")
    said = desk("check", "--json")
    assert said.code == 1
    assert "is a file" in line(said, "home")[1]


@posix
def test_a_home_that_this_user_may_not_write_is_an_error(desk, monkeypatch):
    desk.home.mkdir()
    monkeypatch.setattr("os.access", lambda *_: False)
    level, _, fix = line(desk("check", "--json"), "home")
    assert (level, "the agent's own user" in fix) == ("error", True)


def test_a_home_that_may_not_be_looked_at_is_an_error(tmp_path, monkeypatch):
    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.exists", denied)
    [found] = home(tmp_path, FakeClock(), FakeIds())
    assert found.level is Level.ERROR
    assert "permission denied" in found.sentence


def test_a_home_on_a_network_drive_is_an_error(desk, monkeypatch):
    monkeypatch.setattr("fdagent.probe.home.network_drive", lambda _folder: "cifs")
    assert line(desk("check", "--json"), "drive of the home")[0] == "error"


@pytest.mark.parametrize(
    ("free", "level"),
    [(LOW_BYTES, "ok"), (LOW_BYTES - 1, "warning"), (FULL_BYTES, "warning"), (FULL_BYTES - 1, "error")],
)
def test_room_that_is_running_out_is_told(desk, monkeypatch, free, level):
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=free))
    said = desk("check", "--json")
    assert line(said, "disk of the home")[0] == level
    assert line(said, "disk of the project")[0] == level


def test_a_queue_is_read_whole_and_its_jobs_are_counted(desk):
    desk.ended()
    desk.job("job2")
    assert line(desk("check", "--json"), "queue")[1].endswith("is whole: 1 queued, 1 failed.")


def test_a_queue_that_is_no_sqlite_file_is_an_error_and_is_left_as_it_is(desk):
    desk.home.mkdir()
    (desk.home / NAME).write_bytes(b"not a queue" * 500)
    said = desk("check", "--json")
    assert said.code == 1
    level, _, fix = line(said, "queue")
    assert level == "error"
    assert fix
    assert (desk.home / NAME).read_bytes() == b"not a queue" * 500


def test_a_queue_with_a_torn_page_is_an_error(desk):
    for n in range(30):
        desk.job(f"job{n}", env="x" * 4000)
    file = desk.home / NAME
    connection = sqlite3.connect(file)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    body = bytearray(file.read_bytes())
    body[4096 * 10 : 4096 * 14] = b"\xff" * 4096 * 4
    file.write_bytes(body)
    said = desk("check", "--json")
    assert said.code == 1
    assert line(said, "queue")[0] == "error"


def test_a_queue_without_content_is_an_error_and_no_new_one_is_made_of_it(desk):
    desk.home.mkdir()
    (desk.home / NAME).touch()
    assert line(desk("check", "--json"), "queue")[0] == "error"
    assert (desk.home / NAME).stat().st_size == 0


def test_a_row_that_no_job_may_be_is_an_error(desk):
    desk.job()
    connection = sqlite3.connect(desk.home / NAME)
    connection.execute("update job set state = 'asleep'")
    connection.execute("update job set state = 'queued', entities = 'no json'")
    connection.commit()
    connection.close()
    assert "job1" in line(desk("check", "--json"), "queue")[1]


def test_a_full_disk_under_the_queue_is_a_line(desk, monkeypatch):
    desk.job()

    def full(_self):
        raise DiskFull("No room is left.", fix="Free some space.")

    monkeypatch.setattr("fdagent.queue.db.Database.check", full)
    assert line(desk("check", "--json"), "queue")[:2] == ("error", "No room is left.")


# Secrets

SIGNED_IN = f"""
[identity]
kind = "client_secret"
tenant_id = "{GUID}"
client_id = "{GUID}"
client_secret_env = "FD_SECRET"
[alerts]
teams_webhook_env = "FD_HOOK"
[[incidents.route]]
name = "on-call"
webhook_env = "FD_ROUTE"
"""


def test_variables_that_are_named_and_not_set_are_told_and_sign_in_is_in_the_way(desk, toml):
    said = desk(*toml(SIGNED_IN))
    assert said.code == 1
    assert line(said, "variable FD_SECRET")[0] == "error"
    assert line(said, "variable FD_HOOK")[0] == "warning"
    level, sentence, fix = line(said, "variable FD_ROUTE")
    assert level == "warning"
    assert "[[incidents.route]] on-call webhook_env" in sentence
    assert "agent.env" in fix


def test_variables_that_are_set_are_fine_and_no_value_is_ever_printed(desk, toml, monkeypatch):
    for name in ("FD_SECRET", "FD_HOOK", "FD_ROUTE"):
        monkeypatch.setenv(name, f"https://host/{CANARY}?sig={CANARY}")
    words = toml(SIGNED_IN)
    said = desk(*words)
    assert said.code == 0
    assert {line(said, f"variable {name}")[0] for name in ("FD_SECRET", "FD_HOOK", "FD_ROUTE")} == {"ok"}
    assert CANARY not in said.out + said.err
    assert CANARY not in desk(*words[:-1]).out


def test_a_blank_variable_is_not_set(desk, toml, monkeypatch):
    monkeypatch.setenv("FD_SECRET", "  ")
    assert line(desk(*toml(SIGNED_IN)), "variable FD_SECRET")[0] == "error"


def test_what_agent_env_sets_for_the_service_counts_and_its_values_stay_unread(desk, toml):
    words = toml(SIGNED_IN)
    file = desk.project.parent / "agent.env"
    file.write_text(f"# FD_ROUTE=x\nFD_SECRET={CANARY}\nexport FD_HOOK='{CANARY}'\nFD_ROUTE=\n")
    file.chmod(0o600)
    said = desk(*words)
    assert said.code == 0
    assert line(said, "variable FD_SECRET")[0] == line(said, "variable FD_HOOK")[0] == "ok"
    assert line(said, "variable FD_ROUTE")[0] == "warning"
    assert line(said, "agent.env")[0] == "ok"
    assert CANARY not in said.out + said.err


@posix
@pytest.mark.parametrize(("mode", "level"), [(0o600, "ok"), (0o640, "ok"), (0o644, "warning"), (0o602, "warning")])
def test_files_with_secrets_that_everybody_may_read_are_a_warning(desk, toml, mode, level):
    words = toml(
        f'[identity]\nkind = "certificate"\ntenant_id = "{GUID}"\nclient_id = "{GUID}"\ncertificate_path = "agent.pem"\n'
    )
    for name in ("agent.env", "agent.pem"):
        (desk.project.parent / name).write_text(f"X={CANARY}\n")
        (desk.project.parent / name).chmod(mode)
    said = desk(*words)
    assert said.code == 0
    for what in ("agent.env", "certificate"):
        found, _, fix = line(said, what)
        assert found == level
        assert ("chmod" in fix) is (level == "warning")
    assert CANARY not in said.out


def test_a_certificate_that_is_not_there_is_an_error(desk, toml):
    words = toml(
        f'[identity]\nkind = "certificate"\ntenant_id = "{GUID}"\nclient_id = "{GUID}"\ncertificate_path = "agent.pem"\n'
    )
    said = desk(*words)
    assert said.code == 1
    level, sentence, _ = line(said, "certificate")
    assert level == "error"
    assert "agent.pem can't be read: no such file or directory." in sentence
