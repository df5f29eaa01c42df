"""A ground for several agents: one project, one control root, and what its tables, records and run log have to be.

The tables are local. The control files lie in the project's own control folder (`local`) or on Azurite (`azurite`), where
an agent may have a net of its own that can be cut.
"""

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import azurite
from daemon_kit import fault, make_site, run_keys
from process_kit import Site
from takeover_agent import CLOCK, IDS, LONGEST, LOOK, POLL, SLOW_LOOK, STALE, Member, Net

from fdagent.fleet.asking import post_cancel, post_request, status_of
from fdagent.fleet.records import request_key
from fdagent.fleet.release import promote
from fdagent.ports import Store
from fdagent.project import graph
from fdagent.stores.local import LocalStore
from models.run import RunStatus
from models.slot import Request
from models.status import FINAL, Status

T = TypeVar("T")
LOST = 2 * STALE
"""The stale span and its grace, which is the span where that is under a minute."""
BOUND = LOST + POLL
"""From the end of an agent to the takeover: up to a poll until its last beat is met, the spans, up to a poll to look."""
BUSY = 8.0
"""What a busy machine may add to a bound before a test calls it broken: the machine's, not the agents'."""
TRY = 3
"""Seconds that an agent waits for one answer of the Blob server; the product's own are longer than these spans."""
TABLE = "silver.order_events"
"""The table in the middle: an agent that is held, is held while it runs this one."""
FOLDER = "LH_Silver/Tables/order_events"
COMMIT = "fdagent.engine.tables.delta:DeltaTablePort.commit"
CHECK = "fdagent.work.requesthold:RequestHold.check"
CHECKS_BEFORE = 3
"""Looks at the status until the second table's commit: two of the first table, and one before the second one begins."""
STORE_CALLS = ("list", "read", "write", "delete")
DONE = (RunStatus.SUCCEEDED, RunStatus.NO_CHANGE, RunStatus.ALREADY_DONE)


