"""What a poll does with requests: files of every ugliness, the order of precedence, and what it leaves alone."""

import json
from dataclasses import replace

import pytest
from fleet_kit import ALL, BEAT, LOST, POLL, STALE, Fleet

from fdagent.daemon.mail import Vigil
from fdagent.errors import DiskFull, HandedOver, Unavailable
from fdagent.fleet.records import cancel_key, dump, request_key, status_key
from fdagent.stores.local import LocalStore
from models.slot import DAY
from models.status import RequestState, Status


@pytest.fixture
def fleet():
    return Fleet()


@pytest.fixture
def a(fleet):
    agent = fleet.agent("etl-01")
    agent.tick()
    return agent


@pytest.fixture
def b(fleet):
    agent = fleet.agent("etl-02")
    agent.tick()
    return agent


# Files


def test_a_half_written_file_is_waited_for_and_runs_once_it_is_whole(fleet, a):
    fleet.post("r1", body=b'{"entities": ["bron')
    fleet.go(50, a)
    assert fleet.state("r1") == "absent"
    fleet.put(request_key("r1"), b'{"entities": ["bronze.orders"]}')
    a.tick()
    assert fleet.state("r1") == "accepted"
    assert a.job("r1").entities == ("bronze.orders",)


def test_a_file_that_grows_is_waited_for_from_its_last_change(fleet, a):
    fleet.post("r1", body=b'{"ent')
    fleet.go(50, a)
    fleet.put(request_key("r1"), b'{"entities": ["bron')
    fleet.go(50, a)
    assert fleet.state("r1") == "absent"
    fleet.go(20, a)
    assert fleet.state("r1") == "rejected"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"a": 1, "a": 2}',
        b'{"deadline": NaN}',
        b'{"entities": []}',
        b'{"entities": "bronze.orders"}',
        b'{"backfill": "some"}',
        b'{"deadline": "tomorrow"}',
        b"\xff\xfe\x00\xd8",
        b"\x00" * 300_000,
        b"[" * 100_000,
    ],
    ids=range(12),
)
def test_a_file_that_is_no_request_is_rejected_after_a_minute_with_the_reason_and_hides_no_other(fleet, a, body):
    fleet.post("a-bad", body=body)
    fleet.post("b-good")
    a.tick()
    assert (fleet.state("a-bad"), fleet.state("b-good")) == ("absent", "accepted")
    fleet.go(60, a)
    status = fleet.status("a-bad")
    assert status.state == "rejected"
    assert len(status.reason) > 20
    assert a.job("a-bad") is None


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_what_powershell_writes_is_accepted(fleet, a, encoding):
    fleet.post("r1", body='{"entities": ["bronze.orders"], "submitted_by": "Jörg"}\r\n'.encode(encoding))
    a.tick()
    assert (fleet.state("r1"), a.job("r1").entities) == ("accepted", ("bronze.orders",))


@pytest.mark.parametrize("entity", ["../x", "silver.gone", "..", "C:\\x", "silver/orders", "nowhere.*"])
def test_entities_that_the_promoted_version_lacks_are_rejected_at_once(fleet, a, entity):
    fleet.post("r1", entities=(entity,))
    a.tick()
    assert (fleet.state("r1"), a.job("r1")) == ("rejected", None)


def test_entities_are_not_judged_by_a_version_that_is_not_the_promoted_one(fleet, a):
    a.promoted = "another"
    fleet.post("r1", entities=("silver.gone",))
    fleet.go(300, a)
    assert fleet.state("r1") == "absent"


