"""The shipped three weeks: what the tables hold is what the first steps promise, once and not twice."""

import re
import shutil
from pathlib import Path

import make_data
import nyc_expected
import pytest
from demo_run import Demo

from fdagent.demo.unpack import unpack
from models.run import RunRow, RunStatus

PAGE = Path(__file__).parents[2] / "docs" / "getting-started.md"
PROMISED = re.compile(r"^\| ((?:`\w+\.\w+`(?:, )?)+) \| ([\d, ]+) \|", re.MULTILINE)
NEXT_DAY = "2013-01-22"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, dict[str, RunRow]]:
    folder = tmp_path_factory.mktemp("demo")
    unpack(folder)
    demo = Demo(folder)
    return demo, demo.run()


def promised() -> dict[str, int]:
    found: dict[str, int] = {}
    for names, counts in PROMISED.findall(PAGE.read_text(encoding="utf-8")):
        numbers = [int(count.replace(",", "")) for count in counts.split(", ")]
        found |= zip(re.findall(r"`(.+?)`", names), numbers, strict=True)
    return found


def test_every_table_succeeds_and_holds_what_the_files_say(ran: tuple[Demo, dict[str, RunRow]]) -> None:
    demo, rows = ran
    assert {name: row.error for name, row in rows.items() if row.status is not RunStatus.SUCCEEDED} == {}
    assert demo.counts() == nyc_expected.figures(demo.landing).rows


def test_the_row_counts_in_the_first_steps_are_true(ran: tuple[Demo, dict[str, RunRow]]) -> None:
    assert promised() == ran[0].counts()


def test_warnings_and_quarantine_are_those_of_the_first_steps(ran: tuple[Demo, dict[str, RunRow]]) -> None:
    demo, rows = ran
    found = {
        (name, check.check): check.rows
        for name, row in rows.items()
        for check in row.checks
        if check.rows and check.severity == "warn"
    }
    assert found == {
        ("silver.flights", "not_null(tail_number)"): 64,
        ("silver.planes", "not_null(built)"): 70,
        ("silver.weather", "not_null(pressure_millibars)"): 139,
        ("gold.on_time_by_destination", "not_null(airport_name)"): 4,
    }
    assert {name: row.rows_quarantined for name, row in rows.items() if row.rows_quarantined} == {
        "silver.flights": 9,
        "silver.airports": 5,
    }
    assert demo.quarantined("silver.flights") == 9


def test_a_second_run_and_a_second_unpacking_add_nothing(tmp_path: Path) -> None:
    unpack(tmp_path)
    demo = Demo(tmp_path)
    demo.run()
    before = {entity.name: demo.table(entity.name).version() for entity in demo.entities}
    shutil.rmtree(tmp_path / "landing" / "flights")
    unpack(tmp_path)
    again = demo.run()
    assert {row.status for row in again.values()} == {RunStatus.NO_CHANGE}
    assert {entity.name: demo.table(entity.name).version() for entity in demo.entities} == before


def test_one_more_day_adds_that_day(tmp_path: Path) -> None:
    unpack(tmp_path)
    demo = Demo(tmp_path)
    demo.run()
    content = make_data.days("flights")[NEXT_DAY]
    (demo.landing / "flights" / f"flights_{NEXT_DAY}.csv").write_bytes(content)
    rows = demo.run()
    new = content.count(b"\n") - 1
    assert rows["bronze.flights"].rows_inserted == new
    assert rows["silver.flights"].rows_inserted + rows["silver.flights"].rows_quarantined == new
    assert rows["bronze.weather"].status is RunStatus.NO_CHANGE
    days = {row["flight_date"].isoformat() for row in demo.rows("gold.on_time_by_carrier_day", "flight_date")}
    assert max(days) == NEXT_DAY
    assert len(days) == 22
