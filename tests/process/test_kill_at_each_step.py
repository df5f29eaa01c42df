"""A run that is killed before and after each call of the table port, for each load mode; then a normal run.

The expected tables are worked out here, from the delivered files alone.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from process_kit import LONGEST_SECONDS, Site

from models.job import JobState
from models.run import RunStatus

pytestmark = pytest.mark.process

SCRIPT = str(Path(__file__).with_name("step_process.py"))
FILES = '[source]\nfiles = "{landing}/orders_*.csv"\n'
ENTITIES = {
    "bronze.appended": f'{FILES}[load]\nmode = "append"\n',
    "silver.merged": f"""{FILES}
[columns]
updated_at = {{ type = "timestamp" }}
[load]
mode = "scd1"
key = ["order_id"]
order_by = "updated_at"
[[checks]]
not_null = ["amount"]
severity = "quarantine"
""",
    "gold.whole": f"""{FILES}take = "all"
[transform]
sql = "select customer, count(*) as orders from {{source}} group by customer"
[load]
mode = "overwrite"
""",
}
LANDING = [
    "before open 1",
    "before has_txn 1",
    "before commit 1",
    "after commit 1",
    "before open 2",
    "before has_txn 2",
    "before author 1",
    "after author 1",
]
"""The steps of one landing that meets nobody. After a call that only reads is before the next one."""
RACE = ["after commit 1", "before discard 1", "after discard 1", "before commit 2", "after commit 2"]
"""What comes in more when another writer took the version first. A pure append keeps its files, so it discards none."""
LANDED = {False: LANDING[3:], True: RACE[-1:]}
"""The steps at which the change is in the table, without and with a rival."""


class Server:
    """The process that forks each run."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, site: "Modes", step: dict | None = None) -> int:
        """Run a project's queue empty; the exit code, negative for a signal."""
        words = ["run", "--until-idle", "--project", str(site.root)]
        request = {"words": words, "out": str(site.root / "out"), "step": step}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        assert "pid" in json.loads(self.process.stdout.readline())
        return int(json.loads(self.process.stdout.readline())["code"])

    def close(self) -> None:
        self.process.communicate(timeout=LONGEST_SECONDS)


class Modes(Site):
    """A project with one entity a load mode, each over the same files."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for path in (self.root / "entities").rglob("*.*"):
            path.unlink()
        for name, toml in ENTITIES.items():
            self.entity(name, toml)
        self.promote()
        self.good: list[dict[str, str]] = []
        self.ran: Counter[str] = Counter()
        self.refused: dict[str, Counter] = {name: Counter() for name in ENTITIES}

    def next(self, entity: str) -> str:
        """Deliver a file and ask for one entity; the job's id."""
        self.good += self.deliver()
        n, file = self.delivered, f"landing/orders_2027-02-{self.delivered:02d}.csv"
        if entity == "gold.whole":
            self.refused[entity] += Counter((f"landing/orders_2027-02-{i:02d}.csv", 8) for i in range(1, n + 1))
        else:
            self.refused[entity] += Counter([(file, 8)] + [(file, None)] * (entity == "silver.merged"))
        return self.ask(entity)

    def expected(self, entity: str) -> list[dict]:
        """The table's rows as the delivered files say."""
        if entity == "bronze.appended":
            return self.good
        if entity == "gold.whole":
            return [{"customer": who, "orders": n} for who, n in Counter(row["customer"] for row in self.good).items()]
        newest: dict[str, dict[str, str]] = {}
        for row in sorted(self.good, key=lambda row: row["updated_at"]):
            if row["amount"]:
                newest[row["order_id"]] = row
        return list(newest.values())


@pytest.fixture(scope="module")
def server():
    running = Server()
    yield running
    running.close()


@pytest.fixture(scope="module")
def sites(tmp_path_factory, server):
    """One project a load mode that has loaded one file already, and grows by one with each test."""
    made = {}
    for name in ENTITIES:
        made[name] = Modes(tmp_path_factory.mktemp("site") / "project")
        made[name].next(name)
        assert server.run(made[name]) == 0
    return made


def scenarios() -> list[tuple[str, str, bool]]:
    alone = [(entity, step, False) for entity in ENTITIES for step in LANDING]
    raced = [(entity, step, True) for entity in ENTITIES for step in RACE]
    return alone + [one for one in raced if not (one[0] == "bronze.appended" and "discard" in one[1])]


