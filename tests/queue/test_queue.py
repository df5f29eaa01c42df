"""The queue's transactions: what a job may become, what is kept with it, and what a bad file does."""

import sqlite3
from dataclasses import replace

import pytest
from fakes import FakeClock, FakeIds, FakeProcesses
from hypothesis import given
from hypothesis import strategies as st

from fdagent.errors import Conflict, HomeDenied, QueueUnreadable, StoodDown
from fdagent.queue.batches import Batch
from fdagent.queue.cell import JobCell, from_row, to_row
from fdagent.queue.db import CHECKPOINT_PAGES, Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.sightings import Sightings
from models.job import FINAL, Job, JobFacts, JobState
from models.step import Refusal, Write

WORKER = Worker("etl-01/1", "host/boot/ns", 100, 1.0)
OTHER = Worker("etl-01/2", "host/boot/ns", 200, 2.0)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def jobs(tmp_path, clock):
    database = Database(tmp_path / "home")
    yield Jobs(database, clock=clock, ids=FakeIds())
    database.close()


def job(name: str = "j1", **changed: object) -> Job:
    return replace(Job(name, JobState.QUEUED, "op", "dev", run_key=name, dedupe_key=name), **changed)


def claimed(jobs: Jobs, name: str = "j1", **changed: object) -> Job:
    jobs.enqueue(job(name, **changed))
    found = jobs.claim(WORKER)
    assert found is not None
    return found


def rows_waiting(jobs: Jobs) -> list[str]:
    """All rows of attempts that are over, those without a name given one."""
    for batch in jobs.closed_batches():
        if not batch.name:
            assert jobs.name_batch(batch.env)
    return [text for batch in jobs.closed_batches() for text in jobs.batch_rows(batch.name)]


def test_jobs_are_claimed_in_the_order_they_were_asked_for(jobs, clock):
    for name in ("b", "a", "c"):
        jobs.enqueue(job(name))
        clock.now += 1
    assert [jobs.claim(WORKER).id for _ in range(3)] == ["b", "a", "c"]
    assert jobs.claim(WORKER) is None


def test_jobs_asked_for_in_the_same_instant_keep_their_order(jobs):
    for name in ("b", "a", "c"):
        jobs.enqueue(job(name))
    assert [jobs.claim(WORKER).id for _ in range(3)] == ["b", "a", "c"]


def test_a_job_is_not_claimed_before_its_time(jobs, clock):
    jobs.enqueue(job(not_before=clock.now + 10))
    assert jobs.claim(WORKER) is None
    assert jobs.next_due() == clock.now + 10
    clock.now += 10
    assert jobs.claim(WORKER).attempt == 1


def test_a_dedupe_key_holds_one_unfinished_job(jobs):
    jobs.enqueue(job("a", dedupe_key="k"))
    refused = jobs.enqueue(job("b", dedupe_key="k"))
    assert isinstance(refused, Refusal)
    assert "already there" in str(refused)
    assert jobs.get("b") is None
    first = jobs.claim(WORKER)
    jobs.finish(first, "succeed", JobFacts())
    assert isinstance(jobs.enqueue(job("b", dedupe_key="k")), Job)


def test_a_requests_key_is_never_used_again_while_its_row_is_kept(jobs):
    jobs.finish(claimed(jobs, dedupe_key="k"), "succeed", JobFacts())
    assert isinstance(jobs.enqueue(job("b", dedupe_key="k"), once=True), Refusal)


def test_the_same_id_twice_is_refused(jobs):
    jobs.enqueue(job("a"))
    assert isinstance(jobs.enqueue(job("a", dedupe_key="other")), Refusal)


def test_finish_and_claim_are_one_transaction(jobs):
    first = claimed(jobs, "a")
    jobs.enqueue(job("b"))
    ended, following = jobs.finish(first, "succeed", JobFacts(), rows=['{"n":1}'], next_for=WORKER)
    assert (ended.state, following.id, following.state) == (JobState.SUCCEEDED, "b", JobState.RUNNING)
    assert rows_waiting(jobs) == ['{"n":1}']


def test_a_lost_claim_ends_nothing_and_keeps_no_rows(jobs):
    lost = claimed(jobs)
    assert jobs.recover(Sightings(jobs.clock), FakeProcesses(alive={}))[0].state == JobState.QUEUED
    again = jobs.claim(OTHER)
    ended, _ = jobs.finish(lost, "succeed", JobFacts(), rows=["{}"])
    assert isinstance(ended, Refusal)
    assert "another claim runs it" in str(ended)
    with pytest.raises(StoodDown):
        jobs.progress(lost, {"t": {"state": "succeeded"}}, "{}")
    assert jobs.closed_batches() == []
    assert jobs.get("j1") == again


