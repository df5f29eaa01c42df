"""Text becomes a typed value whole or not at all."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from fdagent.engine.columns import BAD, ROW, Input, staged
from fdagent.engine.duck import Duck, text
from fdagent.errors import SchemaRefused
from fdagent.project.model import Column, Csv


@pytest.fixture(scope="module")
def duck():
    with Duck() as opened:
        yield opened


PLAIN = Csv()


def read(duck: Duck, value: str | None, kind: str, csv: Csv = PLAIN, **declared):
    """(value, reason) of one text."""
    column = Column("source", "name", kind, **declared)
    literal = "NULL::VARCHAR" if value is None else text(value)
    query = staged([Input("c", "VARCHAR", "source", column)], f"(SELECT {literal} AS c)", csv=csv)
    found = duck.dicts(query)[0]
    assert (found[ROW] is None) == (found[BAD] is None)
    return found["name"], found[BAD] or ""


TAKEN = [
    ("integer", "0", 0),
    ("integer", "-12", -12),
    ("integer", "+5", 5),
    ("integer", "007", 7),
    ("integer", "9223372036854775807", 9223372036854775807),
    ("decimal(9,2)", "1.5", Decimal("1.50")),
    ("decimal(9,2)", "-0.05", Decimal("-0.05")),
    ("decimal(9,2)", ".5", Decimal("0.50")),
    ("decimal(9,2)", "1.2300", Decimal("1.23")),
    ("decimal(9,0)", "12.0", Decimal(12)),
    ("decimal(38,10)", "1234567890123456789012345678.0123456789", Decimal("1234567890123456789012345678.0123456789")),
    ("double", "1.50", 1.5),
    ("double", "-1e-3", -0.001),
    ("double", "1279.2857142857142", 1279.2857142857142),
    ("boolean", "TRUE", True),
    ("boolean", "0", False),
    ("date", "2024-02-29", date(2024, 2, 29)),
    ("timestamp", "2027-01-15", datetime(2027, 1, 15, tzinfo=UTC)),
    ("timestamp", "2027-01-15 09:00", datetime(2027, 1, 15, 9, tzinfo=UTC)),
    ("timestamp", "2027-01-15T09:00:00Z", datetime(2027, 1, 15, 9, tzinfo=UTC)),
    ("timestamp", "2027-01-15 09:00:00.1234567", datetime(2027, 1, 15, 9, 0, 0, 123456, tzinfo=UTC)),
    ("timestamp", "2027-01-15T09:00:00+02:00", datetime(2027, 1, 15, 7, tzinfo=UTC)),
    ("timestamp", "2027-01-15T09:00:00-0530", datetime(2027, 1, 15, 14, 30, tzinfo=UTC)),
    ("text", " as it is ", " as it is "),
]
REFUSED = [
    *[("integer", value) for value in ("", " 12", "2.7", "2.0", "1e3", "1_000", "0x1F", "1,000", "9223372036854775808", "٣", "NULL")],
    *[("decimal(9,2)", value) for value in ("", "1.239", "1e2", " 1", "1,5", "12345678.00", "-", ".", "NaN")],
    *[("decimal(9,0)", value) for value in (".5", "0.5", "12.1")],
    *[("double", value) for value in ("", "nan", "inf", "-Infinity", "1e999", " 1.5", "1_0.5", "1,5", "0x1p3", "1.5f")],
    *[("boolean", value) for value in ("", "yes", "t", "2", " true")],
    *[("date", value) for value in ("", "2024-02-30", "2024-1-5", "2024-01-05 10:00:00", "20240105", "infinity", "12345-01-01", "0044-03-15 (BC)", "05.01.2024")],
    *[("timestamp", value) for value in ("", "now", "infinity", "epoch", "2027-01-15 25:00:00", "2027-02-30 09:00:00", "2027-01-15 09:00:00 Europe/Berlin", "2027-01-15 09:00:00,5", "09:00:00", "0044-03-15 00:00:00 (BC)")],
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN)
def test_a_text_of_the_type_is_read(duck, kind, value, expected):
    assert read(duck, value, kind) == (expected, "")


@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_a_text_of_another_type_is_refused_and_named(duck, kind, value):
    found, reason = read(duck, value, kind)
    assert found is None
    assert reason.startswith(f"name: '{value}' is not a")


@pytest.mark.parametrize("kind", ["integer", "decimal(9,2)", "double", "boolean", "date", "timestamp"])
def test_null_stays_null_and_is_no_problem(duck, kind):
    assert read(duck, None, kind) == (None, "")
    assert read(duck, "NA", kind, null=("NA", "")) == (None, "")
    assert read(duck, "", kind, null=("NA", "")) == (None, "")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("integer", "1.234.567", 1234567),
        ("integer", "1234", 1234),
        ("decimal(12,2)", "1.234,5", Decimal("1234.50")),
        ("double", "-1.234.567,25", -1234567.25),
        ("double", "0,5", 0.5),
    ],
)
def test_declared_signs_are_read(duck, kind, value, expected):
    assert read(duck, value, kind, Csv(decimal=",", thousands=".")) == (expected, "")


@pytest.mark.parametrize(
    ("kind", "value"),
    [("integer", "1.23"), ("integer", "12.3456"), ("double", "1.5"), ("double", "1,234.5"), ("decimal(9,2)", "1.2.3")],
)
def test_signs_in_the_wrong_place_are_refused(duck, kind, value):
    assert read(duck, value, kind, Csv(decimal=",", thousands="."))[1] != ""


def test_another_decimal_sign_makes_the_usual_one_a_mistake(duck):
    assert read(duck, "1.5", "double", Csv(decimal=","))[1] == "name: '1.5' is not a double"


def test_formats_are_read_as_declared(duck):
    assert read(duck, "15.01.2027", "date", format="%d.%m.%Y") == (date(2027, 1, 15), "")
    assert read(duck, "15.01.2027 09:30", "timestamp", format="%d.%m.%Y %H:%M")[0] == datetime(
        2027, 1, 15, 9, 30, tzinfo=UTC
    )
    zoned = read(duck, "15.01.2027 09:30 +0200", "timestamp", format="%d.%m.%Y %H:%M %z")
    assert zoned[0] == datetime(2027, 1, 15, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize("value", ["31.02.2027", "2027-01-15", "15.01.27", "15.01.2027 x"])
def test_what_the_format_does_not_say_is_refused(duck, value):
    assert read(duck, value, "date", format="%d.%m.%Y") == (
        None,
        f"name: '{value}' is not a date of the format %d.%m.%Y",
    )


BERLIN = {"zone": "Europe/Berlin"}


def test_a_local_time_is_stored_as_utc(duck):
    assert read(duck, "2027-01-15 09:00:00", "timestamp", **BERLIN)[0] == datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert read(duck, "2027-07-15 09:00:00", "timestamp", **BERLIN)[0] == datetime(2027, 7, 15, 7, tzinfo=UTC)


def test_an_offset_counts_more_than_the_zone(duck):
    assert read(duck, "2027-01-15T09:00:00Z", "timestamp", **BERLIN)[0] == datetime(2027, 1, 15, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "zone", "said"),
    [
        ("2024-03-31 02:30:00", "Europe/Berlin", "does not exist in Europe/Berlin"),
        ("2024-10-27 02:30:00", "Europe/Berlin", "comes twice in Europe/Berlin"),
        ("2024-04-07 01:45:00", "Australia/Lord_Howe", "comes twice in Australia/Lord_Howe"),
        ("2024-10-06 02:15:00", "Australia/Lord_Howe", "does not exist in Australia/Lord_Howe"),
    ],
)
def test_a_time_that_comes_never_or_twice_is_refused_with_that_reason(duck, value, zone, said):
    assert read(duck, value, "timestamp", zone=zone) == (None, f"name: '{value}' {said}")


@pytest.mark.parametrize(
    "value", ["2024-03-31 01:59:59", "2024-03-31 03:00:00", "2024-10-27 01:59:59", "2024-10-27 03:00:00"]
)
def test_times_beside_a_clock_change_are_read(duck, value):
    assert read(duck, value, "timestamp", **BERLIN)[1] == ""


def test_a_typed_source_column_is_taken_as_it_is_or_refused(duck):
    same = staged([Input("c", "BIGINT", "c", Column("c", "n", "integer"))], "(SELECT 5::BIGINT AS c)", csv=Csv())
    assert duck.dicts(same)[0]["n"] == 5
    as_text = staged([Input("c", "BIGINT", "c", Column("c", "n", "text"))], "(SELECT 5::BIGINT AS c)", csv=Csv())
    assert duck.dicts(as_text)[0]["n"] == "5"
    with pytest.raises(SchemaRefused, match="declared as date and has the type BIGINT"):
        staged([Input("c", "BIGINT", "c", Column("c", "n", "date"))], "t", csv=Csv())


def test_a_text_with_quotes_is_named_in_full_and_a_long_one_cut(duck):
    assert read(duck, "it's", "integer")[1] == "name: 'it's' is not an integer"
    assert len(read(duck, "x" * 10_000, "integer")[1]) < 200
