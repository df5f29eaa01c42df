"""docs/status.md is true: its commands run, its pictures are there, its warnings are those of the code."""

import re
from pathlib import Path

from fdagent.cli import live, snapshot
from fdagent.daemon import logs
from fdagent.daemon.home import taken

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "status.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line.partition("#")[0].split()[1:] for line in BLOCK.splitlines()]


def test_each_command_of_the_page_does_what_it_says(home):
    home.ended("a" * 12, entities=("silver.orders",))
    with taken(home.path, home.clock):
        for words in COMMANDS:
            if "--watch" in words:
                assert "draws on a terminal" in home(*words, code=2).err
            elif "--health" in words:
                assert " runs " in home(*words).out
            else:
                assert "a" * 12 in home(*words).out
    assert len(COMMANDS) == 5


def test_the_pictures_of_the_page_are_of_the_live_page_and_load_nothing():
    names = re.findall(r"\]\((pictures/[\w-]+\.svg)\)", PAGE)
    assert len(names) == 2
    for name in names:
        svg = (DOCS / name).read_text(encoding="utf-8")
        assert "Schedules" in svg
        assert re.findall(r"https?://[^\"<]+", svg) == ["http://www.w3.org/2000/svg"]


def test_the_warnings_and_figures_of_the_page_are_the_codes():
    source = Path(snapshot.__file__).read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert set(named) == set(re.findall(r'"(?:warning|error)",\s*"(\w+)"', source)) - {"error"}
    assert f"the newest {snapshot.SEARCHED:,}" in PAGE
    assert f"at most {snapshot.FOUND}" in PAGE
    assert f"more than {snapshot.ROWS_SECONDS / 60:.0f} minutes" in PAGE
    assert (live.READ_SECONDS, live.DRAWN_SECONDS, snapshot.LATE_SECONDS, snapshot.LOG_WARNINGS) == (10, 1, 120, 5)
    assert f"({logs.FILE_BYTES // 1024**2} MB)" in PAGE
    assert f"newest\n{logs.KEPT} are kept" in PAGE or f"newest {logs.KEPT} are kept" in PAGE
