"""The local folder under many processes that are killed: whole records, free locks, nothing acknowledged lost."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import hammer
import pytest

from fdagent.ports import Match

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX's")]

SCRIPT = Path(hammer.__file__)
WRITERS, KILLS = 8, 100


def start(*args):
    # Without site-packages: the store needs none, and 108 processes start.
    return subprocess.Popen([sys.executable, "-I", "-S", str(SCRIPT), *map(str, args)], stdout=subprocess.PIPE)


@pytest.mark.long
def test_eight_writers_and_a_hundred_kills_tear_no_record_stick_no_lock_and_lose_no_acknowledged_write(tmp_path):
    root, chance = tmp_path / "_control", random.Random(1)
    running = {f"w{n}": start("write", root, f"w{n}") for n in range(WRITERS)}
    said, names, stop, torn = {}, iter(range(WRITERS, 10_000)), threading.Event(), []
    reader = threading.Thread(target=read_on, args=(root, stop, torn))
    reader.start()
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.01, 0.08))
            name = chance.choice(list(running))
            said[name] = kill(running.pop(name))
            name = f"w{next(names)}"
            running[name] = start("write", root, name)
    finally:
        said |= {name: kill(process) for name, process in running.items()}
        stop.set()
        reader.join(20)
    assert torn == []
    store = hammer.open_store(root)
    total = 0
    for key in hammer.KEYS:
        by = json.loads(store.read(key).body)["by"]
        for name, keys in said.items():
            # One more than was said: killed between the change and the word about it.
            assert by.get(name, 0) - keys[key] in (0, 1), (name, key)
        total += sum(by.values())
    assert total > 10 * KILLS
    assert_every_lock_is_free(root)


def read_on(root, stop, torn):
    """Read and list all the time; note what is not a whole record, or not listed though it was there before."""
    store, seen = hammer.open_store(root), set()
    while not stop.is_set():
        try:
            for key in hammer.KEYS:
                blob = store.read(key)
                if blob is not None:
                    json.loads(blob.body)
                    seen.add(key)
            missing = seen - {entry.key for entry in store.list("")}
            if missing:
                torn.append(missing)
        except Exception as error:
            torn.append(error)


def kill(process):
    """kill -9; how often it said each key."""
    process.send_signal(signal.SIGKILL)
    said, _ = process.communicate(timeout=20)
    whole = said.decode().rpartition("\n")[0]
    assert process.returncode == -signal.SIGKILL, "a writer ended by itself"
    return Counter(whole.split("\n"))


def assert_every_lock_is_free(root):
    store = hammer.open_store(root)
    done = threading.Event()

    def write_all():
        for key in hammer.KEYS:
            hammer.add_one(store, key, "last")
        done.set()

    threading.Thread(target=write_all, daemon=True).start()
    assert done.wait(10), "a lock is stuck"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("locked", b"old"),
        ("half written", b"old"),
        ("before file sync", b"old"),
        ("before replace", b"old"),
        ("after replace", b"new " * 1000),
        ("before folder sync", b"new " * 1000),
        ("after folder sync", b"new " * 1000),
    ],
)
def test_a_writer_killed_at_any_step_leaves_the_old_record_or_the_new_one_and_a_free_lock(tmp_path, step, expected):
    root = tmp_path / "_control"
    store = hammer.open_store(root)
    store.write(hammer.KEYS[0], b"old", hammer.Absent())
    dead = start("die", root, step)
    assert dead.wait(20) == -signal.SIGKILL
    dead.stdout.close()
    blob = store.read(hammer.KEYS[0])
    assert blob.body == expected
    assert [entry.etag for entry in store.list("status/")] == [blob.etag]
    store.write(hammer.KEYS[0], b"next", Match(blob.etag))
    assert store.read(hammer.KEYS[0]).body == b"next"


def test_what_a_killed_writer_set_aside_is_swept_once_it_is_old_and_not_before(tmp_path):
    root = tmp_path / "_control"
    hammer.open_store(root).write(hammer.KEYS[0], b"old", hammer.Absent())
    for _ in range(2):
        start("die", root, "before replace").communicate(timeout=20)
    old, young = sorted((root / ".tmp").iterdir())
    os.utime(old, (time.time() - 4000,) * 2)
    hammer.open_store(root).write("status/b.json", b"x", hammer.Absent())
    assert list((root / ".tmp").iterdir()) == [young]


@pytest.mark.long
def test_of_sixteen_takers_of_a_lapsed_lease_exactly_one_wins_in_each_of_150_rounds(tmp_path):
    """Case 12's other half: the killed holder's lease is taken over, by one."""
    root, rounds, takers = tmp_path / "_control", 150, 16
    hammer.open_store(root).write(hammer.KEYS[2], b'{"round": -1}', hammer.Absent())
    context = multiprocessing.get_context("spawn")
    ready, won = context.Barrier(takers), context.Queue()
    rivals = [context.Process(target=hammer.take_lapsed, args=(root, rounds, ready, won, n)) for n in range(takers)]
    [rival.start() for rival in rivals]
    winners = [won.get(timeout=60) for _ in range(rounds)]
    [rival.join(30) for rival in rivals]
    assert [rival.exitcode for rival in rivals] == [0] * takers
    assert won.empty()
    assert sorted(turn for turn, _ in winners) == list(range(rounds))
    last = json.loads(hammer.open_store(root).read(hammer.KEYS[2]).body)
    assert (last["round"], last["owner"]) == max(winners)
    assert len({n for _, n in winners}) > 1