def test_rows_wait_until_their_attempt_is_over_and_leave_when_dropped(jobs, clock):
    running = claimed(jobs)
    jobs.progress(running, {"t": {"state": "succeeded"}}, '{"t":1}')
    assert jobs.closed_batches() == []
    assert jobs.get("j1").tables == {"t": {"state": "succeeded"}}
    jobs.finish(running, "retry", JobFacts(retryable=True, wait_seconds=5), rows=['{"u":1}'])
    assert jobs.closed_batches() == [Batch("dev", "", 2)]
    clock.now += 5
    jobs.claim(WORKER)
    assert jobs.closed_batches() == [Batch("dev", "", 2)], "a new attempt doesn't reopen the old one's rows"
    name = jobs.name_batch("dev")
    assert jobs.batch_rows(name) == ['{"t":1}', '{"u":1}']
    jobs.drop_batch(name)
    assert jobs.closed_batches() == []


def test_a_job_whose_process_is_gone_is_recovered_at_once(jobs):
    claimed(jobs)
    (found,) = jobs.recover(Sightings(jobs.clock), FakeProcesses(alive={100: 99.0}))
    assert (found.state, found.attempt, found.claim) == (JobState.QUEUED, 1, "")


def test_a_living_process_keeps_its_job_until_its_lease_lapses(jobs, clock):
    running = claimed(jobs)
    sightings, processes = Sightings(clock), FakeProcesses()
    assert jobs.recover(sightings, processes) == []
    clock.now += running.lease_seconds - 1
    assert jobs.recover(sightings, processes) == []
    clock.now += 1
    assert [found.state for found in jobs.recover(sightings, processes)] == [JobState.QUEUED]


def test_a_renewed_job_is_not_recovered(jobs, clock):
    running = claimed(jobs)
    sightings, processes = Sightings(clock), FakeProcesses(here="another boot")
    for _ in range(5):
        assert jobs.recover(sightings, processes) == []
        clock.now += running.lease_seconds - 1
        assert isinstance(jobs.renew(running, lapsed=False), Job)
    assert jobs.recover(sightings, processes) == []


def test_in_another_place_a_missing_process_proves_nothing(jobs, clock):
    running = claimed(jobs)
    sightings, processes = Sightings(clock), FakeProcesses(here="another boot", alive={})
    assert jobs.recover(sightings, processes) == []
    clock.now += running.lease_seconds
    assert len(jobs.recover(sightings, processes)) == 1


def test_the_last_attempt_recovered_is_dead_and_one_asked_to_stop_is_cancelled(jobs):
    claimed(jobs, "a", max_attempts=1)
    assert jobs.recover(Sightings(jobs.clock), FakeProcesses(alive={}))[0].state == JobState.DEAD
    claimed(jobs, "b")
    jobs.ask("b", "ask_to_stop", JobFacts(reason="cancelled"))
    (found,) = jobs.recover(Sightings(jobs.clock), FakeProcesses(alive={}))
    assert (found.state, found.reason) == (JobState.CANCELLED, "cancelled")


def test_a_renewal_by_a_holder_that_no_longer_believes_is_refused(jobs):
    assert isinstance(jobs.renew(claimed(jobs), lapsed=True), Refusal)


def test_a_person_revives_a_dead_job_with_all_its_attempts_and_the_same_run_key(jobs):
    jobs.finish(claimed(jobs, max_attempts=1), "bury", JobFacts(retryable=True, error="away"))
    assert isinstance(jobs.ask("j1", "revive", JobFacts()), Refusal)
    revived = jobs.ask("j1", "revive", JobFacts(by_a_person=True))
    assert (revived.state, revived.attempt, revived.run_key, revived.error) == (JobState.QUEUED, 0, "j1", "")


def test_an_attempt_that_is_not_counted_is_given_back_even_when_it_was_the_last(jobs):
    running = claimed(jobs, max_attempts=1)
    ended, _ = jobs.finish(running, "retry", JobFacts(retryable=True, unspent=True))
    assert (ended.state, ended.attempt) == (JobState.QUEUED, 0)


def test_rows_of_a_revived_jobs_first_attempt_stay_apart_from_those_of_its_next(jobs):
    jobs.finish(claimed(jobs, max_attempts=1), "bury", JobFacts(retryable=True), rows=["1"])
    first = jobs.name_batch("dev")
    jobs.ask("j1", "revive", JobFacts(by_a_person=True))
    jobs.finish(jobs.claim(WORKER), "succeed", JobFacts(), rows=["2"])
    assert (jobs.batch_rows(first), jobs.batch_rows(jobs.name_batch("dev"))) == (["1"], ["2"])
    jobs.drop_batch(first)
    assert rows_waiting(jobs) == ["2"]


def test_a_revived_job_may_not_stand_beside_another_for_the_same_work(jobs):
    jobs.finish(claimed(jobs, "a", dedupe_key="k"), "fail", JobFacts())
    jobs.enqueue(job("b", dedupe_key="k"))
    assert "already there" in str(jobs.ask("a", "revive", JobFacts(by_a_person=True)))


