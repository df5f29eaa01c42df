"""Shared schedules: one request a due time, by whoever comes first, at the store's time."""

from dataclasses import replace

import pytest
from fleet_kit import ALL, BASE, LOST, hourly

from fdagent.config.schedules import Schedule
from fdagent.errors import ConfigError, HandedOver, Unavailable
from fdagent.fleet.records import parser, request_key
from fdagent.fleet.slots import slot_at
from models.slot import Request

HOUR = 3600.0


def names(fleet):
    return sorted(entry.key.split("/")[1] for entry in fleet.store.list("requests/"))


def sharers(fleet, *offs):
    agents = [fleet.agent(f"etl-{n:02d}", off=off, schedules=[hourly()]) for n, off in enumerate(offs)]
    for agent in agents:
        agent.tick()
    return agents


def test_three_agents_post_one_request_a_slot_and_whoever_posts_claims_at_once(fleet):
    agents = sharers(fleet, 0.0, 0.0, 0.0)
    fleet.time.now = BASE + HOUR + 1
    for agent in agents:
        agent.posting.tick()
    assert names(fleet) == ["sched-hourly-20270115T0900Z.json"]
    status = fleet.status("sched-hourly-20270115T0900Z")
    assert (status.state, status.agent) == ("accepted", "etl-00")
    request = parser(Request)(fleet.store.read(request_key("sched-hourly-20270115T0900Z")).body)
    assert (request.schedule, request.slot, request.due_at) == ("hourly", "20270115T0900Z", BASE + HOUR)
    assert request.deadline == BASE + 2 * HOUR
    assert status.deadline == request.deadline


@pytest.mark.parametrize("off", [-HOUR, HOUR, -2 * HOUR, 7 * HOUR, -1800, 1800])
def test_an_agent_whose_clock_is_off_posts_no_slot_early_or_late(fleet, off):
    (agent,) = sharers(fleet, off)
    posted = {}
    for minute in range(180):
        fleet.time.now = BASE + minute * 60 + 1
        agent.posting.tick()
        for name in names(fleet):
            posted.setdefault(name, minute)
    assert posted == {
        "sched-hourly-20270115T0800Z.json": 0,
        "sched-hourly-20270115T0900Z.json": 60,
        "sched-hourly-20270115T1000Z.json": 120,
    }


def test_an_agent_that_comes_up_late_posts_only_what_is_still_open(fleet):
    (agent,) = sharers(fleet, 0.0)
    fleet.time.now = BASE + 5 * HOUR + 1800
    agent.posting.tick()
    assert names(fleet) == ["sched-hourly-20270115T1300Z.json"]


def test_a_slot_of_a_day_is_open_for_six_hours_at_most():
    daily = Schedule(id="nightly", env="dev", daily=("02:00",), time_zone="Europe/Berlin", shared=True)
    due = BASE - 8 * HOUR + 17 * HOUR + 0  # 2027-01-15T17:00Z
    nightly = next(slot for at in range(0, 100_000, 600) if (slot := slot_at(daily, due + at)))
    assert (nightly.id, nightly.deadline - nightly.due) == ("sched-nightly-20270116T0100Z", 6 * HOUR)
    assert slot_at(daily, nightly.deadline) is None
    assert slot_at(daily, nightly.deadline - 1) == nightly


def test_without_the_stores_clock_nothing_is_posted(fleet):
    (agent,) = sharers(fleet, 0.0)
    agent.view.offset_known = False
    agent.posting.tick()
    assert names(fleet) == []


@pytest.mark.parametrize("fault", ["down", "lost", "never"])
def test_a_slot_is_posted_once_whatever_the_answers(fleet, fault):
    (agent,) = sharers(fleet, 0.0)
    faults = [fault]
    agent.view.fault = lambda call, key: faults.pop() if faults and (call, key[:9]) == ("write", "requests/") else None
    if fault == "down":
        with pytest.raises(Unavailable):
            agent.posting.tick()
    agent.posting.tick()
    agent.posting.tick()
    assert len(names(fleet)) == 1
    assert [moved.event for moved in agent.audit if moved.chart == "slot"] == ["post"]


def test_one_schedule_that_cannot_be_posted_keeps_no_other_from_it(fleet):
    (agent,) = sharers(fleet, 0.0)
    broken = Schedule(id="broken", env="dev", daily=("08:00",), time_zone="Mars/Olympus", shared=True)
    agent.schedules = [broken, hourly()]
    with pytest.raises(ConfigError):
        agent.posting.tick()
    assert names(fleet) == ["sched-hourly-20270115T0800Z.json"]


def test_a_paused_schedule_is_not_posted_and_one_slot_may_run_while_the_next_is_posted(fleet):
    (agent,) = sharers(fleet, 0.0)
    agent.posting.tick()
    attempt = agent.begin("sched-hourly-20270115T0800Z")
    fleet.time.now = BASE + HOUR + 1
    agent.posting.tick()
    assert len(names(fleet)) == 2
    agent.schedules = []
    fleet.time.now = BASE + 2 * HOUR + 1
    agent.posting.tick()
    assert len(names(fleet)) == 2
    attempt.end()
    assert fleet.state("sched-hourly-20270115T0800Z") == "succeeded"


def test_a_posted_slot_that_may_not_be_run_here_is_left_to_those_that_may(fleet):
    narrow = fleet.agent("etl-01", replace(ALL, entities=("silver.*",)), schedules=[hourly()])
    wide = fleet.agent("etl-02", schedules=[hourly()])
    wide.tick()
    narrow.tick()
    narrow.posting.tick()
    assert fleet.state("sched-hourly-20270115T0800Z") == "absent"
    wide.tick()
    assert fleet.status("sched-hourly-20270115T0800Z").agent == "etl-02"


# What a worker and a poll may not believe


def test_a_request_that_was_removed_since_the_look_is_not_claimed(fleet):
    (agent,) = sharers(fleet, 0.0)
    fleet.post("r1")

    def removed(call, key):
        if (call, key) == ("read", "status/r1.json"):
            agent.view.before = lambda call, key: None
            fleet.remove(request_key("r1"))

    agent.view.before = removed
    agent.mailbox.tick()
    assert (fleet.state("r1"), agent.job("r1")) == ("absent", None)


def test_a_worker_of_an_older_start_stands_down_once_the_new_one_holds_the_request(fleet):
    (agent,) = sharers(fleet, 0.0)
    fleet.post("r1")
    agent.tick()
    old = agent.begin("r1")
    agent.restart()
    fleet.go(LOST, agent)
    assert fleet.status("r1").instance == "etl-00-2"
    agent.begin("r1")
    with pytest.raises(HandedOver):
        old.hold.check()


def test_an_agent_does_not_serve_two_requests_with_one_worker_when_both_are_due(fleet):
    (agent,) = sharers(fleet, 0.0)
    for name in ("r1", "r2", "r3"):
        fleet.post(name)
    agent.tick()
    assert [fleet.state(name) for name in ("r1", "r2", "r3")] == ["accepted", "absent", "absent"]
