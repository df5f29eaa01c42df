"""Why a request, an agent, a schedule, a release or an incident does what it does, in each of its states."""

import os
from pathlib import Path

import pytest
from cli_agent_kit import GONE, TABLE, Desk

from fdagent.cli.reasons.told import KINDS
from fdagent.daemon.home import taken
from fdagent.fleet.asking import post_cancel, post_request
from machines.registry import CHARTS
from models import codec
from models.incident import Incident, IncidentState, ProblemKey
from models.ledger import Ledger
from models.slot import Request
from models.status import FINAL, RequestState, Status
from models.step import ABSENT

AGENT = """
[agent]
name = "etl-01"
project = "."
environments = ["dev"]
[pipeline]
enabled = true
{more}
"""
HOUR = 3600.0


class Told:
    """What `why` says of one word."""

    def __init__(self, desk: Desk, *words: str) -> None:
        said = desk("why", *words, "--json")
        assert said.code == 0, said.out
        self.all = said.json
        self.first = self.all[0]
        self.notes = " ".join(self.first["notes"])

    def of(self, kind: str) -> dict:
        return next(one for one in self.all if one["kind"] == kind)

    def open(self, kind: str = "") -> set[str]:
        """The events of which an arrow is open."""
        arrows = (self.of(kind) if kind else self.first)["arrows"]
        return {arrow["event"] for arrow in arrows if arrow["open"]}

    def shut(self, event: str, kind: str = "") -> set[str]:
        """Why no arrow of an event is open."""
        arrows = [one for one in (self.of(kind) if kind else self.first)["arrows"] if one["event"] == event]
        assert arrows, event
        assert not any(arrow["open"] for arrow in arrows), event
        return {guard["sentence"] for arrow in arrows for guard in arrow["guards"] if not guard["held"]}


@pytest.fixture
def agent(desk):
    """Writes an agent.toml that serves the mailbox; the words that name it."""

    def written(more: str = "", base: str = AGENT) -> tuple[str, str]:
        (desk.project / "agent.toml").write_text(base.format(more=more), encoding="utf-8")
        return "--config", str(desk.project / "agent.toml")

    return written


def post(desk: Desk, name: str = "r1", **about) -> None:
    about = {"submitted_by": "ann", "deadline": desk.clock.wall() + HOUR, **about}
    post_request(desk.store, name, Request(**about), clock=desk.clock, ids=desk.ids)


def wish(desk: Desk, name: str = "r1") -> None:
    post_cancel(desk.store, name, by="ann", clock=desk.clock, ids=desk.ids)


def held(desk: Desk, state: RequestState, name: str = "r1", **about) -> None:
    """A status of another agent's, unless it says otherwise."""
    at = desk.clock.wall()
    told = {"agent": "etl-02", "instance": "i2", "host": "host-2", "agents": ("etl-02",), "deadline": at + HOUR}
    if state in FINAL:
        told["finished_at"] = at
    record = Status(id=name, env="dev", state=state, op="s1", accepted_at=at, **{**told, **about})
    desk.file(f"status/{name}.json", codec.dump(record.to_json()).decode())


def test_every_chart_has_a_name_to_ask_for_or_is_told_beside_a_request():
    assert set(KINDS) | {"slot", "wish"} == {*CHARTS, "schedule"}


# Requests


def test_a_request_that_waits_may_be_claimed_by_an_agent_that_may_serve_it(desk, agent):
    post(desk)
    words = agent()
    desk.agent("etl-01", host=os.uname().nodename, pid=os.getpid())
    with taken(desk.home, desk.clock):
        told = Told(desk, "r1", *words)
    assert (told.first["kind"], told.first["name"], told.first["env"], told.first["state"]) == (
        "request",
        "r1",
        "dev",
        ABSENT,
    )
    assert told.open() == {"claim"}
    assert "No agent has taken it yet." in told.notes
    assert "It expires at" in told.notes
    assert "No agent runs" not in told.notes
    assert told.of("slot")["state"] == "posted"
    assert told.shut("sweep", "slot") >= {"its status is not final"}


def test_an_agent_whose_record_names_another_start_takes_nothing_and_says_so(desk, agent):
    post(desk)
    words = agent()
    with taken(desk.home, desk.clock):
        told = Told(desk, "r1", *words)
    assert told.open() == set()
    assert "The record of etl-01 in dev does not name the agent that runs here" in told.notes


def test_without_an_agent_in_this_home_it_says_whose_answers_they_are(desk, agent):
    post(desk)
    told = Told(desk, "r1", *agent())
    assert told.open() == {"claim"}
    assert "No agent runs in this home: the answers are those of etl-01 as it would start now" in told.notes


