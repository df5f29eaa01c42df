"""What may lie where agent.toml is looked for: each gives one sentence, and never another exception."""

import os
import sys
from pathlib import Path

import pytest
from config_kit import AGENT, problem, problems, written

from fdagent.config.file import MAX_BYTES, MAX_LINE
from fdagent.config.load import load_settings
from fdagent.errors import ConfigError


def only_problem(path):
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    [sentence] = caught.value.problems
    assert caught.value.exit_code == 2
    return sentence


def test_a_file_that_is_not_there(tmp_path):
    assert only_problem(tmp_path / "agent.toml") == "agent.toml: there is no such file."


def test_a_folder(tmp_path):
    assert only_problem(tmp_path) == f"{tmp_path.name}: is a folder, expected a file."


def test_a_file_in_a_file(tmp_path):
    assert "can't be read: not a directory" in only_problem(written(tmp_path, AGENT) / "agent.toml")


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of another kind")
def test_a_pipe_that_nobody_writes_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "agent.toml")
    assert only_problem(tmp_path / "agent.toml") == "agent.toml: is not a regular file."


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def denied(path, mode):
        raise PermissionError(13, "Permission denied", str(path))

    file = written(tmp_path, AGENT)
    monkeypatch.setattr(Path, "open", denied)
    assert only_problem(file) == "agent.toml: can't be read: permission denied."


def test_links_in_a_circle(tmp_path):
    (tmp_path / "agent.toml").symlink_to(tmp_path / "other.toml")
    (tmp_path / "other.toml").symlink_to(tmp_path / "agent.toml")
    assert "can't be read: too many levels of symbolic links" in only_problem(tmp_path / "agent.toml")


def test_a_link_to_a_file_elsewhere_is_read(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "agent.toml").symlink_to(written(tmp_path / "real", AGENT))
    assert load_settings(tmp_path / "agent.toml").agent.project == tmp_path / "project"


def test_a_name_that_no_file_has(tmp_path):
    assert "can't be read" in only_problem(tmp_path / "a\0b")
    assert "can't be read: file name too long" in only_problem(tmp_path / ("x" * 300))


def test_a_name_that_would_write_to_the_terminal_is_escaped(tmp_path):
    sentence = only_problem(tmp_path / "\x1b[31magent.toml")
    assert sentence == "\\x1b[31magent.toml: there is no such file."


def test_an_empty_file_lacks_what_is_required(tmp_path):
    for text in (b"", b"\n\n", b"# nothing\n", b"\xef\xbb\xbf"):
        assert [one.split(": ")[0] for one in problems(tmp_path, text)] == [
            "agent.toml, [agent] project",
            "agent.toml, [agent] environments",
        ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_with_a_mark(tmp_path, encoding):
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    assert "is UTF-16, expected UTF-8" in problem(tmp_path, marks.get(encoding, b"") + AGENT.encode(encoding))


def test_utf_16_without_a_mark_is_no_toml(tmp_path):
    assert "not valid TOML" in problem(tmp_path, AGENT.encode("utf-16-le"))


def test_text_in_an_old_code_page(tmp_path):
    assert problem(tmp_path, AGENT.encode() + 'owner = "Müller"'.encode("cp1252")) == (
        "is not UTF-8: line 4 has byte 0xfc."
    )


@pytest.mark.parametrize("body", [b"\x7fELF\x02\x01\x01\x00", b"PK\x03\x04", b"SQLite format 3\x00", b"\x00" * 100])
def test_a_binary_file(tmp_path, body):
    assert problem(tmp_path, body)


@pytest.mark.parametrize(
    "text", ['{"agent": 1}', "agent: {}", "[agent", "agent = ", "= 1", "[]", "\r", "[agent]\rname='x'"]
)
def test_what_is_no_toml_is_placed(tmp_path, text):
    sentence = problem(tmp_path, text)
    assert sentence.startswith("line 1, column ")
    assert "not valid TOML" in sentence


@pytest.mark.parametrize("text", ["owner = 'a'\nowner = 'b'", "[agent]", "concurrency = 1\n[agent.concurrency]"])
def test_what_stands_there_twice(tmp_path, text):
    assert "stands there twice" in problem(tmp_path, AGENT + text)


@pytest.mark.parametrize("path", [r"C:\data", r"C:\Users\x", r"C:\xyz"])
def test_a_windows_path_in_double_quotes_is_explained(tmp_path, path):
    assert "a Windows path goes between 'single quotes'" in problem(tmp_path, f'[agent]\nproject = "{path}"')


def test_a_windows_path_in_single_quotes_is_right(tmp_path):
    assert problems(tmp_path, "[agent]\nproject = 'C:\\new\\project'\nenvironments = ['dev']") == []


def test_the_largest_file_is_read_and_a_larger_one_is_not(tmp_path):
    padding = b"#" * 99 + b"\n"
    room = MAX_BYTES - len(AGENT)
    fits = AGENT.encode() + padding * (room // 100) + b"\n" * (room % 100)
    assert len(fits) == MAX_BYTES
    assert problems(tmp_path, fits) == []
    assert problem(tmp_path, fits + b"\n") == f"is larger than {MAX_BYTES} bytes, which is the most that is read."


def test_a_file_as_large_as_a_disk_is_not_read_whole(tmp_path):
    file = tmp_path / "agent.toml"
    with file.open("wb") as stream:
        stream.truncate(10**12)
    assert "is larger than" in only_problem(file)


def test_the_longest_line_is_read_and_a_longer_one_is_not(tmp_path):
    assert problems(tmp_path, AGENT + "#" * MAX_LINE) == []
    assert (
        problem(tmp_path, AGENT + "#" * (MAX_LINE + 1))
        == f"line 4: has {MAX_LINE + 1} characters; {MAX_LINE} are allowed."
    )


@pytest.mark.parametrize("text", ["x = " + "[" * 3000, "x = " + "{a=" * 1000, "x = 2027-02-30"])
def test_what_takes_a_reader_too_far_is_no_toml(tmp_path, text):
    assert "not valid TOML" in problem(tmp_path, text)


def test_a_number_with_more_digits_than_this_python_reads_is_no_toml(tmp_path):
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert problem(tmp_path, "x = 1" + "0" * 700) == "is not valid TOML: a number has too many digits."
    finally:
        sys.set_int_max_str_digits(before)


def test_tables_inside_tables_are_not_followed_without_end(tmp_path):
    deep = ".".join("a" * 500) + " = 1\n"
    assert any("tables and lists deep" in one for one in problems(tmp_path, deep + AGENT))
