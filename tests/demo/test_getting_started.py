"""The first steps, taken as the page says them: its commands and its Python run, and do what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

PAGE = (Path(__file__).parents[2] / "docs" / "getting-started.md").read_text(encoding="utf-8")
DEADLINE = 180.0


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def sh(folder: Path, script: str, *, code: int = 0) -> str:
    """Run a script as a newcomer would, in an activated environment, with nobody's own home."""
    scripts = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    env.pop("FABRIC_DESKTOP_HOME", None)
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def block_with(words: str) -> str:
    (found,) = [block for block in blocks("sh") if words in block]
    return found


def rows(folder: Path, table: str) -> int:
    return int(DeltaTable(folder / ".demo" / ".local" / "dev" / table).to_pyarrow_dataset().count_rows())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    sh(folder, "fdagent demo")
    return folder


@pytest.mark.process
@pytest.mark.long
def test_a_second_demo_adds_nothing_and_says_so(home: Path) -> None:
    assert "Nothing was new" in sh(home, "fdagent demo")


@pytest.mark.process
def test_the_python_of_the_page_runs_on_the_demo(home: Path) -> None:
    (script,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=home, capture_output=True, text=True, timeout=DEADLINE, check=True
    )
    assert "diverted" in done.stdout
    assert "run_key" in done.stdout


@pytest.mark.process
def test_the_folders_of_the_page_are_there(home: Path) -> None:
    for place in ("landing", "entities/silver/flights.toml", ".local/dev/LH_Gold/Tables/on_time_by_carrier_day"):
        assert (home / ".demo" / place).exists()
    for table in ("run_log", "check_log", "quarantine_silver_flights", "quarantine_silver_airports"):
        assert table in PAGE
        assert rows(home, f"LH_Meta/Tables/{table}") > 0


@pytest.mark.process
def test_a_changed_rule_changes_the_figure_once_it_is_promoted(home: Path) -> None:
    sql = home / ".demo" / "entities" / "gold" / "on_time_by_carrier_day.sql"
    gold = home / ".demo" / ".local" / "dev" / "LH_Gold" / "Tables" / "on_time_by_carrier_day"
    before = sum(DeltaTable(gold).to_pyarrow_table()["on_time"].to_pylist())
    text = sql.read_text(encoding="utf-8")
    assert text.count("< 15") == 2
    sql.write_text(text.replace("< 15", "< 5"), encoding="utf-8")
    steps = block_with("fdagent promote dev").replace("promote dev ", "promote dev --yes ")
    script, last = steps.rsplit("fdagent job <id>", 1)
    said = sh(home, script)
    job = re.search(r"Queued (\w+)", said)
    assert job, said
    assert "on_time_by_carrier_day" in sh(home, f"cd .demo\nfdagent job {job[1]} {last}")
    assert sum(DeltaTable(gold).to_pyarrow_table()["on_time"].to_pylist()) < before


@pytest.mark.process
def test_a_slip_in_a_key_is_named_and_nothing_is_promoted(home: Path) -> None:
    entity = home / ".demo" / "entities" / "gold" / "fleet_by_carrier.toml"
    text = entity.read_text(encoding="utf-8")
    entity.write_text(text.replace("[transform]", "[tranform]"), encoding="utf-8")
    try:
        said = sh(home, "cd .demo\nfdagent promote dev --yes", code=2)
    finally:
        entity.write_text(text, encoding="utf-8")
    assert "entities/gold/fleet_by_carrier.toml" in said
    assert "did you mean `transform`" in said


@pytest.mark.process
def test_another_day_adds_its_row_everywhere_and_a_bad_one_goes_to_quarantine(home: Path) -> None:
    flights, kept = rows(home, "LH_Silver/Tables/flights"), rows(home, "LH_Meta/Tables/quarantine_silver_flights")
    deliver = block_with("flights_2013-01-22.csv")
    assert "1 read, 1 inserted" in sh(home, deliver)
    assert rows(home, "LH_Silver/Tables/flights") == flights + 1
    bad = deliver.replace("2013-01-22", "2013-01-23").replace("2013,1,22,517,515,2,", "2013,1,23,517,515,two,")
    sh(home, bad)
    assert rows(home, "LH_Silver/Tables/flights") == flights + 1
    quarantine = DeltaTable(home / ".demo" / ".local" / "dev" / "LH_Meta" / "Tables" / "quarantine_silver_flights")
    reasons = quarantine.to_pyarrow_table()["reason"].to_pylist()
    assert len(reasons) == kept + 1
    assert "departure_delay_minutes: 'two' is not an integer" in reasons
