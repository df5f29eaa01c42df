"""The real clock, ids and processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fdagent.system import SystemClock, SystemIds, SystemProcesses

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_the_clock_that_never_jumps_goes_on_by_what_was_slept():
    clock = SystemClock()
    before = clock.elapsed()
    clock.sleep(0.05)
    clock.sleep(0)
    clock.sleep(-1)
    assert 0.03 < clock.elapsed() - before < 5


@linux
def test_the_clock_that_never_jumps_counts_suspend():
    assert SystemClock().elapsed() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=1)


def test_ids_are_32_hex_digits_and_never_the_same():
    ids = SystemIds()
    made = [ids.new() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert all(len(i) == 32 and int(i, 16) >= 0 for i in made)
    assert all(0 <= ids.fraction() < 1 for _ in range(100))


@linux
def test_a_place_is_host_boot_and_pid_namespace():
    host, boot, space = SystemProcesses().place().split("/")
    assert host == os.uname().nodename
    assert boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert space.isdecimal()


def test_a_process_has_one_start_and_an_ended_one_none():
    processes = SystemProcesses()
    assert processes.pid() == os.getpid()
    mine = processes.started_at(os.getpid())
    assert mine is not None
    assert processes.started_at(os.getpid()) == mine
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert processes.started_at(other.pid) > mine
        other.kill()
        other.wait(10)
        assert processes.started_at(other.pid) is None


@linux
def test_a_zombie_has_ended():
    with subprocess.Popen([sys.executable, "-c", "pass"]) as other:
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert SystemProcesses().started_at(other.pid) is None


@linux
@pytest.mark.parametrize(("threads", "there"), [("0", False), ("1", False), ("2", True)])
def test_a_process_whose_first_thread_has_ended_is_there_while_others_are(tmp_path, threads, there):
    """Killed while its threads are in the kernel: until they have ended nothing it was at is over."""
    (tmp_path / "77").mkdir()
    fields = ["Z", *["1"] * 16, threads, "0", "12345", *["0"] * 30]
    (tmp_path / "77/stat").write_text(f"77 (python) {' '.join(fields)}\n")
    assert (SystemProcesses(tmp_path).started_at(77) is not None) is there


@linux
@pytest.mark.parametrize("name", ["python", "a) R 1 (b", "x y\nz", "\xff"])
def test_a_process_with_any_name_has_the_start_that_its_stat_says(tmp_path, name):
    (tmp_path / "77").mkdir()
    fields = ["S", *["1"] * 18, "12345", *["0"] * 30]
    (tmp_path / "77/stat").write_bytes(f"77 ({name}) {' '.join(fields)}\n".encode("latin-1"))
    assert SystemProcesses(tmp_path).started_at(77) == 12345 / os.sysconf("SC_CLK_TCK")
    assert SystemProcesses(tmp_path).started_at(78) is None


@linux
def test_where_other_processes_are_hidden_the_place_is_empty_so_that_none_is_taken_for_gone(tmp_path):
    """/proc mounted with hidepid: process 1 can't be seen."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("b-1\n")
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026531836]")
    assert SystemProcesses(tmp_path).place() == ""
    (tmp_path / "1").mkdir()
    (tmp_path / "1/stat").write_text("1 (init) S")
    assert SystemProcesses(tmp_path).place().endswith("/b-1/4026531836")
