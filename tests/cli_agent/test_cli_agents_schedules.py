"""The schedules of an environment over all its agents: shared ones in one row, their slots, and what is hardly meant."""

import pytest
from cli_agent_kit import TABLE, Desk

from fdagent.fleet.copies import DIFFER, TWO_PLACES, oddities, scheduled
from fdagent.fleet.slotlog import slots_of
from models import codec
from models.agent import AgentRecord, AgentState, Schedule
from models.liveness import Liveness
from models.slot import Request, slot_deadline, slot_id, slot_name
from models.status import FINAL, RequestState, Status

KNOWN = ("bronze.orders", "silver.orders", "gold.sales")
NOON = 1_800_014_400.0
"""2027-01-15T12:00:00Z."""
HOUR = 3600.0


def hourly(**changed) -> Schedule:
    told = {"id": "hourly", "when": "every 60 minutes", "shared": True, "next_due_at": NOON + HOUR, "fingerprint": "a"}
    return Schedule(**{**told, "entities": ("*",), **changed})


def own(**changed) -> Schedule:
    told = {"id": "nightly", "when": "daily at 02:00 (UTC)", "shared": False, "next_due_at": NOON + HOUR}
    return Schedule(**{**told, "fingerprint": "n", "entities": ("silver.*",), **changed})


def fleet(*each: tuple[str, Schedule], seems: Liveness = Liveness.ALIVE):
    return [(AgentRecord(name=name, state=AgentState.RUNNING, schedules=(schedule,)), seems) for name, schedule in each]


def odd(*each: tuple[str, Schedule], seems: Liveness = Liveness.ALIVE) -> list[tuple[str, str]]:
    return [(one.kind, one.sentence) for one in oddities(scheduled(fleet(*each, seems=seems)), KNOWN)]


# Who has which


def test_a_shared_schedule_is_one_row_whoever_has_it_and_own_ones_are_one_each():
    found = scheduled(fleet(("etl-01", hourly()), ("etl-02", hourly()), ("etl-01", own()), ("etl-02", own())))
    assert [(one.id, one.shared, one.agents) for one in found] == [
        ("hourly", True, ("etl-01", "etl-02")),
        ("nightly", False, ("etl-01",)),
        ("nightly", False, ("etl-02",)),
    ]


def test_copies_that_agree_are_not_warned_about():
    assert odd(("etl-01", hourly()), ("etl-02", hourly())) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"when": "every 30 minutes"}, "etl-01 has every 60 minutes for all entities, etl-02 has every 30 minutes"),
        ({"entities": ("gold.*",)}, "etl-02 has every 60 minutes for gold.*"),
        ({}, "their cascade or backfill differs"),
    ],
)
def test_copies_of_a_shared_schedule_that_differ_are_named_with_how(changed, words):
    [(kind, sentence)] = odd(("etl-01", hourly()), ("etl-02", hourly(fingerprint="b", **changed)))
    assert kind == DIFFER
    assert words in sentence
    assert sentence.endswith("Make its [[schedule]] the same in every agent.toml.")


@pytest.mark.parametrize("seems", [Liveness.LOST, Liveness.STOPPED])
def test_what_an_agent_that_is_gone_has_is_not_warned_about(seems):
    agents = fleet(("etl-01", hourly()), ("etl-01", own()))
    agents += fleet(("etl-02", hourly(fingerprint="b")), ("etl-02", own()), seems=seems)
    assert oddities(scheduled(agents), KNOWN) == []


def test_a_copy_of_a_version_without_fingerprints_is_not_called_different():
    assert odd(("etl-01", hourly()), ("etl-02", hourly(fingerprint=None))) == []


def test_a_table_that_two_agents_schedule_is_scheduled_in_two_places():
    [(kind, sentence)] = odd(("etl-01", own()), ("etl-02", own(id="orders", entities=(TABLE,))))
    assert kind == TWO_PLACES
    assert (
        f"Scheduled in two places: {TABLE} by etl-01 (nightly, daily at 02:00 (UTC)) and by etl-02 (orders" in sentence
    )