def test_prune_counts_from_the_finish_and_spares_rows_that_wait(jobs, clock):
    jobs.finish(claimed(jobs, "a"), "succeed", JobFacts(), rows=["{}"])
    jobs.finish(claimed(jobs, "b"), "succeed", JobFacts())
    running = claimed(jobs, "c")
    clock.now += 100
    assert jobs.prune(100) == 0
    clock.now += 1
    assert jobs.prune(100) == 1
    assert jobs.get("b") is None
    assert jobs.get("c") == running
    jobs.drop_batch(jobs.name_batch("dev"))
    assert jobs.prune(100) == 1


def test_counts_name_each_state_that_has_jobs(jobs, clock):
    jobs.finish(claimed(jobs, "a"), "succeed", JobFacts())
    claimed(jobs, "b")
    jobs.enqueue(job("c", not_before=clock.now + 60))
    assert jobs.counts() == {"queued": 1, "running": 1, "succeeded": 1}
    assert [found.id for found in jobs.unfinished()] == ["b", "c"]
    assert [found.id for found in jobs.finished(5)] == ["a"]


def test_a_cell_writes_only_on_the_version_it_read(jobs):
    jobs.enqueue(job())
    with jobs.database.write(durable=False) as transaction:
        stale, fresh = JobCell(transaction, "j1"), JobCell(transaction, "j1")
        record, tag = stale.read()
        fresh.write(Write.REPLACE, replace(record, version=2, op="x"), fresh.read()[1])
        with pytest.raises(Conflict):
            stale.write(Write.REPLACE, replace(record, version=2, op="y"), tag)
        with pytest.raises(Conflict):
            stale.write(Write.DELETE, None, tag)
        with pytest.raises(Conflict):
            stale.write(Write.CREATE, record, "")
    assert jobs.get("j1").op == "x"


TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=8)


@given(
    st.builds(
        Job,
        id=TEXT,
        state=st.just(JobState.QUEUED),
        op=TEXT,
        env=TEXT,
        run_key=TEXT,
        dedupe_key=TEXT,
        entities=st.lists(TEXT).map(tuple),
        cascade=st.booleans(),
        backfill=st.booleans(),
        deadline=st.none() | st.floats(0, 1e10),
        tables=st.dictionaries(TEXT, st.dictionaries(TEXT, TEXT | st.integers(-5, 5))),
        error=st.text(st.characters(blacklist_categories=["Cs"])),
    )
)
def test_a_job_survives_its_row(job):
    assert from_row(to_row(job)) == job


def test_a_transaction_that_raises_writes_nothing(jobs):
    with pytest.raises(RuntimeError), jobs.database.write(durable=True) as transaction:
        transaction.execute("insert into run_row (job_id, claim, env, row) values ('a', 'c', 'dev', '{}')")
        raise RuntimeError
    assert jobs.closed_batches() == []


@pytest.mark.parametrize("content", [b"this is not a database at all, only some text\n" * 40, b"\0" * 8192])
def test_a_file_that_is_not_sqlite_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "queue.sqlite3"
    path.write_bytes(content)
    with pytest.raises(QueueUnreadable, match="Move it away"):
        Database(tmp_path)
    assert path.read_bytes() == content


def test_somebody_elses_sqlite_file_is_refused_and_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "queue.sqlite3") as other:
        other.execute("create table theirs (x)")
    other.close()
    with pytest.raises(QueueUnreadable, match="not a queue of this version"):
        Database(tmp_path)
    with sqlite3.connect(tmp_path / "queue.sqlite3") as other:
        assert other.execute("select name from sqlite_schema").fetchall() == [("theirs",)]
    other.close()


def test_a_damaged_row_is_named(jobs):
    jobs.enqueue(job())
    with jobs.database.write(durable=False) as transaction:
        transaction.execute("update job set tables = 'no json'")
    with pytest.raises(QueueUnreadable, match="'j1'"):
        jobs.get("j1")


def test_a_home_that_can_not_be_a_folder_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(HomeDenied, match="can't be used"):
        Database(tmp_path / "file" / "home")
    with pytest.raises(HomeDenied, match="can't be used"):
        Database(tmp_path / "file")


def test_the_write_ahead_log_is_moved_into_the_file_now_and_then_and_stays_short(jobs):
    path = jobs.database.path
    sizes, longest = set(), 0
    for number in range(500):
        jobs.enqueue(job(f"j{number}"))
        sizes.add(path.stat().st_size)
        longest = max(longest, path.with_name(f"{path.name}-wal").stat().st_size)
    assert 2 <= len(sizes) <= 10
    assert longest < 1.2 * CHECKPOINT_PAGES * 4096


def test_every_final_state_is_reached_by_the_queue(jobs):
    jobs.finish(claimed(jobs, "a"), "succeed", JobFacts())
    jobs.finish(claimed(jobs, "b"), "fail", JobFacts(error="e"))
    jobs.finish(claimed(jobs, "c", max_attempts=1), "bury", JobFacts(retryable=True))
    jobs.finish(claimed(jobs, "d"), "cancel", JobFacts(reason="cancelled"))
    assert {found.state for found in jobs.finished(9)} == FINAL
