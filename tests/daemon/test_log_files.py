"""The agent's log on disk: rotation without renames, full disks, deleted files, and many threads."""

import errno
import io
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from duty_kit import JumpClock

from fdagent.commit import Transition
from fdagent.daemon import logs
from fdagent.daemon.logs import AUDIT, Log, log_files

ABOUT = {"agent": "etl-01", "host": "h"}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "logs"


def opened(folder, **more) -> Log:
    return Log(folder, None, ABOUT, JumpClock(), **more)


def lines(folder, name: str = "agent") -> list[dict]:
    return [json.loads(line) for file in log_files(folder, name) for line in file.read_text().splitlines()]


def test_a_line_is_one_json_object_with_time_level_event_message_and_what_it_is_about(folder):
    log = opened(folder)
    log.tell("info", "job", 'with "quotes", a\nnew line and ü', job_id="j1", env="", attempt=0)
    assert lines(folder) == [
        {
            "ts": "2023-11-14T22:30:00Z",
            "level": "info",
            "event": "job",
            "message": 'with "quotes", a\nnew line and ü',
            **ABOUT,
            "job_id": "j1",
            "attempt": 0,
        }
    ]
    log.close()


def test_it_is_printed_too_and_a_terminal_that_is_gone_stops_nothing(folder):
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    out = io.StringIO()
    for where in (out, Gone()):
        log = Log(folder, where, ABOUT, JumpClock())
        log.tell("info", "job", "said")
        log.close()
    assert json.loads(out.getvalue())["message"] == "said"
    assert len(lines(folder)) == 2


def test_text_that_is_no_unicode_is_written_all_the_same(folder):
    log = opened(folder)
    log.tell("info", "job", "a lone \ud800 surrogate")
    log.close()
    assert lines(folder)[0]["message"] == "a lone \ud800 surrogate"


def test_a_full_file_is_followed_by_the_next_number_and_the_oldest_are_removed(folder):
    log = opened(folder, file_bytes=1000, kept=3)
    for number in range(100):
        log.tell("info", "job", f"line {number}")
    log.close()
    files = log_files(folder)
    numbers = [int(file.name.split(".")[1]) for file in files]
    assert numbers == list(range(numbers[-1] - 2, numbers[-1] + 1))
    assert numbers[0] > 1
    kept = [int(line["message"].split()[1]) for line in lines(folder)]
    assert kept == list(range(kept[0], 100)), "the newest lines, in order and whole"


def test_files_are_counted_as_numbers_and_others_left_alone(folder):
    folder.mkdir()
    for name in ("agent.9.log", "agent.10.log", "agent.x.log", "agent.log", "audit.11.log", "notes.txt"):
        (folder / name).write_text("")
    assert [file.name for file in log_files(folder)] == ["agent.9.log", "agent.10.log"]
    log = opened(folder, kept=1)
    log.tell("info", "job", "said")
    log.close()
    assert [file.name for file in log_files(folder)] == ["agent.10.log"]
    assert (folder / "agent.x.log").exists()


def test_a_later_start_goes_on_in_the_newest_file(folder):
    for number in range(3):
        log = opened(folder)
        log.tell("info", "started", str(number))
        log.close()
    assert [line["message"] for line in lines(folder)] == ["0", "1", "2"]
    assert len(log_files(folder)) == 1


def test_somebody_who_reads_a_file_while_it_is_followed_by_the_next_reads_on_undisturbed(folder):
    log = opened(folder, file_bytes=400, kept=10)
    log.tell("info", "job", "line 0")
    reader = log_files(folder)[0].open()
    for number in range(1, 30):
        log.tell("info", "job", f"line {number}")
    mine = [json.loads(line)["message"] for line in reader]
    others = [line["message"] for line in lines(folder)][len(mine) :]
    assert mine + others == [f"line {number}" for number in range(30)]
    reader.close()
    log.close()


