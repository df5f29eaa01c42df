"""docs/operations.md is true: its commands run in the order of the page, each does what it says, its figures are the code's."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fdagent.cli.main import COMMANDS
from fdagent.config.load import load_settings
from fdagent.config.settings import Agent
from fdagent.daemon import home, logs
from fdagent.project.places import CONTROL_FOLDER
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.local import LocalStore
from fdagent.stores.sightings import Sightings
from fdagent.stores.storeclock import OFFSET_SHOWN
from fdagent.system import SystemClock, SystemIds, SystemProcesses
from fdagent.work.leases import Holder, TableLease
from models.job import Job, JobFacts, JobState
from models.liveness import Liveness, default_span_seconds, grace_for

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS_OF_PAGE = [
    re.sub(r"\s+#.*", "", line)
    for language, text in BLOCK.findall(PAGE)
    if language == "sh"
    for line in text.splitlines()
]
TABLE = "silver.orders"
DEADLINE = 60.0
STEP_SECONDS = 0.1

pytestmark = pytest.mark.process


class Site:
    """A machine with one agent, set up as the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project, self.home = folder, folder / "project", folder / "home"
        (toml,) = [text for language, text in BLOCK.findall(PAGE) if language == "toml"]
        text = toml.replace("/srv/fabric-desktop/project", str(self.project)).replace(
            "/var/lib/fabric-desktop", str(self.home)
        )
        (folder / "agent.toml").write_text(text, encoding="utf-8")
        scripts = str(Path(sys.executable).parent)
        self.env = {
            **{name: value for name, value in os.environ.items() if name != "FABRIC_DESKTOP_HOME"},
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "FABRIC_DESKTOP_AGENT_CONFIG": str(folder / "agent.toml"),
        }
        self.agent: subprocess.Popen[str] | None = None
        self.done: list[str] = []
        self.clock, self.ids, self.processes = SystemClock(), SystemIds(), SystemProcesses()

    def sh(self, command: str, *, code: int = 0) -> str:
        """Give a command, with no project to stand in."""
        done = subprocess.run(
            command.split(),
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == code, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def step(self, command: str, *, code: int = 0, **places: str) -> str:
        """Give the page's next command, with its <places> filled in."""
        assert COMMANDS_OF_PAGE[len(self.done)] == command
        self.done.append(command)
        for place, value in places.items():
            command = command.replace(f"<{place}>", value)
        return self.sh(command, code=code)

    def start(self, command: str) -> None:
        """Give the page's next command, and go on while it runs."""
        assert COMMANDS_OF_PAGE[len(self.done)] == command
        self.done.append(command)
        self.launch(command)

    def launch(self, command: str = "fdagent run") -> None:
        """Start an agent, and see it announced."""
        with (self.folder / "out.txt").open("a") as out:
            self.agent = subprocess.Popen(command.split(), cwd=self.folder, env=self.env, stdout=out, stderr=out)
        self.until(lambda: "running" in self.sh("fdagent agents dev"))

    def ended(self) -> int:
        """The exit code of the agent that was asked to stop."""
        assert self.agent is not None
        return self.agent.wait(DEADLINE)

    def until(self, came: "object") -> None:
        """Wait, boundedly."""
        until = time.monotonic() + DEADLINE
        while not came():
            assert time.monotonic() < until, (self.folder / "out.txt").read_text()
            time.sleep(STEP_SECONDS)

    def state(self, job: str) -> str:
        return str(json.loads(self.sh(f"fdagent job {job} --json"))["state"])

    def failed_job(self) -> str:
        """A job that failed, in the queue of this home."""
        jobs = Jobs(Database(self.home), clock=self.clock, ids=self.ids)
        new = replace(Job("failedjob", JobState.QUEUED, "op", "dev", run_key="k", dedupe_key="k"), entities=(TABLE,))
        assert isinstance(jobs.enqueue(new), Job)
        claimed = jobs.claim(Worker("etl-01/1", self.processes.place(), os.getpid(), 1.0))
        assert claimed is not None
        jobs.finish(claimed, "fail", JobFacts(error="The SQL failed."))
        jobs.database.close()
        return claimed.id

    def lease(self) -> TableLease:
        """The table's lease, held by this process."""
        store = LocalStore(self.project / ".local" / "dev" / CONTROL_FOLDER, clock=self.clock, ids=self.ids)
        pid = os.getpid()
        holder = Holder("etl-02", "i", "h", self.processes.place(), pid, self.processes.started_at(pid) or 0.0, "j1")
        lease = TableLease(store, TABLE, 300.0, holder, Sightings(self.clock), self.clock, self.ids, self.processes)
        assert lease.acquire() is None
        return lease


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.sh(f"fdagent init {made.project}")
    made.sh("fdagent promote dev --yes")
    yield made
    if made.agent is not None and made.agent.poll() is None:
        made.agent.kill()
        made.agent.wait(DEADLINE)


def test_the_commands_of_the_page_run_in_its_order_and_do_what_it_says(site: Site) -> None:
    assert "0 errors" in site.step("fdagent check")
    assert json.loads(site.step("fdagent check --json"))["ok"]

    site.start("fdagent run")
    assert "etl-01" in site.step("fdagent status")
    assert "alive" in site.step("fdagent agents dev")

    queued = site.step("fdagent enqueue dev")
    job = re.findall(r"Queued (\w+)", queued)[0]
    site.until(lambda: site.state(job) == "succeeded")
    assert TABLE in site.step("fdagent job <id>", id=job)
    assert "is succeeded" in site.step("fdagent why <id>", id=job)

    # With the agent gone nothing runs what the next commands queue: the page's `drain` comes later.
    site.sh("fdagent drain --wait")
    assert site.ended() == 0
    failed = site.failed_job()
    assert "Queued failedjob again" in site.step("fdagent retry <id>", id=failed[:4])
    assert "it had not started" in site.step("fdagent cancel <id>", id=failed)

    assert "revive -> queued: open" in site.step("fdagent why <id>", id=failed)
    assert "The agent etl-01 of dev is stopped" in site.step("fdagent why etl-01")
    assert "acquire -> held: open" in site.step("fdagent why dev/silver.orders")
    assert "This project is that version" in site.step("fdagent why dev/release")
    assert "No incident was ever opened" in site.step("fdagent why dev/ledger")
    site.step("fdagent request dev --id late-orders")
    (example,) = [text for language, text in BLOCK.findall(PAGE) if language == "text"]
    shown = site.step("fdagent why late-orders").splitlines()
    for line in example.splitlines():
        assert line in shown or line.strip() == "..." or line.startswith("  It expires at "), line

    lease = site.lease()
    shown = site.step("fdagent lease list dev")
    assert "etl-02" in shown
    assert "acquire -> held: shut" in site.step("fdagent why dev/silver.orders")
    [record] = json.loads(site.sh("fdagent lease list dev --json"))["leases"]
    assert "stops at its next renewal" in site.step(f"fdagent lease break dev {TABLE} --op <op>", op=record["op"])
    assert not lease.renew()
    assert "Nobody holds" in site.sh(f"fdagent lease break dev {TABLE} --op {record['op']}", code=3)

    assert "nothing to stop" in site.step("fdagent drain")
    site.launch()
    assert "It has ended." in site.step("fdagent drain --wait --timeout 900")
    assert site.ended() == 0

    assert "stopped" in site.sh("fdagent agents dev")
    assert "Forgot etl-01" in site.step("fdagent agents dev --forget etl-01")
    assert site.done == COMMANDS_OF_PAGE
    for kind in (logs.AGENT, logs.AUDIT):
        assert (site.home / "logs" / f"{kind}.1.log").stat().st_size


def test_an_agent_over_a_damaged_queue_puts_it_aside_as_the_page_says(site: Site) -> None:
    site.home.mkdir()
    (site.home / "queue.sqlite3").write_bytes(b"no queue" * 1000)
    assert "queue" in site.sh("fdagent check", code=1)
    site.launch()
    site.sh("fdagent drain --wait")
    assert site.ended() == 0
    [kept] = site.home.glob("queue.damaged-*.sqlite3")
    assert kept.read_bytes() == b"no queue" * 1000
    assert "queue.damaged-<time>.sqlite3" in PAGE
    assert "queue_put_aside" in (site.folder / "out.txt").read_text()
    assert "0 errors" in site.sh("fdagent check")


def test_the_figures_of_the_page_are_the_codes(tmp_path: Path) -> None:
    agent = Agent()
    assert f"`drain_seconds` ({agent.drain_seconds})" in PAGE
    assert f"`table_lease_seconds` ({agent.table_lease_seconds})" in PAGE
    assert f"`max_job_hours` ({agent.max_job_hours:g})" in PAGE
    assert agent.drain_seconds < 900
    span = default_span_seconds(agent.status_seconds)
    assert f"({span + grace_for(span):.0f}\nseconds by default)" in PAGE
    assert f"{logs.FILE_BYTES // 1024**2} MB a file, the newest {logs.KEPT} are kept" in PAGE
    assert f"offset over {OFFSET_SHOWN:g} seconds" in PAGE
    for name in (home.LOCK, home.PID):
        assert f"`{name}`" in PAGE
    assert re.findall(r"^\| `(\w+)` \|", PAGE.split("## Jobs")[0], re.MULTILINE) == [*Liveness]


def test_the_agent_toml_of_the_page_is_in_order_and_every_command_it_names_is_one(tmp_path: Path) -> None:
    (toml,) = [text for language, text in BLOCK.findall(PAGE) if language == "toml"]
    file = tmp_path / "agent.toml"
    file.write_text(toml, encoding="utf-8")
    assert load_settings(file).agent.name == "etl-01"
    named = set(re.findall(r"fdagent ([a-z]+)", PAGE))
    assert named <= set(COMMANDS)
    assert {"retry", "cancel", "drain", "lease", "agents", "check", "why"} <= named
