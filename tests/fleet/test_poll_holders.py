"""Whose a request is: who may serve it, who takes it over or offers it, and who stands down."""

from dataclasses import replace

import pytest
from fleet_kit import ALL, LOST, POLL, STALE

from fdagent.daemon.mail import Vigil
from fdagent.errors import HandedOver, Unavailable
from fdagent.fleet.records import dump, request_key, status_key
from models.slot import DAY
from models.status import RequestState

# Who may serve


@pytest.mark.parametrize(
    ("pipeline", "fields"),
    [
        (replace(ALL, entities=("silver.*",)), {"entities": ("bronze.orders",)}),
        (replace(ALL, entities=("silver.*",)), {}),
        (ALL, {"backfill": "full"}),
        (replace(ALL, environments=("prod",)), {}),
        (replace(ALL, enabled=False), {}),
    ],
    ids=["entity", "all entities", "backfill", "environment", "switched off"],
)
def test_what_an_agent_may_not_serve_is_left_to_one_that_may_and_rejected_where_none_may(fleet, pipeline, fields):
    narrow = fleet.agent("etl-01", pipeline)
    wide = fleet.agent("etl-02", replace(ALL, allow_backfill=True))
    wide.tick()
    narrow.tick()
    fleet.post("r1", **fields)
    fleet.go(60, narrow)
    assert fleet.state("r1") == "absent", "another lives that may"
    wide.tick()
    assert fleet.status("r1").agent == "etl-02"
    fleet.post("r2", **fields)
    fleet.go(LOST + 60, narrow)
    assert fleet.state("r2") == "rejected", "none lives that may"


def test_an_agent_that_was_announced_before_a_request_was_posted_is_known_to_the_poll_that_meets_the_request(fleet):
    narrow = fleet.agent("etl-01", replace(ALL, entities=("silver.*",)))
    narrow.tick()
    wide = fleet.agent("etl-02")

    def in_the_middle_of_a_poll(call, key):
        if (call, key) == ("list", "requests/"):
            wide.beat()
            fleet.post("r1", entities=("bronze.orders",))
            narrow.view.before = lambda call, key: None

    narrow.view.before = in_the_middle_of_a_poll
    narrow.mailbox.tick()
    assert fleet.state("r1") == "absent", "another lives that may"
    wide.mailbox.tick()
    assert fleet.status("r1").agent == "etl-02"


def test_nothing_is_rejected_while_an_agents_record_cannot_be_read(fleet):
    narrow = fleet.agent("etl-01", replace(ALL, entities=("silver.*",)))
    narrow.tick()
    fleet.put("agents/etl-09.json", b'{"contract": 9}')
    fleet.post("r1", entities=("bronze.orders",))
    fleet.go(300, narrow)
    assert fleet.state("r1") == "absent"


def test_another_promoted_version_passes_by_itself_so_nothing_is_rejected_for_it(fleet, a):
    a.promoted = "another"
    fleet.post("r1")
    fleet.go(300, a)
    assert fleet.state("r1") == "absent"
    a.promoted = a.project.metadata_version
    a.tick()
    assert fleet.state("r1") == "accepted"


def test_an_agent_whose_record_names_another_start_takes_nothing(fleet, a):
    clone = fleet.agent("etl-01")
    fleet.post("r1")
    clone.tick()
    assert (clone.presence.standing, fleet.state("r1")) == ("waiting", "absent")
    a.tick()
    assert fleet.status("r1").instance == a.instance


def test_with_when_free_a_busy_agent_takes_nothing_and_otherwise_lets_it_wait(fleet, a):
    fleet.post("r1")
    fleet.post("r2")
    a.tick()
    assert [fleet.state("r1"), fleet.state("r2")] == ["accepted", "absent"]
    a.begin("r1")
    a.tick()
    assert fleet.state("r2") == "absent"
    a.pipeline = replace(ALL, claim="always")
    a.tick()
    assert fleet.state("r2") == "accepted"


def test_an_agent_that_is_asked_to_stop_takes_nothing(fleet, a):
    a.stopping = True
    fleet.post("r1")
    a.tick()
    assert fleet.state("r1") == "absent"


# Takeover, hand back


def test_without_take_over_a_gone_agents_request_waits_for_the_deadline(fleet, a):
    b = fleet.agent("etl-02", replace(ALL, take_over=False))
    b.tick()
    fleet.post("r1", deadline=fleet.time.now + 3600)
    a.tick()
    a.begin("r1")
    fleet.go(3500, b)
    assert fleet.status("r1").agent == "etl-01"
    fleet.go(200, b)
    assert fleet.state("r1") == "expired"


