"""Faults at named points of real processes: Python imports this by itself where it lies on PYTHONPATH.

FDAGENT_FAULTS holds a JSON list. Each fault: `at` ("module:Class.method"), `when` ("before" or "after"), `role`
("daemon", "worker" or "" for both), `do`, `mark` (a file's name: the fault has come once it is there), and perhaps
`times` (how often it comes, over all processes; 1), `skip` (calls let through first, in each process), `needs` (a mark
that must be there) and `text` (must be in the call's owner or first arguments, such as a table's folder). What `do` may be: `kill`, `kill daemon` (the worker's parent),
`kill both`, `stop`, `segfault`, `hold the lock N` (native code that keeps the interpreter's lock N seconds), `wait FILE`,
`leak NAME` (an error whose text is that environment variable).

Two kinds need no `when` and no `mark`, and come at every call: `away FILE` (the store does not answer while that file is
there) and `call MODULE:FUNCTION` (that function is called instead).
"""

import ctypes
import functools
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

LONGEST_WAIT = 60.0


def come(fault):
    """Leave the mark of one coming; False when it came often enough."""
    for number in range(fault.get("times", 1)):
        try:
            os.close(os.open(fault["mark"] + (f".{number}" if number else ""), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return True
    return False


def do(what):
    verb, _, more = what.rpartition(" ")
    if what in ("kill daemon", "kill both"):
        os.kill(os.getppid(), signal.SIGKILL)
    if what in ("kill", "kill both"):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if what == "segfault":
        ctypes.string_at(0)
    if verb == "hold the lock":
        ctypes.PyDLL(None).usleep(int(float(more) * 1e6))
    if verb == "leak":
        raise RuntimeError(os.environ[more])
    if verb == "wait":
        end = time.monotonic() + LONGEST_WAIT
        while not Path(more).exists() and time.monotonic() < end:
            time.sleep(0.01)


def is_away(faults):
    return any(Path(fault["do"].removeprefix("away ")).exists() for fault in faults)


def called_instead(faults):
    for fault in faults:
        verb, _, function = fault["do"].partition(" ")
        if verb == "call":
            module, _, name = function.partition(":")
            return getattr(importlib.import_module(module), name)
    return None


def patched(owner, name, faults):
    was = called_instead(faults) or getattr(owner, name)
    away = [fault for fault in faults if fault["do"].startswith("away ")]
    faults = [fault for fault in faults if "mark" in fault]
    calls = [0] * len(faults)

    @functools.wraps(was)
    def around(*args, **kwargs):
        if is_away(away):
            raise importlib.import_module("fdagent.errors").Unavailable("The control folder gives no answer.")
        due = []
        about = repr(getattr(args[0], "folder", getattr(args[0], "table", ""))) + repr(args[1:3])
        for number, fault in enumerate(faults):
            if fault.get("text", "") in about and Path(fault.get("needs", "/")).exists():
                calls[number] += 1
                if calls[number] > fault.get("skip", 0):
                    due.append(fault)
        for fault in due:
            if fault["when"] == "before" and come(fault):
                do(fault["do"])
        answer = was(*args, **kwargs)
        for fault in due:
            if fault["when"] == "after" and come(fault):
                do(fault["do"])
        return answer

    setattr(owner, name, around)


class Finder(importlib.abc.MetaPathFinder):
    """Patches a module right after its import."""

    def __init__(self, faults):
        self.by_module = {}
        self.asked = ""
        for fault in faults:
            module, _, path = fault["at"].partition(":")
            self.by_module.setdefault(module, {}).setdefault(path, []).append(fault)

    def find_spec(self, name, path=None, target=None):
        # `python -m` asks for the spec of its module first, and imports it later.
        if name not in self.by_module or name == self.asked:
            return None
        points, self.asked = self.by_module[name], name
        spec = importlib.util.find_spec(name)
        self.asked = ""
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            for where, faults in points.items():
                owner, _, method = where.rpartition(".")
                patched(functools.reduce(getattr, filter(None, owner.split(".")), module), method, faults)

        spec.loader.exec_module = exec_module
        return spec


def install():
    role = "worker" if "fdagent.work.worker" in sys.orig_argv else "daemon" if "run" in sys.orig_argv else "other"
    faults = [fault for fault in json.loads(os.environ.get("FDAGENT_FAULTS", "[]")) if fault["role"] in ("", role)]
    if faults:
        sys.meta_path.insert(0, Finder(faults))


install()