@pytest.mark.parametrize(
    "other",
    [
        own(id="gold", entities=("gold.*",)),
        own(next_due_at=None),
        hourly(),
    ],
    ids=["other tables", "disabled, or paused for good", "a shared one"],
)
def test_what_does_not_meet_is_not_scheduled_in_two_places(other):
    assert odd(("etl-01", own()), ("etl-02", other)) == []


def test_two_schedules_of_one_agent_are_not_two_places():
    assert odd(("etl-01", own()), ("etl-01", own(id="again"))) == []


def test_a_schedule_that_one_agent_shares_and_another_does_not_is_in_two_places():
    [(kind, sentence)] = odd(("etl-01", hourly()), ("etl-02", hourly(shared=False)))
    assert kind == TWO_PLACES
    assert "hourly is shared by etl-01, and etl-02 runs a copy that is not shared" in sentence


def test_entities_that_the_project_does_not_have_are_compared_as_they_are_written():
    [(_, sentence)] = odd(("etl-01", own(entities=("x.y",))), ("etl-02", own(entities=("x.y",))))
    assert "x.y by etl-01" in sentence


# What became of the slots


def status(name: str, state: RequestState, **about) -> Status:
    told = {"agent": "etl-01", "agents": ("etl-01",), "finished_at": NOON if state in FINAL else None}
    return Status(id=name, env="dev", state=state, **{**told, **about})


def posted(due: float) -> tuple[str, Request]:
    return slot_id("hourly", due), Request(
        schedule="hourly", slot=slot_name(due), due_at=due, deadline=slot_deadline(due, due + HOUR)
    )


def slots(requests=(), statuses=(), *, now=NOON + 60, since=None, paused=False, words="every 60 minutes"):
    found = slots_of(
        "hourly",
        words,
        dict(requests),
        {one.id: one for one in statuses},
        now=now,
        since=since,
        paused=paused,
    )
    return {(one.due - NOON) / HOUR: str(one.state) for one in found}


def test_a_due_time_that_nobody_posted_is_missed_once_nobody_may_any_more():
    ran = [posted(NOON - 4 * HOUR), posted(NOON - 2 * HOUR)]
    done = [status(name, RequestState.SUCCEEDED) for name, _ in ran]
    assert slots(ran, done) == {-4: "succeeded", -3: "missed", -2: "succeeded", -1: "missed"}
    assert slots(ran, done, now=NOON + HOUR)[0] == "missed"


def test_before_the_schedule_was_there_nothing_is_missed():
    assert slots() == {}
    assert slots(since=NOON - 2.5 * HOUR) == {-2: "missed", -1: "missed"}


def test_while_every_agent_has_it_paused_nothing_is_missed():
    assert slots([posted(NOON - 4 * HOUR)], paused=True) == {-4: "expired"}


def test_a_slot_that_nobody_took_in_time_has_expired_and_one_in_time_waits():
    assert slots([posted(NOON - HOUR), posted(NOON)]) == {-1: "expired", 0: "waiting"}


def test_a_swept_day_is_not_called_missed():
    assert min(slots(since=NOON - 100 * HOUR)) == -23


@pytest.mark.parametrize("words", ["whenever", "daily at 02:00 (local time)", "every 0.5 minutes", ""])
def test_times_that_are_not_understood_tell_of_no_missed_slot(words):
    assert slots([posted(NOON - 4 * HOUR)], words=words) == {-4: "expired"}


def test_a_daily_schedule_of_a_zone_has_its_slots_at_that_zones_times():
    assert slots(since=NOON - 23 * HOUR, words="daily at 02:00 (Europe/Berlin)") == {-11: "missed"}


