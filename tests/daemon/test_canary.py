"""A secret that an agent has in its environment stands in nothing that it writes, whatever goes wrong.

Every agent of these tests has it, and `Agent.close` looks for it in every file beneath the test's folder.
"""

from pathlib import Path

import pytest
from daemon_kit import CANARY, SECRET_VARIABLES, fault, holding_canary, make_site, until

from models.job import JobState

pytestmark = pytest.mark.process

LEAK = f"leak {SECRET_VARIABLES[0]}"


def test_it_would_be_found_in_any_file(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/deep.bin").write_bytes(b"\0\xff" + CANARY.encode() + b"\xff")
    (tmp_path / "clean").write_text("nothing")
    assert [file.name for file in holding_canary(tmp_path)] == ["deep.bin"]


def test_the_daemon_and_its_workers_have_it_at_hand_and_write_it_nowhere(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project")).start()
    agent.ended(agent.ask())
    agent.flushed()
    for pid in (agent.pid, agent.worker().pid):
        environ = Path(f"/proc/{pid}/environ")
        assert not environ.exists() or CANARY.encode() in environ.read_bytes()
    assert SECRET_VARIABLES[0] in agent.config.read_text()
    agent.stop()


@pytest.mark.parametrize(
    ("role", "at"),
    [
        ("daemon", "fdagent.fleet.presence:Presence.tick"),
        ("daemon", "fdagent.queue.jobs:Jobs.due"),
        ("worker", "fdagent.queue.jobs:Jobs.claim"),
        ("worker", "fdagent.work.leases:TableLease.acquire"),
        ("worker", "fdagent.queue.jobs:Jobs.finish"),
        ("worker", "fdagent.engine.runlog:append_rows"),
    ],
)
def test_an_error_nobody_foresaw_is_told_without_its_text_and_the_agent_goes_on(agents, tmp_path, role, at):
    agent = agents(make_site(tmp_path / "project"))
    mark = tmp_path / "mark"
    agent.start(fault(at, LEAK, mark, role=role)).up()
    job = agent.ask()
    until(mark.exists, "the error came")
    assert agent.ended(job).state is JobState.SUCCEEDED
    agent.flushed()
    agent.stop()
    told = agent.told("trouble" if role == "worker" else "duty_failed")["message"]
    assert "RuntimeError at sitecustomize.py:" in told
    assert "Traceback" not in agent.said()


def test_an_error_nobody_foresaw_in_a_renewal_is_told_without_its_text_and_costs_no_claim(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"), table_lease_seconds=9)
    go, mark, waits = tmp_path / "go", tmp_path / "mark", tmp_path / "waits"
    commit = "fdagent.engine.tables.delta:DeltaTablePort.commit"
    agent.start(
        fault("fdagent.queue.jobs:Jobs.renew", LEAK, mark, needs=str(waits)),
        fault("fdagent.work.leases:TableLease.renew", LEAK, tmp_path / "table", when="after"),
        fault(commit, f"wait {go}", waits, text="LH_Silver/Tables/orders"),
    )
    job = agent.ask(lease=9.0)
    until(lambda: mark.exists() and (tmp_path / "table").exists(), "both errors came")
    before = agent.job(job).renewals
    until(lambda: agent.job(job).renewals > before, "it is renewed again")
    go.touch()
    ended = agent.ended(job)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 1)
    assert "could not be renewed just now: RuntimeError at" in agent.told("trouble")["message"]
    agent.stop()


def test_an_error_nobody_foresaw_at_the_goodbye_does_not_hold_up_the_end(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"))
    agent.start(
        *(
            fault(f"fdagent.fleet.presence:Presence.{name}", LEAK, tmp_path / name, role="daemon")
            for name in ("drain", "stop")
        )
    )
    agent.up().stop()
    assert (tmp_path / "stop").exists()
    assert len(agent.log("duty_failed")) == 2
    assert "stopped" in {line["event"] for line in agent.log()}