class Ground:
    """One case's project, control root and agents."""

    def __init__(self, root: Path, server: azurite.Azurite | None, over: threading.Event) -> None:
        self.root, self._over = root, over
        self._closing = contextlib.ExitStack()
        self.members: list[Member] = []
        self.nets: dict[str, Net] = {}
        self.site: Site = make_site(root / "project")
        self._server = server
        self._container = "" if server is None else server.new_container()
        self.store: Store = self._open()
        if server is not None:
            version = self.site.places.project.metadata_version
            promote(self.store, version, shown="", git_commit="", by="test", clock=CLOCK, ids=IDS)
        self.go = root / "go"
        self.held = root / "held"

    def _open(self) -> Store:
        if self._server is None:
            return LocalStore(self.site.places.control, clock=CLOCK, ids=IDS)
        return self._server.store(self._container)

    def environment(self, member: Member) -> Mapping[str, str]:
        """What tells a member's processes where the control root is."""
        if self._server is None:
            return {}
        net = self.nets.get(member.name)
        at = {
            "container": self._server.container(self._container, None if net is None else net.port),
            "folder": "lake/Files/_control",
            "account": azurite.ACCOUNT,
            "key": azurite.KEY,
            "try_seconds": TRY,
        }
        return {"FDAGENT_BLOB_CONTROL": json.dumps(at)}

    def hooks(self, member: Member) -> list[Mapping[str, Any]]:
        """What puts the control root where it is, and what lets it be cut off."""
        if self._server is not None:
            return [{"at": "fdagent.fleet.release:open_control", "do": "call blobcontrol:open_control", "role": ""}]
        calls = (f"fdagent.stores.local:LocalStore.{name}" for name in STORE_CALLS)
        return [{"at": call, "do": f"away {member.away}", "role": ""} for call in calls]

    def member(self, name: str, **keys: Any) -> Member:
        """An agent, not started."""
        self.members.append(Member(self, name, **keys))
        return self.members[-1]

    def netted(self, name: str, **keys: Any) -> Member:
        """An agent whose way to the control root can be cut."""
        if self._server is not None:
            self.nets[name] = self._closing.enter_context(Net(self._server.port, TRY, None))
        return self.member(name, **keys)

    @contextlib.contextmanager
    def cut(self, member: Member) -> Iterator[None]:
        """Its control root gives it no answer for as long as a block."""
        net = self.nets.get(member.name)
        if net is None:
            member.away.touch()
            yield
            member.away.unlink()
        else:
            net.whole.clear()
            yield
            net.whole.set()

    def caught(self, member: Member, request: str, at: str = CHECK, when: str = "before") -> Member:
        """Start it, ask for everything, and wait until it stands at that point of the middle table."""
        more = {"skip": CHECKS_BEFORE} if at == CHECK else {"text": FOLDER}
        member.start(fault(at, f"wait {self.go}", self.held, when=when, **more))
        if self.store.read(request_key(request)) is None:
            self.post(request)
        self.until(self.held.exists, f"{member.name} is in the middle of {TABLE}")
        status = self.status(request)
        assert status is not None
        assert (str(status.state), status.agent) == ("running", member.name)
        return member

    def post(self, request: str, *entities: str) -> None:
        """A pipeline asks."""
        now = time.time()
        asked = Request(entities=entities or None, submitted_by="test", submitted_at=now, deadline=now + 3600)
        post_request(self.store, request, asked, clock=CLOCK, ids=IDS)

    def cancel(self, request: str) -> None:
        """Somebody wishes that it is cancelled."""
        assert post_cancel(self.store, request, by="test", clock=CLOCK, ids=IDS)

    def status(self, request: str) -> Status | None:
        """A request's status."""
        return status_of(self.store, request)

    def becomes(self, request: str, true: Callable[[Status], bool], what: str) -> Status:
        """The status of a request, as soon as that is true of it."""

        def found() -> Status | None:
            status = self.status(request)
            return status if status is not None and true(status) else None

        return self.until(found, f"{request} {what}; it is {self.status(request)}")

    def ended(self, request: str) -> Status:
        """Its final status."""
        return self.becomes(request, lambda status: status.state in FINAL, "has ended")

    def taken_over(self, request: str, since: float, holder: str) -> float:
        """Seconds from `since` until another has taken it over from `holder`: within the bound, and not early."""
        self.becomes(request, lambda status: status.taken_over_from == holder, f"is taken over from {holder}")
        took = time.monotonic() - since
        assert STALE < took < BOUND + BUSY, f"taken over after {took:.1f} s"
        return took

    def until(self, answer: Callable[[], T], what: str, every: float = LOOK) -> T:
        """Ask again until the answer is not empty."""
        end = time.monotonic() + LONGEST
        while True:
            found = answer()
            if found:
                return found
            assert not self._over.is_set(), f"given up before: {what}"
            if time.monotonic() > end:
                raise AssertionError(f"not within {LONGEST:.0f} s: {what}\n{self._said()}")
            time.sleep(every)

    def span(self, since: float, seconds: float) -> None:
        """Let a span pass."""
        self.until(lambda: time.monotonic() >= since + seconds, "a span has passed")

    def stop(self) -> None:
        """Each agent that runs is asked to stop, and ends in order."""
        running = [member for member in self.members if member.process is not None and not member.ended]
        for member in running:
            member.ask_to_stop()
        assert [member.exit() for member in running] == [0] * len(running), self._said()

    def beats(self, member: Member) -> None:
        """Wait until it, the very start it was, beats again."""
        begun, before = len(member.audit("agent")), member.log("started")
        self.until(lambda: len(member.audit("agent")) > begun, f"{member.name} beats")
        assert member.log("started") == before

    def logged(self, request: str, table: str, *rows: tuple[str, str]) -> None:
        """Wait until the run log has these rows of a table, and no others: who ran it, and how it ended."""
        self.until(lambda: len(self.rows(request)[table]) >= len(rows), f"the run log has {rows}", SLOW_LOOK)
        assert sorted(self.rows(request)[table]) == sorted(rows)

    def right(self, tables: Mapping[str, list[str]], *requests: str) -> None:
        """Nothing is leased, the tables are those of an undisturbed run, and each effect of a request is there once."""
        self.until(lambda: not self.store.list("leases/"), "no table is leased")
        found = self.site.tables()
        for name, rows in tables.items():
            assert found[name] == rows, name
        effects = {name: Counter(keys) for name, keys in run_keys(self.site).items()}
        for name, keys in effects.items():
            assert set(keys.values()) == {1}, (name, keys)
            assert all(keys[f"fdagent/{request}"] == 1 for request in requests), (name, keys)
        if self._server is not None:
            local = {path.name for path in self.site.places.control.iterdir()}
            assert local <= {"release.json", ".locks", ".tmp"}, f"control files were written beside the server: {local}"

    def rows(self, request: str) -> dict[str, list[tuple[str, str]]]:
        """Per table of a request, the run log's rows: who ran it, and how it ended."""
        found: dict[str, list[tuple[str, str]]] = {name: [] for name in self.tables}
        for row in self.site.log():
            if row.request_id == request:
                found[row.entity].append((row.worker.partition("/")[0], str(row.status)))
        return found

    @property
    def tables(self) -> list[str]:
        """The project's tables, in the order of a run."""
        return list(graph.order(self.site.places.project))

    def close(self) -> None:
        """End every agent."""
        for member in self.members:
            member.close()
        for net in self.nets.values():
            net.whole.set()
        self._closing.close()

    def _said(self) -> str:
        texts = (member.out.read_text(errors="replace")[-3000:] for member in self.members if member.out.exists())
        return "\n".join(texts)


def by(status: Status) -> dict[str | None, tuple[str | None, str | None]]:
    """Of each table in a status, how it ended and who finished it."""
    return {table.entity: (table.state, table.by) for table in status.tables or ()}