def test_slots_of_a_schedule_whose_id_begins_alike_are_not_its_own():
    name = slot_id("hourly-too", NOON - HOUR)
    assert slots([(name, Request())], [status(name, RequestState.FAILED)]) == {}


@pytest.mark.parametrize("words", ["every minute", "every 9999999999999999999999 minutes"])
def test_a_schedule_of_any_interval_is_told_at_once(words):
    assert len(slots(since=0.0, words=words)) <= 24 * 60


# As a person sees it


@pytest.fixture
def shared(desk):
    """Two agents that share a schedule which is due each hour; the due times of the last hours, newest first."""
    now = desk.clock.wall()
    due = now // HOUR * HOUR
    copy = hourly(next_due_at=due + HOUR)
    for name in ("etl-01", "etl-02"):
        desk.agent(name, schedules=(copy,))
    return [due - n * HOUR for n in range(5)]


def put(desk: Desk, due: float, state: RequestState | None = None, **about) -> str:
    name, request = posted(due)
    desk.file(f"requests/{name}.json", codec.dump(request.to_json()).decode())
    if state is not None:
        desk.file(f"status/{name}.json", codec.dump(status(name, state, **about).to_json()).decode())
    return name


def test_a_shared_schedule_is_one_row_with_the_agents_that_share_it(desk, shared):
    put(desk, shared[0], RequestState.SUCCEEDED)
    said = desk("agents", "dev").out
    assert said.count("Shared by etl-01, etl-02") == 1
    assert "every 60 minutes" in said
    assert "1 succeeded" in said
    assert "to look at" not in said


def test_missed_expired_and_taken_over_slots_are_listed_and_the_last_names_both_agents(desk, shared):
    put(desk, shared[4], RequestState.SUCCEEDED)
    missed = slot_id("hourly", shared[3])
    expired = put(desk, shared[2], RequestState.EXPIRED, reason="Nobody had a worker free.")
    taken = put(desk, shared[1], RequestState.SUCCEEDED, agent="etl-02", agents=("etl-01", "etl-02"))
    said = desk("agents", "dev")
    assert said.code == 0
    assert "Slots of dev to look at" in said.out
    lines = {
        name: next(line for line in said.out.splitlines() if line.startswith(name)) for name in (missed, expired, taken)
    }
    assert "missed" in lines[missed]
    assert "expired" in lines[expired]
    assert "Nobody had a worker free." in lines[expired]
    assert "etl-01 → etl-02" in lines[taken]
    [found] = desk("agents", "dev", "--json").json["schedules"]
    assert {slot["id"]: (slot["state"], slot["taken_over"]) for slot in found["slots"]} == {
        slot_id("hourly", shared[4]): ("succeeded", False),
        missed: ("missed", False),
        expired: ("expired", False),
        taken: ("succeeded", True),
    }


def test_warnings_about_schedules_stand_under_them_and_in_json(desk, shared):
    desk.agent("etl-03", schedules=(hourly(fingerprint="b", when="every 30 minutes"),))
    said = desk("agents", "dev").out
    assert "! The copies of the shared schedule hourly differ" in said
    [found] = desk("agents", "dev", "--json").json["warnings"]
    assert (found["kind"], found["schedules"]) == (DIFFER, ["hourly"])


def test_a_pause_names_the_agents_that_have_it(desk, shared):
    desk.agent("etl-03", schedules=(hourly(paused_until=NOON * 2),))
    assert "paused on etl-03" in desk("agents", "dev").out


def test_what_another_program_wrote_into_a_schedule_is_never_obeyed_by_the_terminal(desk):
    desk.agent("etl-01", schedules=(hourly(id="x\x1b[31m", when="\x1b]0;owned\x07"),))
    said = desk("agents", "dev")
    assert said.code == 0
    assert "\x1b" not in said.out


def test_agents_without_schedules_show_no_empty_table(desk):
    desk.agent()
    assert "Schedules" not in desk("agents", "dev").out
    assert desk("agents", "dev", "--json").json["schedules"] == []
