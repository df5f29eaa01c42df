"""CSV files as they come: ragged, mis-encoded, quoted over lines, half-closed; nothing guessed, nothing lost."""

import csv as python_csv
import io

import pytest
from engine_kit import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdagent.engine.duck import Duck
from fdagent.engine.marks import FoundFile
from fdagent.engine.sources.csv import stage
from fdagent.errors import BadSource
from fdagent.project.model import Column, Csv

PLAIN = Csv()


@pytest.fixture
def read(tmp_path):
    """Stage files' bytes; (rows without `_file` and `_loaded_at`, refused rows)."""

    def run(*bodies: bytes | str, columns: tuple[Column, ...] = (), csv: Csv = PLAIN):
        files = []
        for n, body in enumerate(bodies):
            path = tmp_path / f"f{n}.csv"
            path.write_bytes(body.encode() if isinstance(body, str) else body)
            files.append(FoundFile(path, path.name, path.stat().st_size, n))
        with Duck(spill=tmp_path / "spill") as duck:
            duck.rows('CREATE TEMP TABLE refused (file VARCHAR, line BIGINT, reason VARCHAR, "row" VARCHAR)')
            staged = stage(duck, files, csv, columns, loaded_at="2027-01-15 09:00:00+00", refused="refused")
            bad = duck.rows("SELECT file, line, reason, row FROM refused ORDER BY ALL")
            if staged is None:
                return None, bad
            assert staged.read == duck.number(f"SELECT count(*) FROM {staged.relation}") + len(bad)
            rows = duck.rows(f"SELECT * EXCLUDE (_file, _loaded_at) FROM {staged.relation}")
            return sorted(rows, key=str), bad

    return run


def test_everything_is_text_and_leading_zeros_stay(read):
    rows, bad = read("zip,n\n" + "".join(f"{n},1\n" for n in range(10000, 40000)) + "00501,2.0\n")
    assert ("00501", "2.0") in rows
    assert len(rows) == 30001
    assert bad == []


def test_an_unquoted_empty_field_is_null_and_a_quoted_one_is_empty_text(read):
    rows, _ = read('a,b\n"",1\n,2\n')
    assert rows == [("", "1"), (None, "2")]


def test_texts_for_null_are_only_those_declared(read):
    rows, _ = read("a,b\nNA,1\n,2\n", csv=Csv(null=("NA",)))
    assert rows == [("", "2"), (None, "1")]
    rows, _ = read("a,b\nNA,1\n,2\n", csv=Csv(null=()))
    assert rows == [("", "2"), ("NA", "1")]


def test_a_quoted_text_for_null_is_that_text(read):
    rows, _ = read('a,b\n"NA",1\nNA,2\n', csv=Csv(null=("NA",)))
    assert rows == [("NA", "1"), (None, "2")]


def test_a_ragged_row_is_kept_with_line_and_reason_and_the_others_load(read):
    rows, bad = read("a,b,c\n1,2,3\n4,5\n6,7,8,9\n10,11,12\n")
    assert rows == [("1", "2", "3"), ("10", "11", "12")]
    assert [(line, row) for _, line, _, row in bad] == [(3, "4,5"), (4, "6,7,8,9")]
    assert "too few fields" in bad[0][2]
    assert "too many fields" in bad[1][2]


def test_a_ragged_row_with_many_errors_is_refused_once(read):
    _, bad = read("a,b,c,d\n1\n")
    assert len(bad) == 1


def test_lines_count_line_ends_inside_quotes(read):
    rows, bad = read('a,b\n"x\ny\nz",1\n2\n3,4\n')
    assert ("x\ny\nz", "1") in rows
    assert [line for _, line, _, _ in bad] == [5]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system_are_read(read, end):
    rows, bad = read(end.join(["a,b", "1,2", "3,4", ""]))
    assert rows == [("1", "2"), ("3", "4")]
    assert bad == []


def test_mixed_line_ends_are_read_and_those_inside_quotes_stay(read):
    rows, bad = read('a,b\r\n1,2\n3,"x\r\ny"\r\n5,6\r7,8')
    assert rows == [("1", "2"), ("3", "x\r\ny"), ("5", "6"), ("7", "8")]
    assert bad == []


