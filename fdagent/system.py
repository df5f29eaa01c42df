"""The real clock, ids and processes of this machine: the only module that calls them.

Guarantees: `elapsed` goes on while the machine sleeps; `place` names a machine's one boot and one pid namespace, and
is empty wherever "that process is gone" could be wrong; a process's start is a number that no change of a clock moves.
Does not guarantee: that two copies of one running virtual machine have different places (both keep the boot identity
of the moment they were copied); on systems other than Linux, Windows and macOS, that `elapsed` counts sleep.
"""

import contextlib
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROC = Path("/proc")
STATE_FIELD, THREADS_FIELD, START_FIELD = 0, 17, 19
"""Where proc(5) puts a process's state and start, counted after the name's closing bracket."""


def _steady() -> Callable[[], float]:
    """The counter that includes suspend: CLOCK_BOOTTIME, GetTickCount64, or what the system calls monotonic.

    `time.monotonic` stops in suspend on Linux and macOS. macOS's own CLOCK_MONOTONIC does not.
    """
    if sys.platform == "win32":
        import ctypes

        ticks = ctypes.windll.kernel32.GetTickCount64
        ticks.restype = ctypes.c_ulonglong
        return lambda: float(ticks()) / 1000
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return lambda: time.clock_gettime(clock)


class SystemClock:
    """This machine's clocks."""

    def __init__(self) -> None:
        self._elapsed = _steady()

    def wall(self) -> float:
        """Seconds since the epoch, as the machine believes; may jump."""
        return time.time()

    def elapsed(self) -> float:
        """Seconds since some moment of this boot, suspend included; resolution 16 ms on Windows."""
        return self._elapsed()

    def sleep(self, seconds: float) -> None:
        """Wait `seconds` of running time; zero or less returns at once."""
        if seconds > 0:
            time.sleep(seconds)


class SystemIds:
    """Random ids from the system's own generator, so that a forked worker never repeats its parent's."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def new(self) -> str:
        """32 random hex digits."""
        return os.urandom(16).hex()

    def fraction(self) -> float:
        """A random number in [0, 1)."""
        return self._random.random()


class SystemProcesses:
    """The processes of this machine that this process can see."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc

    def place(self) -> str:
        """`host/boot/pid namespace`, or nothing where another's absence would prove nothing.

        Nothing, too, where /proc hides other users' processes (`hidepid`): every process not ours would look gone.
        """
        if sys.platform == "win32":
            boot = _windows_boot()
            return f"{socket.gethostname()}/{boot}/windows" if boot else ""
        try:
            boot = (self._proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            space = (self._proc / "self/ns/pid").readlink().name.removeprefix("pid:[").removesuffix("]")
            (self._proc / "1/stat").read_bytes()
        except OSError:
            return ""
        return f"{socket.gethostname()}/{boot}/{space}"

    def pid(self) -> int:
        """This process's id."""
        return os.getpid()

    def started_at(self, pid: int) -> float | None:
        """When process `pid` started, or None when there is none; compared only for equality, within one place.

        Linux: seconds since boot, which a corrected clock does not move, as epoch seconds would be; a zombie has
        ended once none of its threads is left. Elsewhere: epoch seconds that the system stored at the start.
        """
        if sys.platform != "linux":
            return _psutil_start(pid)
        try:
            stat = (self._proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat.rpartition(")")[2].split()
        ended = fields[STATE_FIELD] in "ZX" and int(fields[THREADS_FIELD]) <= 1
        return None if ended else int(fields[START_FIELD]) / os.sysconf("SC_CLK_TCK")


def _psutil_start(pid: int) -> float | None:
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.NoSuchProcess, ValueError):
        return None


def _windows_boot() -> str:
    """The number of this boot, which Windows counts in its registry; empty where it doesn't."""
    if sys.platform == "win32":
        import winreg

        place = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
        with contextlib.suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
            return str(winreg.QueryValueEx(key, "BootId")[0])
    return ""