def test_ids_that_are_no_ids_are_rejected_where_a_status_may_lie_and_told_where_none_may(tmp_path, fleet):
    store = LocalStore(tmp_path / "root", clock=fleet.true, ids=fleet.ids)
    fleet.store = store
    agent = fleet.agent("etl-01")
    agent.tick()
    folder = tmp_path / "root" / "requests"
    folder.mkdir(exist_ok=True)
    long = "x" * 65
    for name in ("..evil", "a b", "con", ".hidden", "ünï", "a%2e%2e", "good", long):
        (folder / f"{name}.json").write_text("{}")
    (folder / "half.json.tmp").write_text("{")
    (folder / "sub").mkdir()
    (folder / "sub" / "x.json").write_text("{}")
    before = {path for path in tmp_path.rglob("*") if path.parent.name not in ("status", "agents")}
    agent.tick()
    told = [entry[-2] for entry in agent.log if entry[1] == "file_ignored"]
    assert all(any(name in said for said in told) for name in ("..evil", "a b", "con", "ünï", "a%2e%2e"))
    assert fleet.state("good") == "accepted"
    fleet.go(60, agent)
    assert fleet.state(long) == "rejected"
    assert "65 characters" in fleet.status(long).reason
    assert len([entry for entry in agent.log if entry[1] == "file_ignored"]) == len(told), "told once"
    statuses = sorted(path.name for path in (tmp_path / "root" / "status").iterdir())
    assert statuses == sorted(["good.json", f"{long}.json"])
    after = {path for path in tmp_path.rglob("*") if path.parent.name not in ("status", "agents")}
    assert {path for path in after - before if "lock" not in str(path)} == {tmp_path / "root" / "status"}


def test_of_ids_equal_but_for_case_the_first_is_served_and_the_other_rejected(fleet, a):
    fleet.post("run-A")
    fleet.post("RUN-a")
    a.tick()
    assert (fleet.state("RUN-a"), fleet.state("run-A")) == ("accepted", "rejected")
    assert "letter case" in fleet.status("run-A").reason
    a.do("RUN-a")
    fleet.post("Run-A")
    a.tick()
    assert fleet.state("Run-A") == "rejected", "an id that was used is used in every letter case"


def test_an_id_that_a_kept_job_has_in_another_case_does_not_take_that_jobs_end_for_its_own(fleet, a):
    fleet.post("run-A")
    a.tick()
    a.do("run-A")
    fleet.remove(request_key("run-A"))
    fleet.remove(status_key("run-A"))
    fleet.post("RUN-A")
    a.tick()
    fleet.go(60, a)
    assert fleet.state("RUN-A") == "failed"
    assert "letter case" in fleet.status("RUN-A").reason


def test_a_newer_contracts_files_are_left_alone(fleet, a):
    fleet.post("r1", body=b'{"contract": 2, "entities": {"all": true}}')
    fleet.post("r2")
    fleet.put(status_key("r2"), json.dumps({"contract": 2, "state": "thinking"}).encode())
    before = fleet.store.read(status_key("r2")).body
    fleet.go(300, a)
    assert (fleet.state("r1"), a.job("r2")) == ("absent", None)
    assert fleet.store.read(status_key("r2")).body == before


# A look that fails


@pytest.mark.parametrize("folder", ["agents/", "cancel/", "requests/", "status/", "requests/r1.json"])
def test_nothing_is_claimed_while_the_store_is_away_and_nothing_is_forgotten_once_it_is_back(fleet, a, folder):
    fleet.post("r1")
    a.view.fault = lambda call, key: "down" if key == folder else None
    with pytest.raises(Unavailable):
        a.mailbox.tick()
    assert (fleet.state("r1"), a.job("r1")) == ("absent", None)
    a.view.fault = lambda call, key: None
    a.mailbox.tick()
    assert fleet.state("r1") == "accepted"


def test_one_request_that_the_store_has_no_answer_for_hides_no_other(fleet, a):
    for name in ("a", "b", "c"):
        fleet.post(name)
    a.concurrency = 3
    a.view.fault = lambda call, key: "down" if key == status_key("a") else None
    a.mailbox.tick()
    assert [fleet.state(name) for name in ("b", "c")] == ["accepted", "accepted"]
    assert any(entry[1] == "request_trouble" for entry in a.log)


def test_a_store_that_goes_away_during_a_poll_is_not_asked_for_each_request(fleet, a):
    for number in range(50):
        fleet.post(f"r{number}")
    a.view.fault = lambda call, key: "down" if call == "read" and key.startswith("status/") else None
    a.view.calls.clear()
    with pytest.raises(Unavailable):
        a.mailbox.tick()
    assert sum(call == "read" for call, _ in a.view.calls) < 60


# Precedence