def test_quoted_line_ends_over_many_megabytes_make_no_row_out_of_thin_air(read):
    count = 300_000
    rows, bad = read("a,b,c\n" + "".join(f'{n},"x\ny,{n}\n{n},z",{n}\n' for n in range(count)))
    assert bad == []
    assert len(rows) == count
    assert {row[0] for row in rows} == {str(n) for n in range(count)}


@pytest.mark.parametrize("rows_before", [0, 1, 200_000])
def test_a_quote_that_is_never_closed_fails_the_file(read, rows_before):
    with pytest.raises(BadSource, match=r"f0.csv has a quote that is never closed"):
        read("a,b\n" + "1,2\n" * rows_before + '3,"4\n5,6\n')


def test_a_quote_that_is_never_closed_behind_a_stray_one_fails_too(read):
    with pytest.raises(BadSource, match="never closed"):
        read('a,b\nx"y,1\n3,"4\n5,6\n')


def test_a_stray_quote_inside_a_plain_field_is_a_character(read):
    rows, bad = read('a,b\n5" pipe,1\n2,3\n')
    assert rows == [("2", "3"), ('5" pipe', "1")]
    assert bad == []


def test_without_quoting_a_quote_is_a_character(read):
    rows, _ = read('a,b\n"x,1\n2,3\n', csv=Csv(quote=""))
    assert rows == [('"x', "1"), ("2", "3")]


def test_doubled_quotes_and_other_signs_are_read(read):
    rows, _ = read("a;b\n'it''s';1,5\n", csv=Csv(delimiter=";", quote="'"))
    assert rows == [("it's", "1,5")]


def test_bytes_that_are_not_utf8_cost_their_row_only(read):
    rows, bad = read(b"a,b\n1,\xff\xfe\n2,3\n")
    assert rows == [("2", "3")]
    assert bad[0][1] == 2
    assert "not UTF-8" in bad[0][2]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "iso8859-1"])
def test_encodings_are_read_as_declared(read, encoding):
    rows, bad = read('a,b\nä,"ü\n2"\n'.encode(encoding), csv=Csv(encoding=encoding))
    assert rows == [("ä", "ü\n2")]
    assert bad == []


def test_a_byte_order_mark_is_no_part_of_the_first_name(read):
    rows, _ = read(b"\xef\xbb\xbfa,b\n1,2\n", columns=(Column("a", "a", "integer"),))
    assert rows == [(1, "2")]


@pytest.mark.parametrize(
    ("body", "csv", "said"),
    [
        ("a,b\n1,2\n".encode("utf-16"), Csv(), 'UTF-16; expected encoding = "utf-16"'),
        (b"\x1f\x8b\x08\x00", Csv(), "packed"),
        (b"PK\x03\x04rest", Csv(), "packed"),
        (b"a,b\n1,\x81\n", Csv(encoding="cp1252"), "is not cp1252"),
        (b"a,b\n" + b"1,2\n" * 300_000 + b"1,\x81\n", Csv(encoding="cp1252"), "is not cp1252"),
        (b"", Csv(), "is empty"),
        (b"\xef\xbb\xbf", Csv(), "is empty"),
        (b" \r\n\n", Csv(), "is empty"),
        (b"\na,b\n1,2\n", Csv(), "first line of f0.csv is blank"),
        (b"a,,c\n", Csv(), "column 2 has no name"),
        (b"a,b,a\n", Csv(), "'a' stands there twice"),
        (b"id,ID\n", Csv(), "'id' and 'ID' differ only in letter case"),
        (b"a,_file\n", Csv(), "'_file' is taken"),
        (b"a,b\n1\n", Csv(on_bad_row="fail"), "f0.csv line 2: too few fields"),
    ],
)
def test_what_is_not_as_declared_is_refused_in_words(read, body, csv, said):
    with pytest.raises(BadSource) as caught:
        read(body, csv=csv)
    assert said in str(caught.value)


