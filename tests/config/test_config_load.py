"""What a right agent.toml gives."""

import dataclasses
from pathlib import Path

import pytest
from config_kit import AGENT, MAILBOX, loaded

from fdagent.config.load import load_settings
from fdagent.config.settings import Agent, Alerts, Identity, Incidents, OneLake, Pipeline, Retry

GUID = "0F8FAD5B-d9cb-469f-a165-70867728950e"


def test_two_keys_are_enough_and_the_rest_has_its_default(tmp_path):
    settings = loaded(tmp_path, AGENT)
    envs = ("dev", "prod")
    assert settings.agent == Agent(
        name="etl-01.contoso.com", project=tmp_path / "project", environments=envs, stale_seconds=90
    )
    assert settings.pipeline == Pipeline(environments=envs)
    assert (settings.identity, settings.retry, settings.incidents) == (Identity(), Retry(), Incidents())
    assert (settings.alerts, settings.onelake) == (Alerts(), OneLake())
    assert settings.schedules == settings.routes == ()
    assert settings.file == tmp_path / "agent.toml"


def test_the_defaults_are_those_of_the_specification(tmp_path):
    settings = loaded(tmp_path, AGENT)
    agent, pipeline, incidents = settings.agent, settings.pipeline, settings.incidents
    assert (agent.concurrency, agent.status_seconds, agent.poll_seconds, agent.table_lease_seconds) == (1, 30, 10, 300)
    assert (agent.drain_seconds, agent.max_job_hours, agent.retention_days, agent.table_parallelism) == (840, 24, 30, 1)
    assert dataclasses.astuple(settings.retry) == (3, 60, 900)
    assert (pipeline.enabled, pipeline.claim, pipeline.take_over, pipeline.retention_days) == (
        False,
        "always",
        False,
        14,
    )
    assert (incidents.seconds, incidents.digest_over, incidents.quiet_except) == (300, 5, ("critical",))
    assert settings.identity.kind == "none"


@pytest.mark.parametrize(("status", "stale"), [(1, 90), (30, 90), (31, 93), (600, 1800)])
def test_stale_seconds_follow_the_heartbeat_and_are_at_least_90(tmp_path, status, stale):
    assert loaded(tmp_path, AGENT + f"status_seconds = {status}").agent.stale_seconds == stale


def test_a_stale_span_that_is_given_stays(tmp_path):
    assert loaded(tmp_path, AGENT + "status_seconds = 1\nstale_seconds = 2").agent.stale_seconds == 2


def test_every_kind_of_value_is_read(tmp_path):
    text = f"""
[agent]
name = "etl-02"
project = "/srv/project"
environments = ["prod"]
workspaces = ["{GUID}"]
home = "../home"
concurrency = 64
max_job_hours = 0.5
owner = "Ada"
memory_limit = "1.5 gib"
time_zone = "Europe/Berlin"
[identity]
kind = "certificate"
tenant_id = "contoso.onmicrosoft.com"
client_id = "{GUID}"
certificate_path = "agent.PFX"
certificate_password_env = "CERT_PASSWORD"
send_certificate_chain = true
authority = "https://login.microsoftonline.us/"
[[schedule]]
id = "fast"
env = "prod"
every_minutes = 0.5
[[schedule]]
id = "weekly"
env = "prod"
entities = ["silver.*", "gold.revenue"]
cascade = true
backfill = "full"
weekly = ["Mon 06:00", "sun 23:59"]
time_zone = "UTC"
enabled = false
[pipeline]
enabled = true
claim = "when_free"
take_over = true
[incidents]
enabled = true
quiet_hours = "22:00-06:00"
quiet_except = []
escalate_after_minutes = 60
escalate_to = "on-call"
[[incidents.route]]
name = "on-call"
webhook_env = "ON_CALL"
criticality = ["high", "critical"]
kinds = ["slot_missed"]
envs = ["elsewhere"]
[alerts]
teams_webhook_env = "TEAMS"
[onelake]
blob_endpoint = "http://127.0.0.1:10000/devstoreaccount1"
table_url_prefix = "az://{{workspace}}"
"""
    settings = loaded(tmp_path, text)
    fast, weekly = settings.schedules
    assert (fast.every_minutes, fast.time_zone) == (0.5, "Europe/Berlin")
    assert (weekly.weekly, weekly.time_zone) == (("mon 06:00", "sun 23:59"), "UTC")
    assert (weekly.entities, weekly.backfill, weekly.enabled) == (("silver.*", "gold.revenue"), "full", False)
    assert settings.agent.workspaces == (GUID.lower(),)
    assert settings.agent.home == tmp_path / "../home"
    assert settings.agent.project == Path("/srv/project")
    assert settings.agent.max_job_hours == 0.5
    assert settings.identity.certificate_path == tmp_path / "agent.PFX"
    assert settings.identity.authority == "https://login.microsoftonline.us"
    assert settings.routes[0].envs == ("elsewhere",)
    assert settings.onelake.table_url_prefix == "az://{workspace}"
    assert settings.incidents.quiet_except == ()


def test_the_mailboxes_served_are_those_of_all_environments_unless_named(tmp_path):
    assert loaded(tmp_path, MAILBOX).pipeline.environments == ("dev", "prod")
    assert loaded(tmp_path, MAILBOX + 'environments = ["prod"]').pipeline.environments == ("prod",)


def test_settings_cant_be_changed(tmp_path):
    settings = loaded(tmp_path, AGENT)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.agent.concurrency = 2


def test_a_relative_name_of_the_file_gives_whole_paths(tmp_path, monkeypatch):
    (tmp_path / "agent.toml").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    settings = load_settings(Path("agent.toml"))
    assert settings.file == tmp_path / "agent.toml"
    assert settings.agent.project == tmp_path / "project"


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + AGENT.encode(),
        AGENT.replace("\n", "\r\n").encode(),
        AGENT.rstrip().encode(),
        b'agent = {project = "project", environments = ["dev", "prod"]}',
        b'agent.project = "project"\nagent.environments = ["dev", "prod"]',
    ],
    ids=["byte order mark", "Windows line ends", "no last line end", "inline table", "dotted keys"],
)
def test_other_ways_to_write_the_same_are_the_same(tmp_path, text):
    assert loaded(tmp_path, text) == loaded(tmp_path, AGENT)