def test_a_cancel_file_comes_before_the_deadline_and_before_a_claim(fleet, a):
    for name, deadline in (("late", fleet.time.now - 1), ("new", fleet.time.now + 60)):
        fleet.post(name, deadline=deadline)
        fleet.wish(name)
    a.tick()
    assert [fleet.state("late"), fleet.state("new")] == ["cancelled", "cancelled"]


def test_the_deadline_comes_before_a_rejection_and_before_a_claim(fleet, a):
    fleet.post("unknown", entities=("silver.gone",), deadline=fleet.time.now)
    fleet.post("known", deadline=fleet.time.now)
    a.tick()
    assert [fleet.state("unknown"), fleet.state("known")] == ["expired", "expired"]


def test_the_deadline_comes_before_giving_up(fleet, a, b):
    fleet.post("r1", deadline=fleet.time.now + 60)
    a.tick()
    a.begin("r1")
    b.max_attempts = 1
    b.start()
    b.beat()
    fleet.go(LOST + 60, b)
    assert fleet.state("r1") == "expired"


def test_giving_up_comes_before_taking_over_and_names_each_hold(fleet):
    a, b, c = (fleet.agent(f"etl-0{n}", max_attempts=2) for n in (1, 2, 3))
    a.tick()
    b.tick()
    fleet.post("r1", deadline=fleet.time.now + DAY)
    a.tick()
    a.begin("r1")
    fleet.go(LOST + 2 * POLL, b)
    b.begin("r1")
    c.tick()
    fleet.go(LOST + 3 * POLL, c)
    status = fleet.status("r1")
    assert (status.state, status.agents) == ("failed", ("etl-01", "etl-02"))
    assert "etl-01, etl-02" in status.error


def test_ten_thousand_expired_requests_keep_no_valid_one_from_its_poll(fleet, a):
    for number in range(10_000):
        fleet.post(f"old-{number:05d}", due_at=fleet.time.now - 1e6, deadline=fleet.time.now - 1)
    fleet.post("valid")
    a.tick()
    assert fleet.state("valid") == "accepted"
    assert 0 < sum(entry[1] == "request_expire" for entry in a.log) <= 50, "the rest is left to later polls: it beats"
    for _ in range(3):
        a.mailbox.tick()
    assert sum(entry[1] == "request_expire" for entry in a.log) == 200


def test_the_oldest_due_is_taken_first(fleet, a):
    fleet.post("a-new", due_at=fleet.time.now - 10)
    fleet.post("z-old", due_at=fleet.time.now - 20)
    a.tick()
    assert (fleet.state("z-old"), fleet.state("a-new")) == ("accepted", "absent")


# Cancel, expire


def test_a_request_that_waits_for_its_worker_is_cancelled_by_its_holder(fleet, a):
    fleet.post("r1")
    a.tick()
    fleet.wish("r1")
    a.tick()
    assert (fleet.state("r1"), a.job("r1").state, a.job("r1").reason) == ("cancelled", "cancelled", "cancelled")


def test_a_running_request_is_never_cut_off_by_a_cancel_file(fleet, a):
    fleet.post("r1")
    a.tick()
    attempt = a.begin("r1")
    fleet.wish("r1")
    fleet.go(300, a)
    attempt.hold.check()
    attempt.table("bronze.orders")
    attempt.end()
    assert fleet.state("r1") == "succeeded"


def test_a_cancelled_request_whose_attempt_fails_is_not_tried_again(fleet, a):
    fleet.post("r1")
    a.tick()
    attempt = a.begin("r1")
    fleet.wish("r1")
    assert attempt.end("the network is gone", retryable=True).state == "failed"
    assert (fleet.state("r1"), fleet.status("r1").error) == ("failed", "the network is gone")


def test_nor_is_one_whose_worker_died(fleet, a):
    fleet.post("r1")
    a.tick()
    a.begin("r1")
    fleet.wish("r1")
    a.jobs.recover(_lapsed(), a.presence.processes)
    assert a.job("r1").state == "queued"
    a.tick()
    assert (fleet.state("r1"), a.job("r1").state) == ("failed", "cancelled")