@pytest.mark.parametrize(
    ("more", "about", "note"),
    [
        ('environments = ["prod"]', {}, "does not serve dev: its [pipeline] environments are prod."),
        ("", {"backfill": "full"}, "serves no backfill: its [pipeline] allow_backfill is off."),
        ('entities = ["gold.*"]', {"entities": (TABLE,)}, "its [pipeline] entities are gold.*"),
        ("", {"entities": ("silver.nope",)}, "has not all of the entities that it names: silver.nope"),
    ],
)
def test_why_this_agent_may_not_serve_a_request_is_said(desk, agent, more, about, note):
    post(desk, **about)
    words = agent(more)
    if "prod" in more:
        words = agent(more, AGENT.replace('["dev"]', '["dev", "prod"]'))
        environment(desk, "prod")
        desk("promote", "dev", "--yes")
    told = Told(desk, "dev/r1", *words)
    assert note in told.notes
    assert any("this agent may not serve it" in sentence for sentence in told.shut("claim"))


def test_an_agent_without_a_mailbox_says_so(desk, agent):
    post(desk)
    told = Told(desk, "r1", *agent(base=AGENT.replace("[pipeline]\nenabled = true", "")))
    assert "serves no request: its agent.toml has no [pipeline] enabled = true." in told.notes


def test_another_version_than_the_promoted_one_is_said_with_both(desk, agent):
    post(desk)
    release = codec.parse((desk.control / "release.json").read_bytes()) | {"metadata_version": "f" * 64}
    desk.file("release.json", codec.dump(release).decode())
    told = Told(desk, "r1", *agent())
    assert "dev has metadata ffff" in told.notes
    assert any("this agent may not serve it" in sentence for sentence in told.shut("claim"))
    assert "an agent that has it runs nothing in dev" in Told(desk, "dev/release").notes


def test_a_request_that_can_not_be_read_says_what_is_wrong_with_it(desk, agent):
    desk.file("requests/r1.json", "{")
    told = Told(desk, "r1", *agent())
    assert "Its request file can't be read" in told.notes
    assert told.shut("reject") >= {"its request file has not been unreadable for a minute"}
    assert "its request file is not readable" in told.shut("claim")
    assert "It can't be read" in " ".join(told.of("slot")["notes"])


def test_past_its_deadline_it_may_expire_and_no_more_be_claimed(desk, agent):
    post(desk, deadline=desk.clock.wall() - 90)
    told = Told(desk, "r1", *agent())
    assert told.open() == {"expire"}
    assert "its deadline has passed, or is not known" in told.shut("claim")
    assert "passed 1 min 3" in told.notes


def test_a_cancel_file_is_told_beside_its_request(desk, agent):
    post(desk)
    wish(desk)
    told = Told(desk, "r1", *agent())
    assert told.open() == {"cancel"}
    assert "ann asked" in " ".join(told.of("wish")["notes"])
    assert told.shut("sweep", "wish") >= {"its status is not final"}


def test_a_cancel_file_alone_belongs_to_nothing(desk, agent):
    post(desk)
    wish(desk)
    (desk.control / "requests" / "r1.json").unlink()
    told = Told(desk, "r1", *agent())
    assert [one["kind"] for one in told.all] == ["request", "wish"]
    assert "neither a request nor a status" in told.notes
    assert "the file is kept for a while" in told.shut("sweep", "wish")


def test_what_a_live_agent_holds_is_not_taken_over_and_why_is_said(desk, agent):
    post(desk)
    held(desk, RequestState.RUNNING)
    desk.agent("etl-02")
    told = Told(desk, "r1", *agent("take_over = true"))
    assert "its agent is not known to be gone, and does not offer it" in told.shut("take_over")
    assert "this start of the agent does not hold it" in told.shut("succeed")
    assert "etl-02 on host-2 holds it" in told.notes
    assert "etl-02 seems alive (estimate)" in told.notes
    assert told.open() == {"abandon"}


def test_a_holder_that_seems_lost_says_after_how_long_it_is_taken_over(desk, agent):
    post(desk)
    held(desk, RequestState.ACCEPTED)
    desk.agent("etl-02")
    desk.age_agent(4000, "etl-02")
    told = Told(desk, "r1", *agent("take_over = true"))
    assert "etl-02 seems lost (estimate)" in told.notes
    assert "silent for 2 min 30 s takes the request over." in told.notes
    told = Told(desk, "r1", *agent())
    assert "taking over is switched off here" in told.shut("take_over")
    assert "[pipeline] take_over is off here" in told.notes


