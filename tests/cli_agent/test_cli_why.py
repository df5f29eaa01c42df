"""Why a job, a lease or a schedule does what it does, from the very guards that decide; and what a name may mean."""

import pytest
from cli_agent_kit import GONE, TABLE, Desk

from fdagent.cli.reasons.told import ASKED_BY
from fdagent.daemon.home import taken
from fdagent.fleet.presence import agent_key
from fdagent.fleet.records import lease_key
from machines.registry import CHARTS
from models.job import JobFacts
from models.status import RequestState


def arrows(desk: Desk, *words: str) -> dict[str, dict]:
    [found] = desk("why", *words, "--json").json
    return {arrow["event"]: arrow for arrow in found["arrows"]}


def shut(arrow: dict) -> list[str]:
    return [guard["sentence"] for guard in arrow["guards"] if not guard["held"]]


@pytest.mark.parametrize("kind", CHARTS)
def test_it_is_known_who_asks_for_each_event_of_every_chart(kind):
    assert set(CHARTS[kind].events) == set(ASKED_BY[kind])


def test_a_job_that_waits_without_an_agent_says_that_none_runs(desk):
    desk.job()
    said = desk("why", "job1")
    assert said.code == 0
    assert "The job job1 of dev is queued" in said.out
    assert "claim -> running: shut" in said.out
    assert "no   no worker is free" in said.out
    assert "No agent runs in this home" in said.out
    assert "cancel -> cancelled: open  (fdagent cancel; its worker)" in said.out


def test_with_an_agent_that_has_a_free_worker_a_due_job_may_be_claimed(desk):
    desk.job()
    with taken(desk.home, desk.clock):
        assert arrows(desk, "job1")["claim"]["open"]


def test_with_every_worker_busy_it_may_not(desk):
    desk.running("busy")
    desk.job()
    with taken(desk.home, desk.clock):
        found = arrows(desk, "job1")
        assert shut(found["claim"]) == ["no worker is free"]
        assert "No agent runs" not in desk("why", "job1").out


def test_a_job_whose_time_has_not_come_says_when_it_does(desk):
    desk.job(not_before=desk.clock.wall() + 600)
    with taken(desk.home, desk.clock):
        assert shut(arrows(desk, "job1")["claim"]) == ["its time has not come yet"]
        assert "It is due in" in desk("why", "job1").out


def test_a_job_that_runs_is_nobody_elses_to_end_and_not_left_alone(desk):
    desk.running()
    found = arrows(desk, "job1")
    for event in ("renew", "succeed", "fail", "retry", "bury"):
        assert not found[event]["open"]
        assert "another claim runs it" in shut(found[event])
    assert "its worker still lives and its lease has not lapsed" in shut(found["recover"])
    assert found["ask_to_stop"]["open"]
    said = desk("why", "job1").out
    assert "etl-01/1 (pid" in said
    assert "runs attempt 1 of 3" in said


def test_a_job_whose_worker_is_gone_may_be_recovered_and_waits_for_an_agent(desk):
    desk.running(pid=GONE)
    [found] = desk("why", "job1", "--json").json
    opened = [(arrow["event"], arrow["to"]) for arrow in found["arrows"] if arrow["open"]]
    assert ("recover", "queued") in opened
    assert ("recover", "dead") not in opened


def test_a_job_that_was_asked_to_stop_says_so(desk):
    desk.running()
    desk("cancel", "job1")
    assert "It was asked to stop: it does at the end of the table it is at. Somebody asked" in desk("why", "job1").out


def test_a_job_that_failed_may_be_tried_again_and_shows_its_error(desk):
    desk.ended(facts=JobFacts(error="silver.orders: the SQL failed"))
    said = desk("why", "job1").out
    assert "revive -> queued: open  (fdagent retry)" in said
    assert "Its last error: silver.orders: the SQL failed" in said
    assert shut(arrows(desk, "job1")["prune"]) == ["it is kept for a while after it finished"]


def test_the_refusal_of_a_retry_is_what_why_says(desk):
    desk.ended(source="pipeline:r1")
    desk.status("r1", RequestState.FAILED)
    [sentence] = shut(arrows(desk, "job1")["revive"])
    assert sentence in desk("retry", "job1").err


def test_a_job_that_was_handed_over_comes_back_only_when_its_request_names_this_agent(desk, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "etl-01")
    desk.ended("cancel", facts=JobFacts(reason="handed_over"), source="pipeline:r1")
    desk.status("r1", RequestState.ACCEPTED, agent="etl-02")
    assert shut(arrows(desk, "job1")["requeue"]) == ["its request does not name this agent"]
    (desk.control / "status" / "r1.json").unlink()
    desk.status("r1", RequestState.ACCEPTED, agent="etl-01")
    assert arrows(desk, "job1")["requeue"]["open"]


