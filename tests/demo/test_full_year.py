"""The demo project on the whole year, against figures that the csv module computes from the same files.

The year comes in two deliveries, so that what is incremental in the project has something to add to.
"""

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import make_data
import nyc_expected
import pytest
from demo_run import Demo

from fdagent.demo.unpack import unpack
from models.run import RunRow, RunStatus

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("year")]

FIRST_DELIVERY_ENDS = "2013-06-30"
GOLD = {
    "on_time_by_carrier_day": (
        ("flight_date", "carrier"),
        ("carrier_name", "flights", "departed", "cancelled", "diverted", "on_time", "arrival_delay_minutes"),
    ),
    "on_time_by_destination": (
        ("destination",),
        ("airport_name", "flights", "arrived", "on_time", "arrival_delay_minutes"),
    ),
    "departures_by_weather": (("airport", "weather"), ("flights", "cancelled", "departure_delay_minutes")),
    "fleet_by_carrier": (("carrier",), ("departed", "aircraft", "departed_with_unknown_aircraft", "seats_flown")),
}
"""Gold table -> its key, and the columns that are whole numbers or text, which must be equal."""


@dataclass
class Year:
    demo: Demo
    expected: nyc_expected.Figures
    first: dict[str, RunRow]
    second: dict[str, RunRow]
    third: dict[str, RunRow]
    flights_in: tuple[int, int]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Year:
    folder = tmp_path_factory.mktemp("year")
    unpack(folder)
    landing = folder / "landing"
    shutil.rmtree(landing)
    files = dict(make_data.landing(None))
    later = {name for name in files if name.rpartition("_")[2][:10] > FIRST_DELIVERY_ENDS and "_2013-" in name}
    demo = Demo(folder)
    deliver(landing, {name: content for name, content in files.items() if name not in later})
    first = demo.run()
    deliver(landing, {name: files[name] for name in later})
    second, third = demo.run(), demo.run()
    lines = Counter(
        name in later
        for name, content in files.items()
        if name.startswith("flights/")
        for _ in range(content.count(b"\n") - 1)
    )
    return Year(demo, nyc_expected.figures(landing), first, second, third, (lines[False], lines[True]))


def deliver(landing: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (landing / name).parent.mkdir(parents=True, exist_ok=True)
        (landing / name).write_bytes(content)


def test_every_table_has_the_rows_that_are_in_the_files(year: Year) -> None:
    assert year.demo.counts() == year.expected.rows


def test_the_year_is_the_packages_whole_year(year: Year) -> None:
    assert year.expected.rows["bronze.flights"] == 336_776


def test_quarantine_holds_the_rows_that_break_a_rule_each_once(year: Year) -> None:
    found = {name: year.demo.quarantined(f"silver.{name}") for name in year.expected.quarantined}
    assert found == year.expected.quarantined
    assert found["flights"] == 458
    assert found["weather"] == 6


def test_bronze_keeps_every_value_as_its_text(year: Year) -> None:
    columns = ("dep_time", "tailnum", "air_time")
    held = zip(*(year.demo.values("bronze.flights", column) for column in columns), strict=True)
    delivered = (tuple(row[c] for c in columns) for row in nyc_expected.rows(year.demo.landing, "flights"))
    assert Counter(held) == Counter(delivered)


def test_silver_sums_are_those_of_the_files(year: Year) -> None:
    columns = {
        "dep_delay": "departure_delay_minutes",
        "arr_delay": "arrival_delay_minutes",
        "air_time": "air_time_minutes",
        "distance": "distance_miles",
    }
    held = {source: sum(filter(None, year.demo.values("silver.flights", column))) for source, column in columns.items()}
    times = year.demo.table("silver.flights").to_pyarrow_table(columns=["scheduled_at"])["scheduled_at"]
    microseconds = times.cast("int64").to_pylist()
    assert held | {"scheduled_at": sum(microseconds) // 1_000_000} == year.expected.silver_sums
    assert Counter(year.demo.values("silver.flights", "status")) == year.expected.statuses


@pytest.mark.parametrize("name", GOLD)
def test_gold_figures_are_those_of_the_files(year: Year, name: str) -> None:
    keys, columns = GOLD[name]
    rows = year.demo.rows(f"gold.{name}")
    held = {tuple(str(row[key]) for key in keys): tuple(row[column] for column in columns) for row in rows}
    assert held == year.expected.gold[name]


def test_gold_means_and_shares_are_those_of_the_files(year: Year) -> None:
    for row in year.demo.rows("gold.on_time_by_carrier_day"):
        arrived = row["departed"] - row["diverted"]
        total = row["arrival_delay_minutes"]
        mean = pytest.approx(total / arrived) if arrived else None
        assert row["mean_arrival_delay_minutes"] == mean
        assert row["on_time_share"] == pytest.approx(row["on_time"] / row["flights"])


def test_the_second_delivery_reads_only_what_is_new(year: Year) -> None:
    earlier, later = year.flights_in
    assert year.first["bronze.flights"].rows_inserted == earlier
    assert year.second["bronze.flights"].rows_inserted == later
    silver = year.second["silver.flights"]
    assert silver.rows_inserted + silver.rows_quarantined == later
    assert year.first["silver.flights"].rows_quarantined + silver.rows_quarantined == 458


def test_a_run_without_a_delivery_changes_no_table(year: Year) -> None:
    assert {name: row.status for name, row in year.third.items() if row.status is not RunStatus.NO_CHANGE} == {}
    assert {name: row.version_after for name, row in year.third.items()} == {
        name: row.version_after for name, row in year.second.items()
    }
