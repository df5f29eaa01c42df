"""One of several agents as real processes: started, killed, stopped and woken, looked at in its log and its queue.

The spans are the shortest that leave a busy machine room.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil
from daemon_kit import FAULTS, is_worker
from faultproxy import Proxy
from process_kit import command

from fdagent.fleet.mailbox import job_key
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs
from fdagent.system import SystemClock, SystemIds
from models.job import FINAL, Job

if TYPE_CHECKING:
    from takeover_kit import Ground

CLOCK, IDS = SystemClock(), SystemIds()

STATUS, STALE, POLL, LEASE = 1, 3, 1, 20
"""Seconds: between beats, until others may call an agent late, between polls, a table's lease."""
LONGEST = 90.0
LOOK, SLOW_LOOK = 0.05, 0.5
HOOK = str(Path(__file__).with_name("hook"))


class Net(Proxy):
    """One agent's way to the Blob server. While it is cut nothing passes; what was under way arrives once it is whole."""

    def __enter__(self) -> Self:
        self.whole = threading.Event()
        self.whole.set()
        super().__enter__()
        return self

    def _choose(self, method):
        return "pass" if self.whole.is_set() else "keep"

    def _keep(self, handler, send, headers):
        self.whole.wait(LONGEST)
        return self._answer(handler, send())


class Member:
    """One agent of a ground. `pipeline` are keys of its `[pipeline]`, `schedule` its shared schedule."""

    def __init__(
        self,
        ground: "Ground",
        name: str,
        *,
        poll: int = POLL,
        stale: int = STALE,
        schedule: Mapping[str, Any] | None = None,
        **pipeline: Any,
    ) -> None:
        self.ground, self.name = ground, name
        self.home = ground.root / name
        self.config, self.out = ground.root / f"{name}.toml", ground.root / f"{name}.out"
        self.away = ground.root / f"{name}.away"
        self.process: subprocess.Popen[bytes] | None = None
        agent = {
            "name": name,
            "project": str(ground.site.root),
            "home": str(self.home),
            "environments": ["dev"],
            "status_seconds": STATUS,
            "stale_seconds": stale,
            "poll_seconds": poll,
            "table_lease_seconds": LEASE,
            "drain_seconds": 60,
        }
        tables = {
            "[agent]": agent,
            "[retry]": {"backoff_seconds": 0, "max_backoff_seconds": 0},
            "[pipeline]": {"enabled": True, "claim": "when_free", "take_over": True, **pipeline},
        }
        if schedule is not None:
            tables["[[schedule]]"] = {"env": "dev", "shared": True, **schedule}
        self.config.write_text("".join(_toml(header, values) for header, values in tables.items()))

    def start(self, *faults: Mapping[str, Any]) -> "Member":
        """Start `fdagent run`, and wait until its record is there."""
        path = os.pathsep.join([FAULTS, HOOK])
        own = {"PYTHONPATH": path, **self.ground.environment(self)}
        own["FDAGENT_FAULTS"] = json.dumps([*self.ground.hooks(self), *faults])
        before = self.audit("agent").count("announce")
        with self.out.open("ab") as out:
            self.process = subprocess.Popen(
                command("run", "--config", str(self.config)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **own},
            )
        self.ground.until(lambda: self.audit("agent").count("announce") > before, f"{self.name} is announced")
        return self

    def kill(self) -> float:
        """The machine is gone: daemon and workers at once; when."""
        everything = self._everything()
        for process in everything:
            process.kill()
        at = time.monotonic()
        assert self.exit() == -signal.SIGKILL
        psutil.wait_procs(everything, LONGEST)
        return at

    def pause(self) -> float:
        """The machine is frozen: SIGSTOP for daemon and workers; when."""
        for process in self._everything():
            process.suspend()
        return time.monotonic()

    def resume(self) -> None:
        """It wakes up."""
        for process in self._everything():
            process.resume()

    def ask_to_stop(self) -> None:
        """SIGTERM."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    def exit(self) -> int:
        """Its exit code, once it has ended."""
        assert self.process is not None
        return self.process.wait(LONGEST)

    @property
    def ended(self) -> bool:
        """Has its daemon ended?"""
        return self.process is not None and self.process.poll() is not None

    def close(self) -> None:
        """End what is left of it."""
        if self.process is not None:
            for process in self._everything():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self.process.kill()
            self.process.wait()

    def _everything(self) -> list[psutil.Process]:
        assert self.process is not None
        try:
            daemon = psutil.Process(self.process.pid)
            return [daemon, *(child for child in daemon.children() if is_worker(child))]
        except psutil.NoSuchProcess:
            return []

    def log(self, event: str) -> list[dict[str, Any]]:
        """Its log's lines of one event."""
        return [line for line in _lines(self.home, "agent") if line["event"] == event]

    def audit(self, chart: str, key: str = "") -> list[str]:
        """The events of one chart that it committed, oldest first, of one key or all."""
        return [line["event"] for line in _lines(self.home, "audit") if line["chart"] == chart and key in line["key"]]

    def audited(self, chart: str, key: str, *events: str) -> None:
        """Wait until these are what it committed of one chart and key, no more and no less."""
        found = lambda: self.audit(chart, key) == list(events)  # noqa: E731
        self.ground.until(found, f"{self.name} has committed {events} of {chart} {key}")

    def told(self, event: str, words: str) -> None:
        """Wait for such a line in its log."""
        found = lambda: any(words in line["message"] for line in self.log(event))  # noqa: E731
        self.ground.until(found, f"{self.name} tells {event} {words!r}")

    def job(self, request: str) -> Job | None:
        """The newest job of a request in its queue."""
        with contextlib.closing(Database(self.home)) as database:
            return Jobs(database, clock=CLOCK, ids=IDS).of_key(job_key("dev", request))

    def ended_job(self, request: str, *states: str) -> None:
        """Wait until its job of the request has ended so, and its audit log says it."""
        found = lambda: self.job(request).state in FINAL  # noqa: E731
        self.ground.until(found, f"{self.name}'s job of {request} has ended", SLOW_LOOK)
        job = self.job(request)
        assert str(job.state) in states
        ended = lambda: {"cancel", "bury"} & set(self.audit("job", job.id))  # noqa: E731
        self.ground.until(ended, f"{self.name}'s audit log tells the end of its job")


def _lines(home: Path, name: str) -> Iterator[dict[str, Any]]:
    for file in sorted((home / "logs").glob(f"{name}.*.log"), key=lambda path: int(path.name.split(".")[1])):
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


def _toml(header: str, values: Mapping[str, Any]) -> str:
    return "\n".join([header, *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""])