def _lapsed():
    from fleet_kit import _Lapsed

    return _Lapsed()


def test_a_running_request_of_a_gone_agent_is_cancelled_by_another(fleet, a, b):
    fleet.post("r1")
    a.tick()
    a.begin("r1")
    fleet.wish("r1")
    fleet.go(LOST - 2 * BEAT, b)
    assert fleet.state("r1") == "running"
    fleet.go(4 * BEAT, b)
    assert fleet.state("r1") == "cancelled"


def test_an_old_wish_ends_what_a_silent_holder_has_accepted(fleet, a, b):
    fleet.post("r1")
    a.tick()
    fleet.wish("r1")
    fleet.go(50, b)
    assert fleet.state("r1") == "accepted"
    fleet.go(30, b)
    assert fleet.state("r1") == "cancelled"


def test_a_running_request_passes_its_deadline_while_its_agent_lives(fleet, a, b):
    fleet.post("r1", deadline=fleet.time.now + 60)
    a.tick()
    attempt = a.begin("r1")
    fleet.go(600)
    assert fleet.state("r1") == "running"
    attempt.end()
    assert fleet.state("r1") == "succeeded"


def test_an_accepted_request_past_its_deadline_expires_and_its_job_with_it(fleet, a):
    fleet.post("r1", deadline=fleet.time.now + 60)
    a.tick()
    fleet.go(60, a)
    assert (fleet.state("r1"), a.job("r1").state, a.job("r1").reason) == ("expired", "cancelled", "expired")


def test_an_accepted_request_whose_file_is_gone_expires(fleet, a):
    fleet.post("r1")
    a.tick()
    fleet.remove(request_key("r1"))
    a.tick()
    assert (fleet.state("r1"), fleet.status("r1").reason) == ("expired", "Its request file is gone.")


def test_a_request_without_a_deadline_expires_a_day_after_it_was_first_seen(fleet, a):
    a.promoted = "another"
    fleet.post("r1", body=b"{}")
    a.tick()
    fleet.go(DAY - 100, a, step=1000)
    assert fleet.state("r1") == "absent"
    fleet.go(200, a, step=100)
    assert fleet.state("r1") == "expired"


@pytest.mark.parametrize("off", [-7200, 7200])
def test_deadlines_are_read_by_the_stores_clock(fleet, off):
    agent = fleet.agent("etl-01", off=off)
    agent.tick()
    fleet.post("open", deadline=fleet.time.now + 60)
    fleet.post("over", deadline=fleet.time.now - 60)
    agent.tick()
    assert (fleet.state("open"), fleet.state("over")) == ("accepted", "expired")
    agent.begin("open")
    assert fleet.state("open") == "running"


def test_without_the_stores_clock_nothing_is_claimed_and_nothing_expires(fleet, a):
    fleet.post("r1", deadline=fleet.time.now + 600)
    fleet.post("r2", deadline=fleet.time.now - 600)
    fleet.post("r3", body=b"{}")
    a.view.offset_known = False
    fleet.go(300, a)
    assert [fleet.state(name) for name in ("r1", "r2", "r3")] == ["absent"] * 3
    a.view.offset_known = True
    a.tick()
    assert (fleet.state("r1"), fleet.state("r2")) == ("accepted", "expired")


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


# Sweeping


def ended_long_ago(fleet, a, name="r1", **fields):
    fleet.post(name, **fields)
    a.tick()
    a.do(name)
    fleet.time.now += 15 * DAY
    a.beat()


def test_what_ended_long_ago_is_swept_request_first_then_wish_then_status(fleet, a):
    ended_long_ago(fleet, a)
    fleet.wish("r1")
    a.view.calls.clear()
    a.tick()
    assert [key for call, key in a.view.calls if call == "delete"] == [
        request_key("r1"),
        cancel_key("r1"),
        status_key("r1"),
    ]
    assert fleet.state("r1") == "absent"