@pytest.mark.parametrize("begun", [False, True])
def test_a_gone_agents_request_is_taken_over_within_the_bound(fleet, a, b, begun):
    fleet.post("r1")
    a.tick()
    if begun:
        a.begin("r1")
    a.beat()
    fleet.go(LOST, b)
    assert fleet.status("r1").agent == "etl-01"
    fleet.go(2 * POLL, b)
    status = fleet.status("r1")
    assert (status.agent, status.taken_over_from, status.agents) == ("etl-02", "etl-01", ("etl-01", "etl-02"))
    assert b.job("r1").state == "queued"


@pytest.mark.parametrize("after", [0.0, 2.4, 4.9, 7.4, 9.8])
def test_a_lost_agents_request_waits_for_one_poll_and_not_for_a_second(fleet, a, b, after):
    """However long after a poll of the watcher's the last beat comes."""
    vigil = Vigil(b.mailbox)
    fleet.post("r1")
    a.tick()
    b.tick()
    fleet.time.now += after
    a.beat()
    silent, due = fleet.time.now, fleet.time.now - after + POLL
    while fleet.status("r1").agent == "etl-01" and fleet.time.now < silent + 2 * LOST:
        fleet.time.now += vigil.every
        if fleet.time.now >= due:
            b.tick()
            due += POLL + 0.3  # so that no poll falls on the end of the span
        vigil.tick()
    assert LOST <= fleet.time.now - silent <= LOST + POLL + 3 * vigil.every
    calls = len(b.view.calls)
    for _ in range(50):
        fleet.time.now += vigil.every
        vigil.tick()
    assert len(b.view.calls) == calls, "between polls nothing is asked of the store"


def test_an_agent_without_a_record_is_never_gone(fleet, a, b):
    fleet.post("r1", deadline=fleet.time.now + 10 * DAY)
    a.tick()
    a.begin("r1")
    fleet.remove("agents/etl-01.json")
    fleet.go(4 * LOST, b)
    assert fleet.status("r1").agent == "etl-01"


def test_a_stopped_agents_request_is_taken_over_a_minute_later(fleet, a, b):
    fleet.post("r1")
    a.tick()
    a.presence.stop()
    fleet.go(60, b)
    assert fleet.status("r1").agent == "etl-01"
    fleet.go(2 * POLL, b)
    assert fleet.status("r1").agent == "etl-02"


def test_a_takeover_is_judged_on_a_record_read_right_before_it(fleet, a, b):
    fleet.post("r1")
    a.tick()
    a.begin("r1")
    fleet.go(STALE, b)

    def beats_at_last(call, key):
        if (call, key) == ("read", status_key("r1")) and b.clock.elapsed() - a.beat_at >= LOST:
            b.view.before = lambda call, key: None
            a.beat()

    b.view.before = beats_at_last
    before = a.beat_at
    fleet.go(LOST - STALE + 2 * POLL, b)
    assert a.beat_at > before
    assert fleet.status("r1").agent == "etl-01", "its last beat came between the look and the write"


def test_a_freshly_started_agent_watches_first(fleet, a):
    fleet.post("r1")
    a.tick()
    a.begin("r1")
    fleet.time.now += 10 * LOST
    b = fleet.agent("etl-02")
    b.tick()
    fleet.go(LOST - POLL, b)
    assert fleet.status("r1").agent == "etl-01"
    fleet.go(3 * POLL, b)
    assert fleet.status("r1").agent == "etl-02"


def test_a_stopping_agent_offers_what_waits_and_another_takes_it(fleet, a, b):
    fleet.post("r1")
    a.tick()
    a.stopping = True
    a.tick()
    assert fleet.status("r1").offered is True
    assert (a.job("r1").state, a.job("r1").reason) == ("cancelled", "handed_over")
    b.tick()
    assert (fleet.status("r1").agent, fleet.status("r1").offered) == ("etl-02", None)


def test_the_one_that_offered_may_take_it_back(fleet, a):
    fleet.post("r1")
    a.tick()
    a.stopping = True
    a.tick()
    a.stopping = False
    a.tick()
    status = fleet.status("r1")
    assert (status.agents, status.offered, status.taken_over_from) == (("etl-01", "etl-01"), None, None)
    assert a.job("r1").state == "queued"


@pytest.mark.parametrize("claim", ["always", "when_free"])
def test_a_retry_that_finds_no_worker_is_offered(fleet, a, b, claim):
    a.pipeline = replace(ALL, claim=claim)
    fleet.post("r1")
    a.tick()
    a.begin("r1").end("the network is gone", retryable=True)
    assert fleet.state("r1") == "accepted"
    long_job(a)
    fleet.go(20, a)
    assert fleet.status("r1").offered is None
    fleet.go(60, a)
    assert fleet.status("r1").offered is True
    b.tick()
    assert fleet.status("r1").agent == "etl-02"