def test_a_job_of_an_environment_that_the_agent_does_not_run_says_so(desk):
    desk.job(env="prod")
    file = desk.project / "agent.toml"
    file.write_text('[agent]\nproject = "."\nenvironments = ["dev"]\n')
    assert "do not have prod" in desk("why", "job1", "--config", str(file)).out


def test_json_names_each_arrow_who_asks_and_every_guard(desk):
    desk.job()
    [found] = desk("why", "job1", "--json").json
    assert set(found) == {"kind", "name", "env", "state", "arrows", "notes"}
    assert (found["kind"], found["name"], found["state"]) == ("job", "job1", "queued")
    for arrow in found["arrows"]:
        assert set(arrow) == {"event", "asked_by", "to", "write", "open", "guards"}
        assert arrow["open"] is all(guard["held"] for guard in arrow["guards"])


def test_a_free_table_may_be_taken(desk):
    said = desk("why", f"dev/{TABLE}").out
    assert f"The lease {TABLE} of dev is absent" in said
    assert "acquire -> held: open" in said


def test_a_held_table_says_who_holds_it_and_why_nobody_else_may_take_it(desk):
    desk.lease()
    [found] = desk("why", f"dev/{TABLE}", "--json").json
    takes = [arrow for arrow in found["arrows"] if arrow["event"] == "acquire"]
    assert not any(arrow["open"] for arrow in takes)
    assert {sentence for arrow in takes for sentence in shut(arrow)} == {
        "it was not yet seen unchanged for its whole span",
        "its agent is not known to be lost or replaced, nor its worker to be gone",
    }
    assert next(arrow for arrow in found["arrows"] if arrow["event"] == "break")["open"]
    assert shut(next(arrow for arrow in found["arrows"] if arrow["event"] == "renew"))[0] == (
        "another claim wrote its last version"
    )
    said = desk("why", f"dev/{TABLE}").out
    assert "etl-01 on host-1 holds it for job job1" in said
    assert "it seems that it has not lapsed (estimate)" in said
    assert "Its agent seems unknown (estimate)" in said


def test_ages_are_told_as_estimates_and_open_nothing(desk):
    desk.lease()
    desk.agent()
    desk.age(lease_key(TABLE), 400)
    desk.age(agent_key("etl-01"), 4000)
    [found] = desk("why", f"dev/{TABLE}", "--json").json
    assert not any(arrow["open"] for arrow in found["arrows"] if arrow["event"] == "acquire")
    notes = " ".join(found["notes"])
    assert "it seems that it has lapsed (estimate)" in notes
    assert "Its agent seems lost (estimate)" in notes


def test_a_lease_whose_process_of_this_machine_is_gone_may_be_taken_at_once(desk):
    desk.lease(pid=GONE)
    [found] = desk("why", f"dev/{TABLE}", "--json").json
    [opened] = [arrow for arrow in found["arrows"] if arrow["event"] == "acquire" and arrow["open"]]
    assert [guard["sentence"] for guard in opened["guards"]][-1].startswith(
        "nobody is behind it: its agent is lost or replaced, or its worker's process"
    )


def test_several_words_are_answered_in_their_order(desk):
    desk.job()
    found = desk("why", "job1", f"dev/{TABLE}", "dev/_maintenance", "--json").json
    assert [one["kind"] for one in found] == ["job", "lease", "lease"]


@pytest.mark.parametrize(
    ("word", "code", "words"),
    [
        ("nope", 3, "Nothing is called 'nope'"),
        ("dev/silver.nope", 3, "Nothing is called 'dev/silver.nope'"),
        (f"prod/{TABLE}", 3, "no environment"),
        ("dev/../release", 3, "no environment"),
        ("dev/..", 2, "begins or ends with a dot"),
        ("dev/", 2, "is empty"),
        ("/x", 2, "its environment is empty"),
        ("", 2, "is empty"),
        ("x" * 200, 2, "characters"),
    ],
)
def test_a_word_that_names_nothing_is_a_sentence(desk, word, code, words):
    said = desk("why", word)
    assert said.code == code
    assert words in said.err


def test_letters_that_begin_two_ids_are_refused(desk):
    desk.job("ab1")
    desk.job("ab2")
    assert desk("why", "ab").code == 3
    assert desk("why", "ab1").code == 0


def test_looking_changes_nothing(desk):
    was = desk.running()
    lease = desk.lease()
    desk("why", "job1", f"dev/{TABLE}")
    assert desk.get() == was
    assert lease.renew()
