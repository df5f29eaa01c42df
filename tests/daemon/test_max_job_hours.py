"""`max_job_hours` over a real daemon and workers, with hours of a few seconds."""

import sys
from pathlib import Path

import pytest
from daemon_kit import fault, make_site

from models.job import JobState

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).with_name("short_hours.py")
HOURS = 0.001


@pytest.mark.long
def test_a_job_that_runs_for_too_long_is_ended_each_time_and_dies_with_that_reason(agents, tmp_path):
    agent = agents(make_site(tmp_path / "project"))
    commit = "fdagent.engine.tables.delta:DeltaTablePort.commit"
    endless = fault(commit, f"wait {tmp_path / 'never'}", tmp_path / "mark", text="LH_Silver", times=100)
    agent.start(endless, program=[sys.executable, str(SCRIPT), "run", str(agent.config), str(HOURS)])
    job, after = agent.ask("bronze.orders", "silver.order_events", attempts=2), agent.ask("bronze.orders")
    ended = agent.ended(job)
    assert (ended.state, ended.attempt) == (JobState.DEAD, 2)
    assert "was ended because the job ran for over 0.001 h (max_job_hours)." in ended.error
    assert ended.tables["bronze.orders"]["state"] == "succeeded"
    assert len(agent.log("job_too_long")) == 2
    assert agent.ended(after).state is JobState.SUCCEEDED
    agent.stop()
