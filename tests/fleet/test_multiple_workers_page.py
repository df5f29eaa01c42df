"""docs/multiple-workers.md names a test for each guarantee; each of them is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "multiple-workers.md").read_text(encoding="utf-8")


def test_each_test_that_the_page_names_is_there():
    files = [path for folder in ("fleet", "takeover") for path in (ROOT / "tests" / folder).glob("test_*.py")]
    there = "\n".join(path.read_text(encoding="utf-8") for path in files)
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) >= 12
    assert not [name for name in named if f"def {name}(" not in there]


def test_each_file_that_the_page_names_is_there():
    files = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert files
    for name in files:
        assert (ROOT / name).exists() or (Path(__file__).parent / name).exists(), name
    for link in re.findall(r"\]\(([\w/.-]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
