"""Schedules that broke earlier drafts of the protocol, played by hand on the code as it is.

The number in a test's name is the schedule's; what mends it stands as a mutant with the same number in `tests/mutants`,
and a search or a run by seeds must find the schedule again when it is taken out.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from fdagent.commit import Committed, commit
from fdagent.fleet.records import status_cell
from machines.request import REQUEST
from models.agent import AgentState
from models.status import RequestFacts
from tests.world import agents, leases, ledgers, mailbox
from tests.world.drive import Walk
from tests.world.process import Program
from tests.world.scope import BASE
from tests.world.scopes import SCOPES
from tests.world.tables import Pin

NUMBERS = [
    "1",
    "2",
    "3",
    "4a",
    "4b",
    "4c",
    "5",
    "6",
    "7",
    "8a",
    "8b",
    "8c",
    "8d",
    "9a",
    "9b",
    "9c",
    "10",
    "11",
    "12a",
    "12b",
    "12c",
    "12d",
    "12e",
    "13",
    "14",
    "15",
    "16",
    "17",
]
ELSEWHERE = {
    "12a": "process/test_kill_at_each_step.py: test_a_kill_around_new_columns_adds_them_once",
    "12b": "process/test_kill_at_each_step.py: test_a_kill_around_the_quarantine_doubles_no_refused_row",
    "12c": "engine/test_watermark.py: test_marks_that_the_log_lost_are_found_in_the_run_log",
    "12d": "schedules/test_saved_dues.py: test_a_due_time_that_runs_again_because_both_were_lost_has_the_same_run_key",
    "15": "fleet/test_reconcile.py: test_a_request_goes_to_another_agent_and_comes_back",
}
"""Schedules whose repair is in what the world leaves out (columns, quarantine, files of one's own), or needs three holds."""
ALL_FAULTS = frozenset({"lost", "late", "never", "twice", "sent", "down", "stale", "slow", "crash", "stall", "mute"})


def walk(name: str, **changed) -> Walk:
    """A walk through a scope in which everything may happen as often as the schedule likes, and time at any moment."""
    given = {"faults": ALL_FAULTS, "budget": 100, "boots": 100, "until": 1e6, "lockstep": False}
    given |= {"foreign": 100, "cleans": 100}
    return Walk(replace(SCOPES[name], **given | changed))


def open_for_long(name: str) -> Walk:
    """The same, with a request whose deadline is far off."""
    far = mailbox.request_body(deadline=BASE + 3000.0)
    return walk(name, records={**SCOPES[name].records, mailbox.REQUEST_FILE: far})


def newest(played: Walk) -> Pin:
    return played.state.tables["t"].newest


def status(played: Walk):
    return mailbox.status_of(played.state)


@pytest.mark.parametrize("lands_before_the_next_commit", [True, False])
def test_1_files_of_an_unclear_commit_stay_until_its_version_is_taken(lands_before_the_next_commit):
    with walk("merge") as played:
        played.until("a", "commit").take("a!late").until("a", "commit")
        if lands_before_the_next_commit:
            played.take("land:0").finish("a")
        else:
            played.finish("a").take("land:0")
        assert newest(played).rows == ("R", "source1")
        assert newest(played).files <= played.state.tables["t"].files


def test_2_a_commit_that_landed_thirty_versions_ago_is_found():
    with walk("merge") as played:
        played.until("a", "commit").take("a!lost")
        for _ in range(30):
            played.take("foreign:t")
        played.finish("a", "b")
        assert newest(played).rows.count("R") == 1


def test_3_a_put_below_a_cleaned_log_is_not_taken_for_a_commit():
    with walk("merge") as played:
        played.until("a", "commit")
        for _ in range(12):
            played.take("foreign:t")
        version = newest(played).version
        played.take("clean:t").take("a")
        assert newest(played).version == version, "the store said yes, and the table has nothing of it"
        played.finish("a")
        assert newest(played).rows.count("R") == 1


def test_4a_a_new_start_adopts_what_the_old_one_claimed():
    with walk("request") as played:
        played.until("a", "write").take("a").take("a!crash").take("a+").finish("a", "b")
        assert status(played).state == "succeeded"
        assert status(played).holds == ("a", "a")


def test_4b_what_an_agent_left_when_it_stopped_for_good_is_taken_over():
    with open_for_long("request") as played:
        played.until("a", "write").take("a").take("a!crash")
        stopped = mailbox.agent_body("a", "a-0", "bye", 0.0, state=AgentState.STOPPED)
        mailbox.put(played.state, "agents/a.json", stopped)
        played.finish("b")
        assert (status(played).state, status(played).holds) == ("succeeded", ("a", "b"))


def test_4c_what_an_agent_without_a_record_holds_is_abandoned_by_a_person_only():
    with walk("request") as played:
        played.until("a", "write").take("a").until("a", "write").take("a").take("a!crash")
        assert status(played).state == "running"
        del played.state.records["agents/a.json"]
        played.spend("b", 12)
        assert status(played).state == "running"

        store = _Direct(played)
        named = RequestFacts(by_a_person=True, person="somebody", named_op=status(played).op)
        answer = commit(
            REQUEST,
            status_cell(store, mailbox.ID),
            "abandon",
            op="by hand",
            facts=lambda _: named,
            clock=played.state.look("b"),
            ids=store,
        )
        assert isinstance(answer, Committed)
        assert status(played).state == "failed"


class _Direct:
    """The world's store for a person's command: nothing comes between."""

    def __init__(self, played: Walk) -> None:
        self.played = played

    def read(self, key):
        return self.played.state._perform("b", ("read", key))

    def write(self, key, body, condition):
        return self.played.state._perform("b", ("write", key, body, condition))

    def fraction(self):
        return 0.5


def test_5_a_run_whose_agent_died_after_its_deadline_expires():
    with walk("request") as played:
        played.until("a", "write").take("a").until("a", "write").take("a")
        assert status(played).state == "running"
        played.spend("b", 4)
        assert status(played).state == "running", "its agent lives"
        played.take("a!crash").spend("b", 3)
        assert status(played).state == "expired"


@pytest.mark.parametrize("writes_before", [0, 1, 2])
def test_6_a_write_that_lands_after_its_agent_gave_it_up_leaves_nothing_behind(writes_before):
    with walk("request") as played:
        for _ in range(writes_before):
            played.until("a", "write").take("a")
        played.until("a", "write")
        hold = len(played.state.flying)
        for _ in range(9):
            played.until("a", "write").take("a!late")
            if played.state.procs["a"].node.call[0] == "sleep":
                break
        assert len(played.state.flying) > hold
        played.take("land:0")
        played.finish("a", "b")
        assert mailbox.ended(played.state)
        assert status(played).state == "succeeded", "and not only when its deadline ends it"


def test_7_a_status_created_after_the_sweep_comes_to_no_effect():
    with walk("request-sweep") as played:
        played.until("a", "write")
        played.until("b", "write").take("b!sent")
        for _ in range(60):
            if mailbox.ended(played.state):
                break
            played.take("a" if "a" in played.state.choices() else "tick")
        played.take("b+")
        for _ in range(400):
            if mailbox.STATUS not in played.state.records:
                break
            played.take("b" if "b" in played.state.choices() else "tick")
        assert mailbox.REQUEST_FILE not in played.state.records
        played.take("land:0")
        assert status(played).state == "accepted", "it is back, held by a start that is gone"
        for _ in range(60):
            if mailbox.ended(played.state):
                break
            played.take("b" if "b" in played.state.choices() else "tick")
        assert (status(played).state, status(played).reason) == ("expired", "Its request file is gone.")


def test_8a_a_request_that_kills_whoever_runs_it_fails_and_names_each():
    with open_for_long("request") as played:
        for name in ("a", "b"):
            while status(played) is None or status(played).agent != name or status(played).state != "running":
                played.take(name if name in played.state.choices() else "tick")
            played.take(f"{name}!crash")
        played.take("a+")
        while not mailbox.ended(played.state):
            played.take("a" if "a" in played.state.choices() else "tick")
        assert status(played).state == "failed"
        assert "held by a, b" in status(played).error


def test_8b_what_waits_to_be_tried_again_goes_to_an_agent_that_can_run_it():
    with walk("request-retry") as played:
        played.until("a", "write").take("a").finish("a", "b")
        assert (status(played).state, status(played).agent, status(played).taken_over_from) == ("succeeded", "b", "a")


def test_8c_a_draining_agent_goes_on_beating():
    draining = (Program("a", (agents.arrive, agents.drain, agents.attend), machine="ma"),)
    with walk("agent", programs=draining) as played:
        for _ in range(4):
            played.until("a", "sleep").take("tick")
            played.until("a", "sleep")
            record = agents.read_agent(played.state.records[agents.KEY].body)
            assert (record.state, record.heartbeat_at) == (AgentState.STOPPING, BASE + played.state.now)


def test_8d_what_one_agent_may_not_serve_it_leaves_to_those_that_may():
    programs = (
        Program("a", (mailbox.unfit, *mailbox.AGENT), machine="ma", agent="a"),
        Program("b", mailbox.AGENT, machine="mb", agent="b"),
    )
    with walk("request", programs=programs) as played:
        played.until("a", "sleep")
        assert status(played) is None
        played.finish("b")
        assert (status(played).state, status(played).holds) == ("succeeded", ("b",))


def test_9a_a_lone_holder_takes_its_own_lapsed_lease_again():
    with walk("lease") as played:
        played.until("a", "write").take("a").until("a", "sleep")
        for _ in range(3):
            played.take("tick")
        played.finish("a")
        assert "lease taken from another" in played.world.seen, "its own former claim's"
        assert leases.KEY not in played.state.records


def test_9b_two_workers_of_one_agent_are_strangers_to_each_other():
    with walk("lease-workers") as played:
        played.until("a", "write").take("a").until("b", "sleep")
        assert "refused" in played.world.seen
        assert played.state.believers() == {leases.TABLE: ["a"]}


def test_9c_a_job_is_not_taken_back_while_its_worker_lives():
    with walk("job") as played:
        played.take("w1").take("w1").take("w2").take("w2")
        assert "recovered as queued" not in played.world.seen
        played.take("w1!crash")
        played.take("tick").take("w2").take("w2").take("w2")
        assert "recovered as queued" in played.world.seen


def test_10_a_commit_that_was_checked_lands_once_though_another_has_taken_over():
    with open_for_long("request-landing") as played:
        while played.state.procs["a"].node.call[0] != "commit":
            played.take("a")
        played.take("a!mute")
        played.spend("b", 3)
        assert status(played).holds == ("a", "b")
        played.finish("b").take("a").finish("a")
        assert newest(played).rows.count(mailbox.ID) == 1
        assert (status(played).state, status(played).agent) == ("succeeded", "b")


def test_11_a_lease_lapses_only_after_its_whole_span_was_watched():
    with walk("lease") as played:
        played.until("a", "write").take("a").until("b", "sleep")
        played.spend("b", 1)
        assert played.state.now == leases.SPAN / 2
        assert played.state.believers() == {leases.TABLE: ["a"]}
        played.spend("b", 1)
        assert played.state.believers() == {leases.TABLE: ["b"]}


def test_12e_a_writer_that_commits_before_each_of_our_tries_does_not_starve_an_append():
    with walk("append") as played:
        for _ in range(30):
            played.until("a", "commit").take("foreign:t").take("a")
        played.finish("a")
        assert newest(played).rows.count("R") == 1
        assert len({info.author.attempt_id for info in played.state.tables["t"].infos if info.author}) == 1


def test_13_the_opener_sends_though_its_answer_was_lost_and_another_wrote_over_the_ledger():
    programs = tuple(
        Program(name, (*before, ledgers.evaluate, ledgers.send), machine=f"m{name}", agent=name)
        for name, before in (("a", ()), ("b", (ledgers.another,)))
    )
    with walk("ledger", programs=programs) as played:
        played.until("a", "write").take("a!lost")
        played.until("b", "write").take("b")
        played.until("a", "sleep")
        assert played.state.ghost[("sent", "silver.orders")]


def test_14_a_dead_holder_of_another_place_is_waited_out():
    with walk("lease") as played:
        played.until("a", "write").take("a").take("a!crash")
        played.until("b", "sleep")
        assert "lease by dead process" not in played.world.seen
        played.spend("b", 1)
        assert leases.TABLE not in played.state.believers()


def test_16_a_taker_that_lost_the_race_is_judged_on_what_is_there_now():
    with walk("lease") as played:
        played.until("a", "write").until("b", "write").take("a").take("b")
        played.until("b", "sleep")
        assert played.state.believers() == {leases.TABLE: ["a"]}


def test_17_a_release_whose_answer_was_lost_is_done():
    with walk("lease-release") as played:
        played.until("a", "delete").take("a!lost").finish("a")
        assert leases.KEY not in played.state.records
        assert "trouble" not in played.world.seen


@pytest.mark.parametrize("number", NUMBERS)
def test_every_known_schedule_has_a_test(number):
    if number in ELSEWHERE:
        file, _, name = ELSEWHERE[number].partition(": ")
        assert f"def {name}(" in (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    else:
        assert [name for name in globals() if name.startswith(f"test_{number}_")]
