"""One agent as a real process over a project of `process_kit.Site`: start, kill, wait for what its log and queue say."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypeVar

import psutil
from deltalake import DeltaTable
from process_kit import EVENTS, Site, command

from fdagent.cli.where import where
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.local import LocalStore
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from fdagent.work.runner import Agent as Runs
from fdagent.work.worker import Work
from models.job import FINAL, Job, JobState
from models.run import RunStatus

T = TypeVar("T")

CANARY = "canary-7f3c9a51-sig=never-to-be-seen"
SECRETS: Mapping[str, Mapping[str, Any]] = {
    "identity": {
        "kind": "client_secret",
        "tenant_id": "0f8fad5b-d9cb-469f-a165-70867728950e",
        "client_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "client_secret_env": "CANARY_CLIENT_SECRET",
    },
    "alerts": {"teams_webhook_env": "CANARY_WEBHOOK"},
}
SECRET_VARIABLES = ("CANARY_CLIENT_SECRET", "CANARY_WEBHOOK")
COLUMNS = ("order_id", "customer", "status", "amount", "updated_at")
RETRY = {"backoff_seconds": 0, "max_backoff_seconds": 0}

LONGEST_SECONDS = 60.0
FAULTS = str(Path(__file__).with_name("faults"))
DONE = (RunStatus.SUCCEEDED, RunStatus.NO_CHANGE, RunStatus.ALREADY_DONE)
SETTINGS: Mapping[str, Any] = {
    "name": "etl-01",
    "environments": ["dev"],
    "status_seconds": 1,
    "stale_seconds": 2,
    "table_lease_seconds": 5,
    "drain_seconds": 60,
}


def until(answer: Callable[[], T], what: str, seconds: float = LONGEST_SECONDS) -> T:
    """Ask again until the answer is not empty."""
    end = time.monotonic() + seconds
    while True:
        found = answer()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.02)


class LongSite(Site):
    """A site whose deliveries may go on for longer than a month."""

    def deliver(self) -> list[dict[str, str]]:
        """The next day's file: four new orders, a change of an old one, one without an amount, and a ragged line."""
        n = self.delivered = self.delivered + 1
        day = (date(2027, 1, 31) + timedelta(days=n)).isoformat()
        new = [(f"{n}0{i}", f"C{i % 3}", "new", f"{n}.{i}0", f"{day}T0{i}:00:00Z") for i in range(4)]
        paid = (f"{n - 1}01", "C0", "paid", f"{n}.00", f"{day}T09:00:00Z")
        bad = (f"{n}09", "C0", "new", "", f"{day}T00:00:00Z")
        rows = [dict(zip(COLUMNS, values, strict=True)) for values in (*new, paid, bad)]
        lines = [",".join(COLUMNS), *(",".join(row.values()) for row in rows), f"{n}08,ragged"]
        part = self.root / "landing" / f"orders_{day}.part"
        part.write_text("\n".join(lines) + "\n")
        part.rename(part.with_suffix(".csv"))
        return rows


def make_site(root: Path) -> Site:
    """The project of `fdagent init` with one table more, promoted, with a first delivery."""
    site = LongSite(root)
    site.entity("silver.order_events", EVENTS)
    site.promote()
    site.deliver()
    return site


class Nobody:
    """Nobody wishes anything of a worker in this process."""

    def stopping(self) -> bool:
        return False

    def orphaned(self) -> bool:
        return False


@contextlib.contextmanager
def worker_here(site: Site) -> Iterator[Work]:
    """A worker in this process that nobody disturbs, on the queue of a site."""
    clock, ids, processes = SystemClock(), SystemIds(), SystemProcesses()
    home = where(site.root).home
    pid = processes.pid()
    who = Worker("calm/1", processes.place(), pid, processes.started_at(pid) or 0.0)
    with contextlib.closing(Database(home)) as database:
        yield Work(
            Jobs(database, clock=clock, ids=ids),
            Runs("calm", ids.new(), "here", site.root),
            who,
            Nobody(),
            clock,
            ids,
            processes,
            open_database=lambda: Database(home),
        )