def test_a_file_that_somebody_deletes_is_followed_by_a_new_one(folder):
    log = opened(folder)
    log.tell("info", "job", "gone")
    log_files(folder)[0].unlink()
    log.tell("info", "job", "here")
    assert [line["message"] for line in lines(folder)] == ["here"]
    for file in log_files(folder):
        file.unlink()
    folder.rmdir()
    log.tell("info", "job", "here again")
    assert [line["message"] for line in lines(folder)] == ["here again"]
    log.close()


def test_a_folder_that_can_not_be_written_loses_lines_which_are_counted_once_it_can(folder):
    folder.write_text("a file where the folder should be")
    log = opened(folder)
    for number in range(7):
        log.tell("info", "job", str(number))
    folder.unlink()
    log.tell("info", "job", "back")
    log.tell("info", "job", "and on")
    assert [line["message"] for line in lines(folder)] == ["7 lines could not be written.", "back", "and on"]
    assert lines(folder)[0]["event"] == "lines_lost"
    log.close()


class Full(io.FileIO):
    """A file on a disk that takes `room` bytes more."""

    room = 0

    def write(self, line: bytes) -> int:
        taken = line[: Full.room]
        Full.room -= len(taken)
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(taken)


def test_a_disk_that_fills_up_within_a_line_leaves_no_half_line(folder, monkeypatch):
    monkeypatch.setattr(logs.io, "FileIO", Full)
    Full.room = 10_000
    log = opened(folder)
    log.tell("info", "job", "whole")
    Full.room = 20
    log.tell("info", "job", "cut")
    log.tell("info", "job", "lost")
    assert [line["message"] for line in lines(folder)] == ["whole"]
    Full.room = 10_000
    log.tell("info", "job", "back")
    assert [line["message"] for line in lines(folder)] == ["whole", "2 lines could not be written.", "back"]
    log.close()


def test_a_disk_with_room_for_the_count_only_keeps_counting(folder, monkeypatch):
    monkeypatch.setattr(logs.io, "FileIO", Full)
    Full.room = 0
    log = opened(folder)
    log.tell("info", "job", "lost")
    Full.room = 180
    log.tell("info", "job", "x" * 200)
    Full.room = 10_000
    log.tell("info", "job", "back")
    said = [line["message"] for line in lines(folder) if line["event"] == "lines_lost"]
    assert sum(int(message.split()[0]) for message in said) == 2
    log.close()


def test_many_threads_never_mix_their_lines(folder):
    log = opened(folder, file_bytes=3000, kept=1000)
    threads = [
        threading.Thread(target=lambda n=n: [log.tell("info", "job", f"{n}:{k} " + "x" * 100) for k in range(100)])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = [line["message"].split()[0] for line in lines(folder)]
    assert sorted(found) == sorted(f"{n}:{k}" for n in range(8) for k in range(100))


def test_a_transition_is_a_line_of_the_audit_log_beside_it(folder):
    log, audit = opened(folder), opened(folder, name=AUDIT)
    log.tell("info", "job", "said")
    audit.transition(Transition("job", "claim", "queued", "running", "j1", "op1"), worker="etl-01/1")
    assert [line.get("event") for line in lines(folder)] == ["job"]
    (moved,) = lines(folder, AUDIT)
    assert {
        "chart": "job",
        "event": "claim",
        "from": "queued",
        "to": "running",
        "key": "j1",
        "op": "op1",
    }.items() <= moved.items()
    assert moved["worker"] == "etl-01/1"
    log.close()
    audit.close()


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="a limit of POSIX")
def test_a_file_that_may_not_grow_any_more_leaves_whole_lines(folder):
    """The same with a real limit of the system instead of a pretended one."""
    script = (
        "import resource, signal, sys; from pathlib import Path; from fdagent.daemon.logs import Log;"
        "from fdagent.system import SystemClock; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "log = Log(Path(sys.argv[1]), None, {}, SystemClock());"
        "[log.tell('info', 'job', f'line {n}') for n in range(100)]; print(log._lost)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60, check=True
    )
    found = lines(folder)
    assert len(found) + int(answer.stdout) == 100
    assert log_files(folder)[-1].stat().st_size <= 1000


def test_log_files_of_a_folder_that_is_not_there(tmp_path):
    assert log_files(Path(tmp_path / "none")) == []
