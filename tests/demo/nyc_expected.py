"""What the demo's tables must hold, computed from the landing files with the csv module alone.

Shares nothing with the project: no SQL, no engine, no types but int and float. The rules are written a second time on
purpose, so that a slip in the project's SQL shows.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

Row = dict[str, str]
CHINA, UNKNOWN = "Asia/Chongqing", "NA"
FLEET_NUMBERS = ("AA", "MQ")


def rows(landing: Path, name: str) -> Iterator[Row]:
    """Every row of a file, or of all the files of a folder in name order."""
    files = sorted((landing / name).glob("*.csv")) if (landing / name).is_dir() else [landing / f"{name}.csv"]
    for file in files:
        with file.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)


def status(flight: Row) -> str:
    if flight["dep_time"] == UNKNOWN:
        return "cancelled"
    if flight["arr_time"] == UNKNOWN:
        return "no arrival"
    return "diverted" if flight["arr_delay"] == UNKNOWN else "arrived"


def date(flight: Row) -> str:
    return f"{flight['year']}-{int(flight['month']):02}-{int(flight['day']):02}"


def weather_words(report: Row | None) -> str:
    if report is None:
        return "not reported"
    if float(report["visib"]) < 1:
        return "fog"
    if float(report["precip"]) > 0:
        return "rain or snow"
    return "windy" if float(report["wind_speed"]) >= 13 else "fair"


@dataclass
class Figures:
    """Row counts and sums by table; `gold` maps a table to its rows: key -> the other columns that are exact."""

    rows: dict[str, int]
    quarantined: dict[str, int]
    statuses: Counter[str]
    silver_sums: dict[str, int]
    gold: dict[str, dict[tuple[str, ...], tuple[object, ...]]]


def figures(landing: Path) -> Figures:
    """All figures of one landing folder. One pass over the flights, everything else held in dictionaries."""
    flights = list(rows(landing, "flights"))
    good = [flight for flight in flights if status(flight) != "no arrival"]
    weather = list(rows(landing, "weather"))
    reports = {
        (report["origin"], report["time_hour"]): report
        for report in weather
        if UNKNOWN not in (report["temp"], report["wind_speed"]) and float(report["wind_speed"]) < 254
    }
    airports = list(rows(landing, "airports"))
    names = {row["faa"]: row["name"] for row in airports if row["tzone"] not in (UNKNOWN, CHINA)}
    planes = list(rows(landing, "planes"))
    airlines = {row["carrier"]: row["name"] for row in rows(landing, "airlines")}
    gold = {
        "on_time_by_carrier_day": by_carrier_day(good, airlines),
        "on_time_by_destination": by_destination(good, names),
        "departures_by_weather": by_weather(good, reports),
        "fleet_by_carrier": by_fleet(good, {row["tailnum"]: int(row["seats"]) for row in planes}),
    }
    bronze = {"flights": flights, "weather": weather, "airports": airports, "planes": planes, "airlines": airlines}
    silver = {"flights": good, "weather": reports, "airports": names, "planes": planes, "airlines": airlines}
    return Figures(
        rows={f"bronze.{name}": len(table) for name, table in bronze.items()}
        | {f"silver.{name}": len(table) for name, table in silver.items()}
        | {f"gold.{name}": len(table) for name, table in gold.items()},
        quarantined={name: len(bronze[name]) - len(silver[name]) for name in bronze},
        statuses=Counter(status(flight) for flight in good),
        silver_sums={
            column: sum(int(flight[column]) for flight in good if flight[column] != UNKNOWN)
            for column in ("dep_delay", "arr_delay", "air_time", "distance")
        }
        | {
            "scheduled_at": sum(
                int(datetime.fromisoformat(flight["time_hour"]).timestamp()) + 60 * int(flight["minute"])
                for flight in good
            )
        },
        gold=gold,
    )


def delays(flights: list[Row], column: str) -> list[int]:
    return [int(flight[column]) for flight in flights if flight[column] != UNKNOWN]


def grouped(flights: list[Row], *columns: str) -> dict[tuple[str, ...], list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for flight in flights:
        groups[tuple(date(flight) if column == "date" else flight[column] for column in columns)].append(flight)
    return groups


def by_carrier_day(flights: list[Row], airlines: dict[str, str]) -> dict[tuple[str, ...], tuple[object, ...]]:
    """(date, carrier) -> name, flights, departed, cancelled, diverted, on time, minutes late in all."""
    found: dict[tuple[str, ...], tuple[object, ...]] = {}
    for key, group in grouped(flights, "date", "carrier").items():
        states = Counter(status(flight) for flight in group)
        late = delays(group, "arr_delay")
        on_time = sum(minutes < 15 for minutes in late)
        departed = len(group) - states["cancelled"]
        total = sum(late) if late else None
        found[key] = (airlines[key[1]], len(group), departed, states["cancelled"], states["diverted"], on_time, total)
    return found


def by_destination(flights: list[Row], names: dict[str, str]) -> dict[tuple[str, ...], tuple[object, ...]]:
    """(destination) -> name or None, flights, arrived, on time, minutes late in all."""
    found: dict[tuple[str, ...], tuple[object, ...]] = {}
    for key, group in grouped(flights, "dest").items():
        late = delays(group, "arr_delay")
        total = sum(late) if late else None
        found[key] = (names.get(key[0]), len(group), len(late), sum(minutes < 15 for minutes in late), total)
    return found


def by_weather(flights: list[Row], reports: dict[tuple[str, str], Row]) -> dict[tuple[str, ...], tuple[object, ...]]:
    """(airport, weather) -> flights, cancelled, minutes late at departure in all."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for flight in flights:
        report = reports.get((flight["origin"], flight["time_hour"]))
        groups[flight["origin"], weather_words(report)].append(flight)
    return {
        key: (len(group), sum(flight["dep_time"] == UNKNOWN for flight in group), sum(delays(group, "dep_delay")))
        for key, group in groups.items()
    }


def by_fleet(flights: list[Row], seats: dict[str, int]) -> dict[tuple[str, ...], tuple[object, ...]]:
    """(carrier) -> departed, aircraft, departed with an unknown aircraft, seats flown."""
    found: dict[tuple[str, ...], tuple[object, ...]] = {}
    for key, group in grouped([flight for flight in flights if status(flight) != "cancelled"], "carrier").items():
        tails = [flight["tailnum"] for flight in group]
        known = [seats[tail] for tail in tails if tail in seats and key[0] not in FLEET_NUMBERS]
        aircraft = set(tails) - {UNKNOWN}
        found[key] = (len(group), len(aircraft), len(tails) - len(known), sum(known) if known else None)
    return found