class Calm:
    """What undisturbed runs make of so many deliveries, each followed by a job for all tables."""

    def __init__(self, root: Path) -> None:
        self.site = make_site(root)
        self._tables: list[dict[str, list[str]]] = []

    def tables(self, deliveries: int) -> dict[str, list[str]]:
        """All tables and quarantines, after `deliveries`."""
        while len(self._tables) < deliveries:
            if self._tables:
                self.site.deliver()
            self.site.ask()
            with worker_here(self.site) as worker:
                worker.until_idle()
            self._tables.append(self.site.tables())
        return self._of(self._tables[deliveries - 1])

    def after(self, deliveries: int) -> dict[str, list[str]]:
        """The same after one job for all deliveries at once: less work, where quarantines need not be compared."""
        while self.site.delivered < deliveries:
            self.site.deliver()
        self.site.ask()
        with worker_here(self.site) as worker:
            worker.until_idle()
        return self._of(self.site.tables())

    def _of(self, found: dict[str, list[str]]) -> dict[str, list[str]]:
        assert all(found[name] for name in self.site.places.project.entities)
        return found


def fault(at: str, do: str, mark: Path, *, when: str = "before", role: str = "worker", **more: Any) -> dict[str, Any]:
    """One fault of `faults/sitecustomize.py`."""
    return {"at": at, "do": do, "mark": str(mark), "when": when, "role": role, **more}


