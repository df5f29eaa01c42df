"""The generated pages say what the code says, and a page that does not is found."""

import os
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest

from machines.diagram import chart_page, check, pages, write
from machines.graph import NoPicture, dot, picture
from machines.mermaid import LABEL_WIDTH, blocks, mermaid
from machines.registry import CHARTS, ENTRIES
from models.jsonrecord import declared
from models.step import ABSENT, write_of

DOCS = Path(__file__).parents[2] / "docs"
EACH = pytest.mark.parametrize("name", CHARTS)
LINE = re.compile(r"^    (\S+) --> (\S+): (\w+) / (CREATE|REPLACE|DELETE)(?:<br/>\[(.*)\])?$")


def test_every_page_says_what_the_code_says():
    assert check(DOCS) == [], "run `fdagent diagram` to write the pages anew"


@pytest.mark.parametrize("name", pages())
def test_a_page_that_differs_by_one_word_is_named(tmp_path, name):
    write(tmp_path)
    assert check(tmp_path) == []
    page = tmp_path / name
    page.write_text(page.read_text(encoding="utf-8").replace("one", "two", 1), encoding="utf-8")
    assert check(tmp_path) == [name]


def test_a_missing_page_and_one_of_no_chart_are_named_and_mended(tmp_path):
    write(tmp_path)
    (tmp_path / "charts/lease.md").unlink()
    (tmp_path / "charts/ghost.md").write_text("a chart that was", encoding="utf-8")
    assert check(tmp_path) == ["charts/lease.md", "charts/ghost.md"]
    write(tmp_path)
    assert check(tmp_path) == []


def test_a_page_with_windows_line_ends_is_the_same_page(tmp_path):
    write(tmp_path)
    page = tmp_path / "contract-1.md"
    page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    assert check(tmp_path) == []


def test_a_changed_chart_makes_its_page_differ(tmp_path, monkeypatch):
    write(tmp_path)
    lease = next(entry for entry in ENTRIES if entry.chart.name == "lease")
    arrow = next(arrow for _, arrow in lease.chart.arrows() if arrow.row.event == "renew")
    monkeypatch.setattr(arrow, "row", type(arrow.row)("renew", "held", "held", arrow.row.then, arrow.row.guards[:1]))
    assert check(tmp_path) == ["charts/lease.md"]


def lines(text):
    return [LINE.match(line) for line in text.splitlines() if "-->" in line]


@EACH
def test_a_diagram_has_one_line_an_arrow_with_its_event_write_and_guards(name):
    expected = [
        (
            "[*]" if arrow.source == ABSENT else arrow.source,
            "[*]" if arrow.dest == ABSENT else arrow.dest,
            event,
            arrow.write.value,
            [guard.label for guard in arrow.guards],
        )
        for event, arrow in CHARTS[name].arrows()
    ]
    found = [
        (m[1], m[2], m[3], m[4], re.split(r",(?:<br/>| )", m[5]) if m[5] else []) for m in lines(mermaid(CHARTS[name]))
    ]
    assert found == expected


@EACH
def test_the_pages_diagrams_show_every_arrow_exactly_once(name):
    shown = blocks(CHARTS[name])
    detailed = shown if len(shown) == 1 else shown[1:]
    drawn = [line for _, text in detailed for line in text.splitlines() if "-->" in line]
    assert sorted(drawn) == sorted(line for line in mermaid(CHARTS[name]).splitlines() if "-->" in line)


@EACH
def test_no_line_of_a_label_is_too_long_to_read(name):
    for _, text in blocks(CHARTS[name]):
        for match in filter(None, lines(text)):
            assert all(len(part) <= LABEL_WIDTH + 3 for part in match[0].split(": ", 1)[1].split("<br/>"))


@EACH
def test_a_page_has_every_row_with_its_write_and_its_guards_in_words(name):
    entry = next(entry for entry in ENTRIES if entry.chart.name == name)
    page = chart_page(entry)
    for event, arrow in entry.chart.arrows():
        row = [line for line in page.splitlines() if line.startswith(f"| **{event}** |") and arrow.source in line]
        assert any(write_of(arrow.source, arrow.dest).value in line for line in row)
        for guard in arrow.guards:
            said = guard.yes if guard.wanted else guard.no
            assert any(said in line for line in row), f"{event}: {said}"
            assert f"| `{guard.name}` | {guard.yes} | {guard.no} |" in page


def test_the_request_page_answers_who_takes_over_when_with_which_write_and_what_becomes_of_the_loser():
    page = (DOCS / "charts/request.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| **take_over** |"))
    for part in ("REPLACE", "its agent is gone, or offers it", "its deadline is ahead", "it may be held once more"):
        assert part in row
    for question in ("Who may take it over, when, with which write.", "What happens to the one who lost it."):
        assert f"**{question}**" in page


def test_the_contract_page_has_every_field_of_every_record():
    page = (DOCS / "contract-1.md").read_text(encoding="utf-8")
    for entry in ENTRIES:
        for told in declared(entry.record) if entry.record is not None else ():
            assert re.search(rf"^\| `{told.name}` \|.*\| {re.escape(told.meaning)} \|$", page, re.MULTILINE), told.name


@EACH
def test_a_graph_has_a_box_for_each_row_and_an_edge_for_each_arrows_start(name):
    text = dot(CHARTS[name])
    arrows = list(CHARTS[name].arrows())
    boxes = {(arrow.row, arrow.dest) for _, arrow in arrows}
    assert len(re.findall(r"^    arrow\d+ \[label=", text, re.MULTILINE)) == len(boxes)
    assert len(re.findall(r"-> arrow\d+ \[dir=none\]", text)) == len(arrows)
    assert text.count("{") == text.count("}")


def test_without_graphviz_a_picture_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(NoPicture, match="needs the program `dot`, which is not installed"):
        picture(CHARTS["lease"], "svg")


def test_a_picture_in_an_unknown_form_is_refused():
    with pytest.raises(NoPicture, match=r"as .gif.\. Choose svg or png\."):
        picture(CHARTS["lease"], "gif")


@pytest.fixture
def fake_dot(tmp_path, monkeypatch):
    """A program `dot` that does what its text says."""

    def install(body):
        program = tmp_path / "dot"
        program.write_text(f"#!{sys.executable}\nimport sys\n{body}\n", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("PATH", str(tmp_path))

    return install


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script that Windows would not run")
def test_graphviz_is_given_the_graph_and_the_form(fake_dot):
    fake_dot("print(sys.argv[1], sys.stdin.read().split()[1])")
    assert picture(CHARTS["lease"], "png").split() == [b"-Tpng", b'"lease"']


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script that Windows would not run")
def test_graphviz_that_fails_is_quoted(fake_dot):
    fake_dot("sys.exit('no fonts')")
    with pytest.raises(NoPicture, match="`dot` could not draw the chart lease: no fonts"):
        picture(CHARTS["lease"], "svg")
