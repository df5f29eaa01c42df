"""The shipped landing files are the package's own lines, and small enough to ship."""

from itertools import chain

import make_data

SHIPPED = {
    path.relative_to(make_data.SHIPPED).as_posix(): path.read_bytes() for path in make_data.SHIPPED.rglob("*.csv")
}


def test_shipped_files_are_what_the_script_makes_from_the_package() -> None:
    made = dict(make_data.landing())
    assert sorted(SHIPPED) == sorted(made)
    assert [name for name in made if SHIPPED[name] != made[name]] == []


def test_all_days_together_are_the_packages_file_with_no_line_lost_or_doubled() -> None:
    for name in make_data.DATE_AT:
        header, *lines = make_data.package_file(name).splitlines(keepends=True)
        by_day = [content.splitlines(keepends=True) for content in make_data.days(name).values()]
        assert {day[0] for day in by_day} == {header}
        assert sorted(chain.from_iterable(day[1:] for day in by_day)) == sorted(lines)


def test_shipped_data_keeps_the_faults_it_came_with() -> None:
    flights = SHIPPED["flights/flights_2013-01-02.csv"]
    assert b",NA,NA," in flights, "cancelled flights lost their literal NA"
    tails = {line.split(b",")[11] for line in flights.splitlines()[1:]}
    known = {line.split(b",")[0] for line in SHIPPED["planes.csv"].splitlines()[1:]}
    assert tails - known - {b"NA"}, "every tail number is known: the orphans are gone"


def test_shipped_data_stays_under_three_megabytes() -> None:
    assert sum(map(len, SHIPPED.values())) < 3_000_000