def test_what_is_offered_may_be_taken_over_at_once(desk, agent):
    post(desk)
    held(desk, RequestState.ACCEPTED, offered=True)
    desk.agent("etl-02")
    told = Told(desk, "r1", *agent("take_over = true"))
    assert "take_over" in told.open()
    assert "offers it" in told.notes


def test_a_holder_without_a_record_is_never_gone(desk, agent):
    post(desk)
    held(desk, RequestState.RUNNING)
    told = Told(desk, "r1", *agent("take_over = true"))
    assert "There is no readable record of etl-02" in told.notes


def test_an_earlier_start_of_this_agent_is_adopted_by_a_new_one(desk, agent):
    post(desk)
    held(desk, RequestState.RUNNING, agent="etl-01", instance="older", agents=("etl-01",))
    told = Told(desk, "r1", *agent())
    assert "adopt" in told.open()


def test_this_start_of_the_agent_may_go_on_with_what_it_holds(desk, agent):
    post(desk)
    words = agent()
    desk.agent("etl-01", host=os.uname().nodename, pid=os.getpid())
    held(desk, RequestState.RUNNING, agent="etl-01", instance="etl-01-i1", agents=("etl-01",))
    with taken(desk.home, desk.clock):
        told = Told(desk, "r1", *words)
    assert {"report", "succeed", "fail"} <= told.open()
    assert "a worker is on it" not in told.notes


def test_after_the_last_hold_it_is_given_up_and_every_hold_is_named(desk, agent):
    post(desk)
    held(desk, RequestState.RUNNING, agent="etl-01", instance="older", agents=("etl-02", "etl-03", "etl-01"))
    told = Told(desk, "r1", *agent())
    assert told.open() >= {"give_up"}
    assert "it was held as often as it may be" in told.shut("adopt")
    assert "etl-02 → etl-03 → etl-01" in told.notes


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_request_that_ended_may_only_be_swept_and_says_why_it_ended(desk, agent, state):
    held(desk, state, reason="because", agents=("etl-02", "etl-01"))
    told = Told(desk, "r1", *agent())
    assert told.first["state"] == state
    assert {arrow["event"] for arrow in told.first["arrows"]} == {"sweep"}
    assert told.shut("sweep") >= {"it is kept for a while after it ended", "its deadline is ahead, or is not known"}
    assert f"It ended {state}" in told.notes
    assert "etl-02 → etl-01" in told.notes
    assert "because" in told.notes


def test_long_after_its_end_and_without_its_files_it_is_swept(desk, agent):
    long_ago = desk.clock.wall() - 40 * 86_400
    held(desk, RequestState.SUCCEEDED, finished_at=long_ago, deadline=long_ago)
    assert Told(desk, "r1", *agent()).open() == {"sweep"}


def test_agents_that_may_serve_it_by_their_records_are_named_and_so_are_those_that_do_not(desk, agent):
    from models.agent import Pipeline

    post(desk)
    version = desk("why", "dev/release", "--json").json[0]
    assert version["state"] == "promoted"
    desk.agent("etl-02", pipeline=Pipeline(enabled=False))
    told = Told(desk, "r1", *agent())
    assert "By their records these do not: etl-02." in told.notes


# Agents and releases


def test_an_agent_that_beats_is_nobody_elses_to_stop_and_is_not_forgotten(desk):
    desk.agent("etl-02")
    told = Told(desk, "etl-02")
    assert (told.first["kind"], told.first["state"]) == ("agent", "running")
    assert told.open() == set()
    assert "an agent of this name may be alive: it is watched for two beats" in told.shut("announce")
    assert told.shut("forget") == {"it is not lost"}
    assert "it seems alive (estimate)" in told.notes
    assert "after 2 min 30 s of silence" in told.notes


def test_an_agent_that_drains_is_stopping(desk):
    desk.agent("etl-02").drain()
    told = Told(desk, "dev/etl-02")
    assert told.first["state"] == "stopping"
    assert told.open() == set()


def test_an_agent_that_stopped_may_be_forgotten_unless_an_open_request_names_it(desk):
    desk.agent("etl-02").stop()
    told = Told(desk, "etl-02")
    assert told.first["state"] == "stopped"
    assert told.open() == {"announce", "forget"}
    held(desk, RequestState.ACCEPTED)
    assert Told(desk, "etl-02").shut("forget") == {"an open request names it, or that could not be looked up"}


def test_an_agent_whose_process_of_this_machine_is_gone_leaves_its_name_free(desk):
    desk.agent(
        "etl-02", boot=desk.processes.place(), pid=GONE, process_started_at=desk.processes.started_at(os.getpid())
    )
    assert Told(desk, "etl-02").open() == {"announce"}