def test_a_sweep_that_is_cut_off_is_gone_on_with_and_nothing_is_claimed_in_between(fleet, a):
    ended_long_ago(fleet, a)
    for key in (request_key("r1"), status_key("r1")):
        a.view.fault = lambda call, met, key=key: "down" if (call, met) == ("delete", key) else None
        a.mailbox._sweeper._swept_at = float("-inf")
        with pytest.raises(Unavailable):
            a.mailbox.tick()
        assert fleet.state("r1") == "succeeded"
        assert a.job("r1").state == "succeeded"
    a.view.fault = lambda call, key: None
    a.mailbox._sweeper._swept_at = float("-inf")
    a.mailbox.tick()
    assert fleet.state("r1") == "absent"


def test_a_deadline_ahead_keeps_what_ended_long_ago(fleet, a):
    ended_long_ago(fleet, a, deadline=fleet.time.now + 30 * DAY)
    a.tick()
    assert fleet.store.read(request_key("r1")) is not None


def test_what_nobody_could_read_is_swept_too_and_a_newer_contract_keeps_no_other_from_it(fleet, a):
    fleet.post("a-newer", body=b'{"contract": 2}')
    old = Status(
        id="a-newer", env="dev", state=RequestState.SUCCEEDED, finished_at=fleet.time.now, deadline=fleet.time.now
    )
    fleet.put(status_key("a-newer"), dump(old))
    fleet.post("b-bad", body=b"{")
    fleet.post("c-first-version", body=b"{}")
    fleet.put(status_key("c-first-version"), dump(replace(old, id="c-first-version", deadline=None)))
    a.tick()
    fleet.go(60, a)
    assert fleet.state("b-bad") == "rejected"
    fleet.time.now += 16 * DAY
    a.beat()
    a.tick()
    assert [fleet.state(name) for name in ("a-newer", "b-bad", "c-first-version")] == ["succeeded", "absent", "absent"]
    assert fleet.store.read(request_key("a-newer")) is not None
    assert fleet.store.read(request_key("b-bad")) is None


def test_an_orphan_cancel_file_is_swept_by_its_age(fleet, a):
    fleet.wish("nothing")
    fleet.go(700, a, step=350)
    assert fleet.store.read(cancel_key("nothing")) is not None
    fleet.time.now += 15 * DAY
    a.beat()
    a.tick()
    assert fleet.store.read(cancel_key("nothing")) is None


def test_three_agents_sweep_the_same_without_trouble(fleet, a, b):
    ended_long_ago(fleet, a)
    b.beat()
    b.mailbox.look.poll()
    a.tick()
    b.mailbox._sweeper.turn()
    assert fleet.state("r1") == "absent"
    assert not [entry for entry in b.log if entry[1] == "request_trouble"]


# What a person asks


def test_a_wish_needs_a_request_but_not_one_that_can_be_read(fleet):
    from fdagent.errors import NotFound
    from fdagent.fleet.asking import post_cancel

    asked = {"by": "a person", "clock": fleet.true, "ids": fleet.ids}
    with pytest.raises(NotFound):
        post_cancel(fleet.store, "r1", **asked)
    fleet.put(status_key("r1"), b"{")
    assert post_cancel(fleet.store, "r1", **asked) is True
    assert post_cancel(fleet.store, "r1", **asked) is False


def test_waiting_for_a_request_that_no_agent_looks_after_ends_some_minutes_past_its_deadline(fleet, a):
    from fdagent.cli.mailbox import PAST_DEADLINE_SECONDS, _waited
    from fdagent.errors import GaveUp

    fleet.post("r1")
    before = fleet.time.now
    with pytest.raises(GaveUp, match="r1"):
        _waited(fleet.store, "dev", "r1", fleet.true, seconds=600 + PAST_DEADLINE_SECONDS, as_json=False)
    assert fleet.time.now - before == pytest.approx(600 + PAST_DEADLINE_SECONDS, abs=2)


# What the newest looks must not do


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


def test_a_request_that_the_full_disk_of_a_home_keeps_out_hides_no_other(fleet, a):
    fleet.post("r1")
    fleet.post("r2")
    real = a.jobs.enqueue

    def full(job, **more):
        if job.run_key == "r1":
            raise DiskFull("No room is left.")
        return real(job, **more)

    a.jobs.enqueue = full
    a.concurrency = 5
    a.tick()
    assert a.job("r2") is not None