def test_with_when_free_an_unstarted_request_does_not_wait_behind_another_job_while_somebody_may_be_free(fleet, a, b):
    fleet.post("r1")
    a.tick()
    long_job(a)
    a.tick()
    assert fleet.status("r1").offered is True
    b.tick()
    assert fleet.status("r1").agent == "etl-02"


def test_nothing_is_offered_where_nobody_else_lives_or_nobody_could_hold_it_again(fleet, a):
    fleet.post("r1")
    a.tick()
    long_job(a)
    fleet.go(60, a)
    assert fleet.status("r1").offered is None


def long_job(agent):
    """A job of another kind takes the worker."""
    from models.job import Job, JobState

    ids = agent.fleet.ids
    agent.jobs.enqueue(Job(ids.new(), JobState.QUEUED, "x", "dev", run_key="k", dedupe_key=ids.new(), not_before=0))
    with agent.jobs.write(durable=False) as transaction:
        transaction.execute("update job set not_before = 0 where source = 'cli'")
    assert agent.jobs.claim(agent.who).source == "cli"


# Standing down


@pytest.mark.parametrize("how", ["taken over", "abandoned", "removed"])
def test_a_worker_stands_down_at_its_next_read_or_write_of_the_status(fleet, a, b, how):
    fleet.post("r1")
    a.tick()
    attempt = a.begin("r1")
    attempt.hold.check()
    if how == "taken over":
        fleet.go(LOST + 60, b)
    elif how == "abandoned":
        ended = replace(fleet.status("r1"), state=RequestState.FAILED, finished_at=fleet.time.now, op="by hand")
        fleet.put(status_key("r1"), dump(ended))
    else:
        fleet.remove(status_key("r1"))
    before = fleet.store.read(status_key("r1"))
    for act in (attempt.hold.check, lambda: attempt.hold.report({}), lambda: attempt.hold.start("j", 2)):
        with pytest.raises(HandedOver):
            act()
    assert attempt.handed_over().reason == "handed_over"
    assert fleet.store.read(status_key("r1")) == before, "the status is left alone"


def test_a_status_that_cannot_be_read_lets_nothing_be_committed(fleet, a):
    fleet.post("r1")
    a.tick()
    attempt = a.begin("r1")
    a.view.away = True
    with pytest.raises(Unavailable):
        attempt.hold.check()


# While a poll is under way, or something else is promoted


def test_what_a_live_agent_runs_stays_its_own_when_a_promotion_widens_the_request(fleet, a):
    narrow = fleet.agent("etl-03", replace(ALL, entities=("bronze.*",)))
    b = fleet.agent("etl-02")
    for agent in (narrow, b):
        agent.tick()
    narrow.project = b.project
    fleet.post("r1", entities=("bronze.orders",))
    narrow.tick()
    narrow.begin("r1")
    # As if a later project, which b has already, resolved the request to more than its holder's allowlist covers.
    status = fleet.status("r1")
    assert status.agent == "etl-03"
    b.pipeline = ALL
    fleet.remove(request_key("r1"))
    fleet.post("r1", entities=("bronze.orders", "silver.orders"))
    fleet.go(3 * POLL, b, narrow)
    assert (fleet.status("r1").agent, fleet.status("r1").agents) == ("etl-03", ("etl-03",))


def test_a_restart_of_the_only_agent_that_serves_a_request_gets_it_not_rejected(fleet):
    wide, narrow = fleet.agent("etl-01"), fleet.agent("etl-02", replace(ALL, entities=("bronze.*",)))
    wide.tick()
    narrow.tick()
    wide.presence.stop()
    fleet.post("r1", entities=("silver.orders",))
    fleet.go(50, narrow)
    assert fleet.state("r1") == "absent"
    wide.start()
    fleet.go(2 * POLL, narrow, wide)
    assert fleet.status("r1").agent == "etl-01"


def test_a_holder_that_lapses_while_a_poll_is_under_way_is_looked_at_once_more_at_once(fleet, a, b):
    fleet.post("r1")
    a.tick()
    b.tick()
    a.beat()
    fleet.time.now += POLL
    b.tick()
    fleet.time.now += LOST - 0.1
    real = b.view.list

    def slow(prefix):
        found = real(prefix)
        fleet.time.now += 0.2 * (prefix == "agents/")  # the last answers take their time
        return found

    b.view.list = slow
    b.mailbox.tick()
    assert fleet.status("r1").agent == "etl-01"
    assert b.mailbox.is_early()
