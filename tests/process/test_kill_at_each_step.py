"""A run that is killed before and after each call of the table port, for each load mode; then a normal run.

The expected tables are worked out here, from the delivered files alone.
"""

import json
from collections import Counter

import pytest
from modes_kit import ENTITIES, Modes

from models.job import JobState
from models.run import RunStatus

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.xdist_group("steps")]

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
    site.check(entity, job, RunStatus.ALREADY_DONE if landed else RunStatus.SUCCEEDED, attempt=2)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("entity", ENTITIES)
def test_a_kill_around_the_making_of_the_table_changes_nothing_in_the_end(server, tmp_path, entity, when):
    site = Modes(tmp_path / "project")
    job = site.next(entity)
    assert server.run(site, kill(entity.split(".")[1], f"{when} create 1")) == -9
    assert server.run(site) == 0
    site.check(entity, job, RunStatus.SUCCEEDED, attempt=2)


@pytest.mark.parametrize("step", ["after create 1", "before commit 1", "after commit 1"])
def test_a_kill_around_the_quarantine_doubles_no_refused_row(server, tmp_path, step):
    site = Modes(tmp_path / "project")
    job = site.next("silver.merged")
    assert server.run(site, kill("quarantine_silver_merged", step)) == -9
    assert server.run(site) == 0
    site.check("silver.merged", job, RunStatus.SUCCEEDED, attempt=2)


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
    site.check("silver.merged", job, RunStatus.SUCCEEDED, attempt=1)
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