class Agent:
    """An agent of one site. `settings` are keys of `[agent]` beside SETTINGS; `retry` is its `[retry]`.

    Its secrets are CANARY; when it is closed, nothing that it has written anywhere may hold that.
    """

    def __init__(
        self,
        site: Site,
        *,
        retry: Mapping[str, Any] | None = None,
        schedules: Sequence[Mapping[str, Any]] = (),
        **settings: Any,
    ) -> None:
        self.site = site
        self.home = Path(settings.pop("home", site.root / ".local/agent"))
        self.config = site.root.parent / f"{site.root.name}-agent.toml"
        self.out = self.config.with_suffix(".out")
        self.keys = {**SETTINGS, "project": str(site.root), "home": str(self.home), **settings}
        self.retry = {**RETRY, **(retry or {})}
        self.configure(schedules=schedules)
        self.process: subprocess.Popen[bytes] | None = None
        self._database: Database | None = None
        self._starts = 0

    def configure(self, *, schedules: Sequence[Mapping[str, Any]]) -> None:
        """Write its agent.toml, for the next start."""
        tables = {"agent": self.keys, "retry": self.retry, **SECRETS}
        texts = [_toml(f"[{name}]", values) for name, values in tables.items()]
        texts += [_toml("[[schedule]]", values) for values in schedules]
        self.config.write_text("".join(texts))

    def start(self, *faults: Mapping[str, Any], program: Sequence[str] = ()) -> "Agent":
        """Start `fdagent run`, or a program that does nearly the same; its output goes to `out`."""
        path = os.pathsep.join(filter(None, [FAULTS, os.environ.get("PYTHONPATH", "")]))
        self._starts = len(self.log("started"))
        own = {"PYTHONPATH": path, "FDAGENT_FAULTS": json.dumps(faults)} if faults else {}
        with self.out.open("ab") as out:
            self.process = subprocess.Popen(
                program or command("run", "--config", str(self.config)),
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **dict.fromkeys(SECRET_VARIABLES, CANARY), **own},
            )
        return self

    def up(self) -> "Agent":
        """Wait until it says that it has started: from then on it ends in order when it is asked to."""
        until(lambda: len(self.log("started")) > self._starts, "it has started")
        return self

    @property
    def pid(self) -> int:
        """The daemon's process."""
        assert self.process is not None
        return self.process.pid

    def workers(self) -> list[psutil.Process]:
        """Its worker processes."""
        try:
            found = psutil.Process(self.pid).children()
        except psutil.NoSuchProcess:
            return []
        return [child for child in found if is_worker(child)]

    def worker(self) -> psutil.Process:
        """Its one worker, as soon as it is there."""
        return until(self.workers, "a worker")[0]

    def signal(self, number: int) -> None:
        """Send the daemon a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, seconds: float = LONGEST_SECONDS) -> int:
        """Wait for the daemon's end; its exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def stop(self) -> None:
        """SIGTERM as soon as it is up, and a good end."""
        self.up().signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, f"exit code {code}: {self.said()}"

    def kill(self) -> None:
        """SIGKILL for the daemon alone."""
        self.signal(signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """End what is left of it, however it is."""
        if self.process is not None:
            for child in [*self.workers(), *orphans(self.home)]:
                child.kill()
            self.process.kill()
            self.process.wait()
        self.close_queue()
        assert not holding_canary(self.site.root.parent)

    def close_queue(self) -> None:
        """Close this process's connection to its queue; the next look opens another."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    @property
    def jobs(self) -> Jobs:
        """Its queue, over one connection of ours."""
        if self._database is None:
            self._database = Database(self.home)
        return Jobs(self._database, clock=SystemClock(), ids=SystemIds())

    def ask(self, *entities: str, attempts: int = 3, lease: float = 60.0) -> str:
        """Put a job into its queue; the id."""
        name = f"job{len(self.site.jobs_asked):03d}"
        asked = Job(
            name,
            JobState.QUEUED,
            "op",
            "dev",
            run_key=name,
            dedupe_key=name,
            entities=entities,
            max_attempts=attempts,
            lease_seconds=lease,
        )
        assert isinstance(self.jobs.enqueue(asked), Job)
        self.site.jobs_asked.append(name)
        return name

    def job(self, job_id: str) -> Job:
        """A job now."""
        found = self.jobs.get(job_id)
        assert found is not None
        return found

    def running(self, job_id: str) -> Job:
        """A job, as soon as it runs."""
        return until(lambda: found if (found := self.job(job_id)).state is JobState.RUNNING else None, f"{job_id} runs")

    def ended(self, job_id: str, seconds: float = LONGEST_SECONDS) -> Job:
        """A job, as soon as it is final."""
        try:
            return until(lambda: found if (found := self.job(job_id)).state in FINAL else None, "", seconds)
        except AssertionError:
            raise AssertionError(f"{self.job(job_id)} has not ended: {self.said()}") from None

    def flushed(self) -> None:
        """Wait until the run log has every row."""
        until(lambda: not self.jobs.database.rows("select 1 from run_row limit 1"), "the run log has every row")

    def log(self, event: str = "") -> list[dict[str, Any]]:
        """Its log lines, of one event or all."""
        files = sorted((self.home / "logs").glob("agent.*.log"), key=lambda path: int(path.name.split(".")[1]))
        lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if event in ("", line["event"])]

    def told(self, event: str, words: str = "", seconds: float = LONGEST_SECONDS) -> dict[str, Any]:
        """The first log line of this event with these words in its message, as soon as it is there."""

        def found() -> dict[str, Any] | None:
            return next((line for line in self.log(event) if words in line["message"]), None)

        return until(found, f"{event} {words!r} in {self.out}", seconds)

    def said(self) -> str:
        """All that it printed."""
        return self.out.read_text(encoding="utf-8", errors="replace")

    def record(self) -> dict[str, Any] | None:
        """Its record in the control folder."""
        path = self.site.places.control / "agents/etl-01.json"
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None

    def leases(self) -> list[str]:
        """The tables that are leased."""
        store = LocalStore(self.site.places.control, clock=SystemClock(), ids=SystemIds())
        return [entry.key for entry in store.list("leases/")]


def _toml(header: str, values: Mapping[str, Any]) -> str:
    return "\n".join([header, *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""])


def holding_canary(folder: Path) -> list[Path]:
    """The files under a folder in which the secret stands."""
    files = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return [file for file in files if file.is_file() and CANARY.encode() in file.read_bytes()]


def zombies(pid: int) -> list[psutil.Process]:
    """Children of a process that have ended and were not reaped."""
    return [child for child in psutil.Process(pid).children() if child.status() == psutil.STATUS_ZOMBIE]


def is_worker(process: psutil.Process) -> bool:
    """Is it a worker of some agent?"""
    try:
        return "fdagent.work.worker" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def orphans(home: Path) -> list[psutil.Process]:
    """Workers whose daemon is gone and that have the queue of this home open."""
    found = []
    for process in psutil.process_iter():
        try:
            if is_worker(process) and any(file.path.startswith(str(home)) for file in process.open_files()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def run_keys(site: Site) -> dict[str, list[str]]:
    """Per table, the run keys of its data commits, as often as they come."""
    tables = {name: site.places.table(entity) for name, entity in site.places.project.entities.items()}
    histories = {name: DeltaTable(str(folder)).history() for name, folder in tables.items()}
    return {name: [info["app_id"] for info in infos if info.get("app_id")] for name, infos in histories.items()}


def one_effect_each(site: Site, jobs: Sequence[str]) -> None:
    """Each table of each job has one row that finished it in the run log, and at most one data commit."""
    log = site.log()
    assert len({row.run_id for row in log}) == len(log), "a row of the run log is doubled"
    for job in jobs:
        done = sorted(row.entity for row in log if row.job_id == job and row.status in DONE)
        assert done == sorted(site.places.project.entities), (job, done)
    for name, keys in run_keys(site).items():
        assert len(keys) == len(set(keys)), f"{name} has two commits of one run key"
