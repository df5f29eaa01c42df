"""What the processes of the torture tests do; they need nothing but the store, so they start in a blink."""

import json
import os
import random
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from fdagent.errors import Conflict
from fdagent.ports import Absent, Match
from fdagent.stores import local, recordfile
from fdagent.stores.filelock import PosixFiles, PosixLocker
from fdagent.stores.local import LocalStore
from fdagent.system import SystemClock, SystemIds

KEYS = ["status/a.json", "status/b.json", "leases/t.x.json"]


def open_store(root, **ports):
    return LocalStore(Path(root), clock=SystemClock(), ids=SystemIds(), **ports)


def add_one(store, key, who):
    """Count one up in `who`'s name, however often it takes; the whole record names how many each one counted."""
    while True:
        blob = store.read(key)
        record = {"by": {}, "op": ""} if blob is None else json.loads(blob.body)
        record["by"][who] = record["by"].get(who, 0) + 1
        record["op"] = os.urandom(8).hex()
        try:
            return store.write(key, json.dumps(record).encode(), Absent() if blob is None else Match(blob.etag))
        except Conflict:
            continue


def write_on(root, who):
    """Change records until killed, saying each one after it was acknowledged."""
    store, chance = open_store(root), random.Random(who)
    while True:
        key = chance.choice(KEYS)
        add_one(store, key, who)
        os.write(1, f"{key}\n".encode())


def die_at(root, step):
    """Kill this very process at one step of a write of a.json."""

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    class Locker(PosixLocker):
        def take(self, handle, *, wait):
            taken = super().take(handle, wait=wait)
            if step == "locked":
                die()
            return taken

    class Files(PosixFiles):
        def replace(self, source, target):
            if step == "before replace":
                die()
            super().replace(source, target)
            if step == "after replace":
                die()

        def sync_folder(self, path):
            if step == "before folder sync":
                die()
            super().sync_folder(path)
            if step == "after folder sync":
                die()

    def put_aside_half(path, body):
        Path(path).write_bytes(body[: len(body) // 2])
        die()

    if step == "half written":
        local.put_aside = put_aside_half
    if step == "before file sync":
        recordfile.os.fsync = lambda _: die()
    store = open_store(root, files=Files(), locker=Locker())
    store.write(KEYS[0], b"new " * 1000, Match(store.read(KEYS[0]).etag))


def take_lapsed(root, rounds, ready, won, n):
    """Read the lapsed lease, wait for all rivals to have read it, try to take it; `won` gets who did."""
    store = open_store(root)
    for turn in range(rounds):
        blob = store.read(KEYS[2])
        ready.wait(30)
        try:
            store.write(
                KEYS[2], json.dumps({"round": turn, "owner": n, "op": os.urandom(8).hex()}).encode(), Match(blob.etag)
            )
            won.put((turn, n))
        except Conflict:
            pass
        ready.wait(30)


if __name__ == "__main__":
    {"write": write_on, "die": die_at}[sys.argv[1]](*sys.argv[2:])