def kill(table: str, step: str, *, rival: bool = False) -> dict:
    """The request to die at a step of a table's port."""
    when, method, time = step.split()
    return {"do": "kill", "table": f"/{table}", "when": when, "method": method, "time": int(time), "rival": rival}


@pytest.mark.parametrize(("entity", "step", "rival"), scenarios(), ids=str)
def test_a_kill_at_any_step_of_the_landing_changes_nothing_in_the_end(server, sites, entity, step, rival):
    site = sites[entity]
    job = site.next(entity)
    assert server.run(site, kill(entity.split(".")[1], step, rival=rival)) == -9
    assert site.job(job).state is JobState.RUNNING
    assert server.run(site) == 0
    landed = step in LANDED[rival]
    same(site, entity, job, RunStatus.ALREADY_DONE if landed else RunStatus.SUCCEEDED, attempt=2)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("entity", ENTITIES)
def test_a_kill_around_the_making_of_the_table_changes_nothing_in_the_end(server, tmp_path, entity, when):
    site = Modes(tmp_path / "project")
    job = site.next(entity)
    assert server.run(site, kill(entity.split(".")[1], f"{when} create 1")) == -9
    assert server.run(site) == 0
    same(site, entity, job, RunStatus.SUCCEEDED, attempt=2)


@pytest.mark.parametrize("step", ["after create 1", "before commit 1", "after commit 1"])
def test_a_kill_around_the_quarantine_doubles_no_refused_row(server, tmp_path, step):
    site = Modes(tmp_path / "project")
    job = site.next("silver.merged")
    assert server.run(site, kill("quarantine_silver_merged", step)) == -9
    assert server.run(site) == 0
    same(site, "silver.merged", job, RunStatus.SUCCEEDED, attempt=2)


@pytest.mark.parametrize(
    ("table", "step"),
    [
        ("run_log", "after create 1"),
        ("run_log", "before commit 1"),
        ("run_log", "after commit 1"),
        ("check_log", "before commit 1"),
        ("check_log", "after commit 1"),
    ],
)
def test_a_kill_around_the_run_log_neither_loses_nor_doubles_a_row(server, tmp_path, table, step):
    site = Modes(tmp_path / "project")
    job = site.next("silver.merged")
    assert server.run(site, kill(table, step)) == -9
    assert site.job(job).state is JobState.SUCCEEDED
    assert server.run(site) == 0
    same(site, "silver.merged", job, RunStatus.SUCCEEDED, attempt=1)
    assert len(site.rows("LH_Meta", "check_log")) == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_new_columns_adds_them_once(server, tmp_path, when):
    site = Modes(tmp_path / "project")
    site.next("bronze.appended")
    assert server.run(site) == 0
    file = site.root / "landing/orders_2027-02-09.csv"
    file.write_text("order_id,customer,status,amount,updated_at,note\n1,C1,new,1.00,2027-02-09T00:00:00Z,hello\n")
    site.ask("bronze.appended")
    assert server.run(site, kill("appended", f"{when} add_columns 1")) == -9
    assert server.run(site) == 0
    notes = [json.loads(row)["note"] for row in site.rows("LH_Bronze", "appended")]
    assert Counter(notes) == {None: len(site.good), "hello": 1}


def same(site: Modes, entity: str, job: str, status: RunStatus, *, attempt: int) -> None:
    """The table, its quarantine, its one commit and its one row in the run log are what they should be."""
    folder = site.places.table(site.places.project.entities[entity])
    found = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    names = [name for name in found[0] if not name.startswith("_")]
    expected = site.expected(entity)
    assert Counter(texts(found, names)) == Counter(texts(expected, names))
    quarantine = site.places.quarantine(site.places.project.entities[entity])
    refused = DeltaTable(str(quarantine)).to_pyarrow_table().to_pylist()
    assert Counter((row["file"], row["line"]) for row in refused) == site.refused[entity]
    commits = [info for info in DeltaTable(str(folder)).history() if info.get("app_id") == f"fdagent/{job}"]
    assert len(commits) == 1
    (row,) = [row for row in site.log() if row.job_id == job]
    assert (row.entity, row.status, row.attempt) == (entity, status, attempt)
    assert site.unflushed() == 0


def texts(rows: list[dict], names: list[str]) -> list[tuple[str, ...]]:
    return [tuple(_text(row.get(name)) for name in names) for row in rows]


def _text(value) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "strftime") else "" if value is None else str(value)
