"""Two agents as real processes over one folder, for the demo: started, watched, one of them killed.

Guarantees: only processes started here are signalled, and none outlives `stop`; what is shown is read from the same
records that the agents share. Spans are short by configuration, so that a takeover takes seconds instead of minutes.
"""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from fdagent.errors import GaveUp
from fdagent.fleet.records import AGENTS, REQUESTS, STATUSES, id_of, read_all
from fdagent.ports import Clock, Store
from models.agent import AgentRecord
from models.slot import Request
from models.status import FINAL, RequestState, Status

NAMES = ("etl-01", "etl-02")
STALE_SECONDS, POLL_SECONDS = 4, 1
TAKEOVER_SECONDS = 2 * STALE_SECONDS + POLL_SECONDS
"""The bound: the stale span, the grace (the span, where that is short), and a poll."""
LOOK_SECONDS = 0.05
END_SECONDS = 20.0
AGENT_TOML = """\
# Made by `fdagent demo`. The spans are much shorter than anybody should use.
[agent]
name = "{name}"
project = "."
environments = ["dev"]
home = ".local/{name}"
status_seconds = {poll}
stale_seconds = {stale}
poll_seconds = {poll}
table_lease_seconds = 5
drain_seconds = 10

[pipeline]
enabled = true
claim = "when_free"
take_over = true

[[schedule]]
id = "weather"
env = "dev"
entities = ["bronze.weather", "silver.weather"]
every_minutes = 1
shared = true
"""


@dataclass(slots=True)
class Fleet:
    """The demo's agents.

    Args:
        folder: The unpacked demo.
        store: The environment's control root.
    """

    folder: Path
    store: Store
    clock: Clock
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self) -> None:
        """Write each agent's file and start its daemon."""
        for name in NAMES:
            config = self.folder / f"{name}.toml"
            text = AGENT_TOML.format(name=name, stale=STALE_SECONDS, poll=POLL_SECONDS)
            config.write_text(text, encoding="utf-8")
            log = self.folder / ".local" / f"{name}.out"
            log.parent.mkdir(exist_ok=True)
            with log.open("wb") as out:
                self._running[name] = subprocess.Popen(
                    [sys.executable, "-P", "-m", "fdagent", "run", "--config", str(config)],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def kill(self, name: str) -> int:
        """End one at once with its workers, as a power cut would; its pid."""
        victim = self._running.pop(name)
        workers = psutil.Process(victim.pid).children(recursive=True)
        victim.kill()
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
        victim.wait(END_SECONDS)
        return victim.pid

    def stop(self) -> None:
        """Ask each to stop, and see it gone."""
        for daemon in self._running.values():
            daemon.send_signal(signal.SIGTERM)
        for daemon in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(END_SECONDS)
            daemon.kill()
            daemon.wait(END_SECONDS)
        self._running.clear()

    def alive(self) -> tuple[str, ...]:
        """The agents whose daemons were started and not killed."""
        return tuple(self._running)

    def agents(self) -> list[AgentRecord]:
        """Every agent's record."""
        return [found.record for found in read_all(self.store, AGENTS, AgentRecord) if found.record is not None]

    def status(self, request_id: str) -> Status | None:
        """A request's status."""
        return self.statuses().get(request_id)

    def statuses(self) -> dict[str, Status]:
        """Every request that somebody has judged, by id."""
        found = read_all(self.store, STATUSES, Status)
        return {id_of(one.key): one.record for one in found if one.record is not None}

    def requests(self) -> dict[str, Request]:
        """Every request, by id."""
        found = read_all(self.store, REQUESTS, Request)
        return {id_of(one.key): one.record for one in found if one.record is not None}

    def looks(self, seconds: float, what: str) -> Iterator[None]:
        """Look again and again, for at most so long.

        Raises:
            GaveUp: What was waited for did not happen, or an agent has ended by itself.
        """
        until = self.clock.elapsed() + seconds
        while self.clock.elapsed() < until:
            yield
            for name, daemon in self._running.items():
                if daemon.poll() is not None:
                    said = self.folder / ".local" / f"{name}.out"
                    raise GaveUp(f"{name} has ended by itself, with code {daemon.returncode}.", fix=f"{said} says why.")
            self.clock.sleep(LOOK_SECONDS)
        raise GaveUp(
            f"In {seconds:.0f} s the demo did not see {what}.",
            fix=f"Look at the agents' output in {self.folder / '.local'}/*.out.",
        )


def is_under_way(status: Status | None, tables: int) -> bool:
    """Does it run, with at least so many tables done?"""
    if status is None or status.state is not RequestState.RUNNING:
        return False
    return sum(table.state not in ("waiting", "running") for table in status.tables or ()) >= tables


def has_ended(status: Status | None) -> bool:
    """Is it final?"""
    return status is not None and status.state in FINAL