def test_a_release_says_who_promoted_it_and_whether_this_project_is_it(desk):
    told = Told(desk, "release")
    assert (told.first["kind"], told.first["state"]) == ("release", "promoted")
    assert told.open() == {"promote"}
    assert "promoted metadata" in told.notes
    assert "This project is that version" in told.notes


def test_an_environment_without_a_release_says_that_nothing_runs_there(bare):
    told = Told(bare, "dev/release")
    assert told.first["state"] == ABSENT
    assert "Nothing was promoted to dev yet" in told.notes


# Schedules

SCHEDULES = """
[[schedule]]
id = "nightly"
env = "dev"
daily = ["02:00"]
time_zone = "Europe/Berlin"
[[schedule]]
id = "off"
env = "dev"
every_minutes = 5
enabled = false
[[schedule]]
id = "hourly"
env = "dev"
every_minutes = 60
shared = true
"""


def test_a_schedule_says_what_keeps_it_from_running_now(desk, agent):
    told = Told(desk, "nightly", *agent(SCHEDULES))
    assert (told.first["kind"], told.first["env"], told.first["state"]) == ("schedule", "dev", "waiting")
    sentences = told.shut("run")
    assert "no agent of this home serves dev" in sentences
    assert any(sentence.startswith("it is due at") for sentence in sentences)
    assert "daily at 02:00 (Europe/Berlin)" in told.notes
    assert "No agent runs in this home" in told.notes


def test_a_schedule_that_is_off_or_paused_says_so(desk, agent):
    words = agent(SCHEDULES)
    assert "it has `enabled = false` in agent.toml" in Told(desk, "off", *words).shut("run")
    desk("schedule", "pause", "nightly", *words)
    assert "it is paused until a person resumes it" in Told(desk, "nightly", *words).shut("run")


def test_a_shared_schedule_shows_its_newest_slot_before_and_after_it_is_posted(desk, agent):
    words = agent(SCHEDULES)
    told = Told(desk, "hourly", *words)
    assert "it is shared: its due times are requests" in told.shut("run")
    slot = told.of("slot")
    assert slot["state"] == ABSENT
    assert slot["name"].startswith("sched-hourly-")
    assert told.open("slot") == {"post"}
    request = Request(schedule="hourly", slot=slot["name"].rpartition("-")[2], deadline=desk.clock.wall() + HOUR)
    desk.file(f"requests/{slot['name']}.json", codec.dump(request.to_json()).decode())
    told = Told(desk, "hourly", *words)
    assert [one["kind"] for one in told.all] == ["schedule", "request", "slot"]
    assert "claim" in told.open("request")
    assert "It is the slot" in " ".join(told.of("slot")["notes"])


def test_a_paused_shared_schedule_says_that_this_agent_does_not_post_it(desk, agent):
    words = agent(SCHEDULES)
    desk("schedule", "pause", "hourly", *words)
    assert "This agent does not: paused until resumed." in Told(desk, "hourly", *words).of("slot")["notes"]


# Incidents


def entry(name: str, state: IncidentState, **about) -> Incident:
    return Incident(
        id=name, key=ProblemKey(kind="run_failed", workload=TABLE, env="dev"), state=state, title="It failed", **about
    )


def ledger(desk: Desk, *entries: Incident) -> None:
    desk.file("incidents/incidents.json", codec.dump(Ledger(incidents=entries, op="x").to_json()).decode())


def test_a_ledger_that_was_never_kept_says_that_nothing_was_opened(desk):
    told = Told(desk, "ledger")
    assert (told.first["kind"], told.first["state"]) == ("ledger", ABSENT)
    assert told.shut("write") == {"no entry changes"}
    assert "No incident was ever opened in dev." in told.notes


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (IncidentState.OPEN, {"acknowledge", "resolve"}),
        (IncidentState.ACKNOWLEDGED, {"resolve"}),
        (IncidentState.RESOLVED, set()),
    ],
)
def test_an_incident_says_what_a_person_may_do_in_each_state(desk, state, expected):
    at = desk.clock.wall()
    ended = {"resolved_at": at, "resolved_by": "ann"} if state is IncidentState.RESOLVED else {}
    ledger(desk, entry("inc1", state, opened_at=at, occurrences=2, **ended))
    told = Told(desk, "inc1")
    assert (told.first["kind"], told.first["state"]) == ("incident", state)
    assert told.open() == expected
    assert f"It failed: run_failed of {TABLE}" in told.notes
    assert "1 " + str(state) in " ".join(Told(desk, "ledger").first["notes"])