def test_a_file_with_only_a_header_has_no_rows(read):
    assert read("a,b\n") == ([], [])
    assert read("a,b") == ([], [])
    assert read('"a","b"') == ([], [])


def test_an_empty_file_may_be_ignored(read):
    assert read(b"", csv=Csv(on_empty="ignore")) == (None, [])
    assert read(b"", "a\n1\n", csv=Csv(on_empty="ignore")) == ([("1",)], [])


def test_files_without_header_take_the_declared_columns(read):
    columns = (Column("id", "id", "integer"), Column("name", "called"))
    rows, bad = read("1,x\n2,y\nz\n", columns=columns, csv=Csv(header=False))
    assert rows == [(1, "x"), (2, "y")]
    assert bad[0][1] == 3


def test_a_column_that_comes_later_is_null_before(read):
    rows, _ = read("a,b\n1,2\n", "b,a,c\n4,3,5\n")
    assert rows == [("1", "2", None), ("3", "4", "5")]


def test_a_declared_column_must_be_there(read):
    with pytest.raises(BadSource, match=r"has no column 'x', which .columns. declares; it has: a, b"):
        read("a,b\n1,2\n", columns=(Column("x", "x"),))


def test_a_value_of_another_type_is_refused_with_column_value_and_line(read):
    columns = (Column("n", "number", "integer"), Column("d", "d", "date"))
    rows, bad = read("n,d,t\n1,2027-01-15,x\n2.7,2027-02-30,y\n3,,z\n", columns=columns)
    assert [row[0] for row in rows] == [1, 3]
    file, line, reason, row = bad[0]
    assert (file, line) == ("f0.csv", 3)
    assert reason == "number: '2.7' is not an integer; d: '2027-02-30' is not a date"
    assert row == '{"n":"2.7","d":"2027-02-30","t":"y"}'


def test_lines_of_bad_values_are_found_behind_quotes_line_ends_and_several_nulls(read):
    columns = (Column("n", "n", "integer"),)
    body = 'n,t,u\n1,"a\nb",x\nbad,"q",NA\nbad,,"two\nlines"\nbad,NA,\nbad,NA,\n'
    _, bad = read(body, columns=columns, csv=Csv(null=("", "NA")))
    assert [line for _, line, _, _ in bad] == [4, 5, 7, 8]


def test_a_bad_value_fails_the_file_where_that_is_declared(read):
    with pytest.raises(BadSource, match=r"f0.csv line 3: n: 'x' is not an integer \(2 such rows\)"):
        read("n\n1\nx\ny\n", columns=(Column("n", "n", "integer"),), csv=Csv(on_bad_row="fail"))


def test_a_name_with_signs_of_a_pattern_is_one_file(tmp_path):
    world = World(tmp_path)
    world.csv_entity()
    world.land("a[1]?.csv", "n\n1\n")
    world.land("a1x.csv", "n\n2\n")
    assert world.run("bronze.t").rows_read == 2
    assert world.rows("bronze.t", "n", "_file") == [("1", "landing/a[1]?.csv"), ("2", "landing/a1x.csv")]


def test_a_line_longer_than_the_longest_is_refused_and_the_others_load(read):
    rows, bad = read("a,b\n1," + "x" * 3_000_000 + "\n2,y\n")
    assert rows == [("2", "y")]
    assert bad[0][1] == 2
    assert "longer than" in bad[0][2]


FIELDS = st.text(st.sampled_from("ab\",;\n\r 'x0ä"), max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=st.lists(st.tuples(FIELDS, FIELDS, FIELDS), min_size=1, max_size=30), quoting=st.sampled_from([1, 2]))
def test_what_a_csv_writer_writes_is_read_back(read, table, quoting):
    target = io.StringIO()
    writer = python_csv.writer(target, quoting=python_csv.QUOTE_ALL if quoting == 1 else python_csv.QUOTE_NONNUMERIC)
    writer.writerow(["a", "b", "c"])
    writer.writerows(table)
    rows, bad = read(target.getvalue())
    assert bad == []
    assert rows == sorted(table, key=str)