ESCALATING = """
[incidents]
escalate_after_minutes = 30
[alerts]
teams_webhook_env = "FD_HOOK"
"""


def test_an_incident_that_waits_too_long_may_be_escalated(desk, agent):
    ledger(desk, entry("inc1", IncidentState.OPEN, opened_at=desk.clock.wall() - 3600))
    assert "escalate" not in Told(desk, "inc1", *agent()).open()
    assert "escalate" in Told(desk, "inc1", *agent(ESCALATING)).open()


# Names that fit several


def environment(desk: Desk, name: str) -> None:
    with (desk.project / "environments.toml").open("a") as file:
        file.write(f'\n[{name}]\ntarget = "local"\nvars = {{ landing = "landing" }}\n')


def test_a_name_in_two_environments_is_asked_about_and_its_whole_name_is_not(desk):
    environment(desk, "test")
    for env in ("dev", "test"):
        folder = desk.project / ".local" / env / "_control" / "requests"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "r1.json").write_text("{}")
    said = desk("why", "r1")
    assert said.code == 3
    assert "'r1' may mean the request dev/r1 and the request test/r1. Which one?" in said.err
    assert "Name the environment, such as dev/r1." in said.err
    assert Told(desk, "test/r1").first["env"] == "test"


def test_a_name_of_two_kinds_is_asked_about_and_the_kind_decides(desk):
    post(desk, "etl-02")
    desk.agent("etl-02")
    said = desk("why", "etl-02", "--json")
    assert said.code == 3
    assert "the request dev/etl-02 and the agent dev/etl-02" in said.json["error"]
    assert "--kind request" in said.json["fix"]
    for kind in ("request", "agent"):
        assert Told(desk, "etl-02", "--kind", kind).first["kind"] == kind


def test_a_whole_name_goes_before_the_beginning_of_a_jobs_id(desk):
    desk.job("etl-02-and-more")
    desk.agent("etl-02")
    assert Told(desk, "etl-02").first["kind"] == "agent"
    assert Told(desk, "etl-02-a").first["kind"] == "job"


def test_a_kind_that_there_is_not_is_wrong_usage(desk):
    said = desk("why", "x", "--kind", "jobb")
    assert said.code == 2
    assert "job, request" in said.err


CLOUD = """
[cloud]
target = "fabric"
workspace = "0f8fad5b-d9cb-469f-a165-70867728950e"
vars = { landing = "landing" }

[cloud.lakehouses]
LH_Meta = "0f8fad5b-d9cb-469f-a165-70867728950e"
LH_Bronze = "1f8fad5b-d9cb-469f-a165-70867728950e"
LH_Silver = "2f8fad5b-d9cb-469f-a165-70867728950e"
LH_Gold = "3f8fad5b-d9cb-469f-a165-70867728950e"
"""


def test_an_environment_that_can_not_be_looked_through_is_said_and_hides_no_other(desk):
    with (desk.project / "environments.toml").open("a") as file:
        file.write(CLOUD)
    desk.agent("etl-02")
    assert Told(desk, "etl-02").first["kind"] == "agent"
    said = desk("why", "nope")
    assert said.code == 3
    assert "cloud:" in said.err


def test_a_record_of_another_version_is_a_sentence(desk, agent):
    desk.file("status/r1.json", '{"contract": 9}')
    said = desk("why", "r1", *agent())
    assert said.code == 2
    assert "contract 9" in said.err


def test_looking_at_shared_records_writes_nothing(desk, agent):
    post(desk)
    held(desk, RequestState.RUNNING)
    desk.agent("etl-02")
    words = agent(SCHEDULES)

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in desk.control.rglob("*.json")}

    was = files()
    for word in ("r1", "etl-02", "hourly", "release", "ledger", TABLE):
        assert desk("why", word, *words).code == 0
    assert files() == was


def test_an_unknown_name_is_answered_with_the_nearest_and_with_what_there_is(desk, agent):
    post(desk)
    desk.agent("etl-02")
    desk.job("job1")
    said = desk("why", "etl-03", *agent(SCHEDULES))
    assert said.code == 3
    assert "Nothing is called 'etl-03'; did you mean `etl-02`?" in said.err
    for part in ("jobs job1", "schedules nightly, off, hourly", "requests r1", "agents etl-02", TABLE):
        assert part in said.err, part
    few = desk("why", "zzz", "--kind", "agent", *agent())
    assert "No agent is called 'zzz'." in few.err


def test_of_many_only_a_few_are_named(desk):
    for n in range(9):
        post(desk, f"r{n}")
    assert "requests r0, r1, r2, r3 and 5 more" in desk("why", "zzz").err
