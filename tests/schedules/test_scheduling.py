"""What an agent's own schedules do: when they run, when they don't, and what is kept of each due time."""

import pytest
from schedule_kit import DAY, HOUR, MINUTE, WORKER, Rig, at, daily, minutely, outcomes, utc

from fdagent.config.schedules import Schedule
from fdagent.errors import DiskFull, NotFound
from fdagent.queue import dues as dues_module
from fdagent.queue.dues import FOREVER, KEPT, Outcome, Standing
from models.job import Job, JobFacts, JobState

# First sight


def test_a_new_schedule_does_not_run_what_was_due_before_it_was_first_seen():
    rig = Rig(daily("02:00", "08:59"))
    assert rig.tick("2027-01-15 09:00") == []
    assert rig.tick("2027-01-16 01:59:59") == []
    assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]


def test_a_due_time_in_the_very_second_of_the_first_look_is_before_it():
    rig = Rig(daily("09:00"))
    assert rig.tick("2027-01-15 09:00") == []
    assert outcomes(rig.tick("2027-01-16 09:00")) == ["2027-01-16 09:00 ran"]


def test_a_schedule_whose_times_were_changed_counts_from_the_moment_that_is_seen():
    rig = Rig(daily("02:00"))
    rig.tick("2027-01-15 09:00")
    rig.start(daily("12:00"))
    assert rig.tick("2027-01-15 13:00") == []
    assert outcomes(rig.tick("2027-01-16 12:00")) == ["2027-01-16 12:00 ran"]
    assert len(rig.sentences("schedule_seen")) == 2


def test_a_change_of_what_it_runs_leaves_its_due_times_alone():
    rig = Rig(daily("02:00"))
    rig.tick("2027-01-15 09:00")
    rig.start(daily("02:00", entities=("gold.*",), cascade=True))
    assert outcomes(rig.tick("2027-01-16 03:00")) == ["2027-01-16 02:00 ran"]
    assert rig.work()[0].entities == ("gold.*",)


@pytest.mark.parametrize("away", [minutely(), daily("02:00", enabled=False)], ids=["removed", "disabled"])
def test_a_schedule_that_comes_back_counts_from_then(away):
    rig = Rig(daily("02:00"))
    rig.tick("2027-01-15 09:00")
    rig.start(away)
    rig.tick("2027-01-16 09:00")
    rig.work()
    rig.start(daily("02:00"))
    assert rig.tick("2027-02-15 09:00") == []
    assert outcomes(rig.tick("2027-02-16 02:00")) == ["2027-02-16 02:00 ran"]


def test_a_disabled_schedule_is_not_run():
    rig = Rig(minutely(enabled=False))
    assert rig.go(10 * MINUTE, step=30) == []
    assert rig.view().note == "disabled"
    assert rig.view().next_due is None


# A due time's job


def test_a_due_time_becomes_a_job_that_names_it():
    rig = Rig(daily("02:00", entities=("silver.*",), cascade=True, backfill="full", env="prod"))
    rig.tick()
    rig.tick("2027-01-16 02:00:03")
    (job,) = rig.work()
    assert (job.env, job.entities, job.cascade, job.backfill) == ("prod", ("silver.*",), True, True)
    assert job.run_key == "etl-01/d/2027-01-16T02:00:00Z"
    assert (job.source, job.dedupe_key, job.max_attempts) == ("schedule:d", "schedule:d", 3)


def test_two_schedules_whose_ids_differ_in_case_never_are_two_jobs_of_one():
    rig = Rig(minutely(id="Load"))
    rig.tick()
    rig.go(MINUTE)
    assert rig.work()[0].dedupe_key == "schedule:load"


def test_nothing_is_due_early_by_a_microsecond():
    rig = Rig(daily("02:00"))
    rig.tick()
    assert rig.tick(at("2027-01-16 02:00") - 0.000001) == []
    assert len(rig.tick("2027-01-16 02:00")) == 1


def test_fractions_of_a_minute_are_due_at_their_multiples_since_the_epoch():
    rig = Rig(minutely(every_minutes=0.025))
    rig.tick()
    made = []
    for _ in range(91):
        rig.clock.sleep(0.1)
        made += rig.tick()
        rig.work()
    start = at("2027-01-15 09:00")
    assert [entry.due - start for entry in made] == [1.5, 3.0, 4.5, 6.0, 7.5, 9.0]
    assert len({job.run_key for job in rig.jobs.finished(99)}) == 6


def test_only_environments_that_are_served_are_scheduled_and_a_return_collapses():
    rig = Rig(minutely(), minutely(id="p", env="prod"))
    rig.tick()
    rig.envs = ("prod",)
    assert {entry.schedule for entry in rig.go(5 * MINUTE, step=30)} == {"p"}
    rig.envs = ("dev", "prod")
    assert [entry.words for entry in rig.go(1) if entry.schedule == "m"] == ["ran; missed: 4 collapsed"]


def test_a_stopping_agent_schedules_nothing():
    rig = Rig(minutely())
    rig.tick()
    rig.envs = ()
    assert rig.go(5 * MINUTE, step=30) == []
    assert rig.jobs.counts() == {}


def test_an_id_that_another_job_has_is_not_taken_for_a_run_that_goes_on():
    rig = Rig(minutely())
    rig.tick()
    taken = f"job-{rig.ids.count + 1}"
    rig.jobs.enqueue(Job(taken, JobState.QUEUED, "op", "dev", run_key="by-hand", dedupe_key="cli:by-hand"))
    (entry,) = rig.go(MINUTE)
    assert (entry.outcome, entry.job_id != taken) == (Outcome.RAN, True)
    assert rig.jobs.get(entry.job_id).source == "schedule:m"


# Overlaps


@pytest.mark.parametrize("running", [False, True], ids=["queued", "running"])
def test_while_the_last_run_is_unfinished_no_second_job_is_made_and_that_is_recorded(running):
    rig = Rig(minutely())
    rig.tick()
    (first,) = rig.go(MINUTE)
    if running:
        rig.jobs.claim(WORKER)
    made = rig.go(3 * MINUTE)
    assert [entry.words for entry in made] == ["skipped: still running"] * 3
    assert {entry.job_id for entry in made} == {first.job_id}
    assert sum(rig.jobs.counts().values()) == 1
    assert any("skipped: still running" in sentence for sentence in rig.sentences("schedule_due"))


@pytest.mark.parametrize("event", ["succeed", "fail"])
def test_after_the_last_run_ended_the_next_due_time_runs_and_the_skipped_ones_do_not(event):
    rig = Rig(minutely())
    rig.tick()
    rig.go(3 * MINUTE)
    rig.work(event)
    assert rig.tick() == []
    assert [entry.words for entry in rig.go(MINUTE)] == ["ran"]
    assert sum(rig.jobs.counts().values()) == 2


def test_a_run_of_a_person_does_not_stand_in_the_way_of_a_schedule():
    rig = Rig(minutely())
    rig.tick()
    rig.jobs.enqueue(Job("by-hand", JobState.QUEUED, "op", "dev", run_key="by-hand", dedupe_key="cli:by-hand"))
    assert [entry.words for entry in rig.go(MINUTE)] == ["ran"]


# Missed while down


def test_what_was_missed_while_down_runs_once_at_start_with_the_count_recorded():
    rig = Rig(daily("02:00"))
    rig.tick("2027-01-15 09:00")
    rig.start()
    made = rig.tick("2027-01-20 09:00")
    assert outcomes(made) == ["2027-01-20 02:00 ran; missed: 4 collapsed"]
    assert rig.view().outcome == "ran; missed: 4 collapsed (queued)"
    assert len(rig.work()) == 1
    assert rig.tick("2027-01-20 09:01") == []


def test_a_weekly_time_that_was_missed_nearly_a_week_ago_runs():
    rig = Rig(Schedule(id="w", env="dev", weekly=("mon 06:00",), time_zone="UTC"))
    rig.tick("2027-01-15 09:00")
    assert outcomes(rig.tick("2027-01-25 05:59")) == ["2027-01-18 06:00 ran"]
    rig.work()
    assert outcomes(rig.tick("2027-02-28 09:00")) == ["2027-02-22 06:00 ran; missed: 4 collapsed"]


def test_thirty_days_down_with_a_schedule_of_each_minute_is_counted_at_once(monkeypatch):
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    asked = []
    monkeypatch.setattr(dues_module.Dues, "settle", _counting(dues_module.Dues.settle, asked))
    made = rig.tick(at("2027-01-15 09:00:30") + 30 * DAY)
    assert outcomes(made) == ["2027-02-14 09:00 ran; missed: 43199 collapsed"]
    assert len(asked) == 1
    assert len(rig.ledger()) == 1


def _counting(settle, asked):
    def counted(*arguments):
        asked.append(arguments)
        return settle(*arguments)

    return counted


def test_missed_while_the_last_run_is_cut_off_makes_no_second_job():
    rig = Rig(minutely())
    rig.tick()
    rig.go(MINUTE)
    rig.start()
    rig.clock.sleep(HOUR)
    assert [entry.words for entry in rig.tick()] == ["skipped: still running; missed: 59 collapsed"]
    assert len(rig.work()) == 1


def test_a_restart_between_two_due_times_runs_nothing():
    rig = Rig(daily("02:00"))
    rig.tick()
    rig.tick("2027-01-16 02:00")
    rig.work()
    rig.start()
    assert rig.tick("2027-01-16 03:00") == []


# Clock jumps


def test_a_clock_that_is_set_back_runs_nothing_twice():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00")
    rig.go(5 * MINUTE)
    rig.work()
    ran = [entry.due for entry in rig.ledger() if entry.outcome is Outcome.RAN]
    rig.clock.now -= 3 * MINUTE
    assert rig.go(3 * MINUTE) == []
    assert [entry.words for entry in rig.go(MINUTE)] == ["ran"]
    assert len(ran) == 1
    assert any("set back" in sentence for sentence in rig.sentences("schedule_set_back"))


@pytest.mark.parametrize("back", [0.001, 0.4, 1.0])
def test_a_clock_that_is_set_back_a_little_right_after_a_due_time_runs_it_once(back):
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    assert len(rig.tick("2027-01-15 09:01:00")) == 1
    rig.work()
    assert rig.tick(at("2027-01-15 09:01") - back) == []
    assert rig.tick("2027-01-15 09:01:00.5") == []
    assert len(rig.tick("2027-01-15 09:02")) == 1


def test_a_clock_that_is_set_forward_collapses_what_was_passed():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    assert outcomes(rig.tick("2027-01-15 12:00:30")) == ["2027-01-15 12:00 ran; missed: 179 collapsed"]


def test_after_a_clock_was_years_ahead_the_schedule_goes_on_and_the_missed_of_those_years_are_not_missed():
    rig = Rig(daily("02:00"))
    rig.tick("2027-01-15 09:00")
    rig.tick("2027-01-16 02:00")
    rig.work()
    assert outcomes(rig.tick("2099-06-01 09:00")) == ["2099-06-01 02:00 ran; missed: 9999 collapsed"]
    assert rig.tick("2027-01-16 09:00") == []
    assert [(utc(entry.due), entry.missed) for entry in rig.ledger()] == [
        ("2027-01-16 02:00", 0),
        ("2099-06-01 02:00", 0),
    ]
    rig.work()
    assert outcomes(rig.tick("2027-01-17 02:00")) == ["2027-01-17 02:00 ran"]
    assert rig.view().last_due == at("2027-01-17 02:00")


def test_the_due_time_that_ran_while_the_clock_was_ahead_does_not_run_when_it_comes():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.tick("2027-01-15 09:05")
    rig.work()
    assert rig.tick("2027-01-15 09:02:30") == []
    rig.work()
    made = []
    for _ in range(5):
        rig.clock.sleep(MINUTE)
        made += rig.tick()
        rig.work()
    assert [utc(entry.due)[-5:] for entry in made] == ["09:03", "09:04", "09:06", "09:07"]
    assert [(utc(entry.due)[-5:], entry.missed) for entry in rig.ledger()][:3] == [
        ("09:03", 0),
        ("09:04", 0),
        ("09:05", 2),
    ]


def test_a_clock_set_forward_twice_collapses_only_what_has_no_outcome():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.tick("2027-01-15 09:10")
    rig.work()
    rig.tick("2027-01-15 09:02:30")
    rig.work()
    assert outcomes(rig.tick("2027-01-15 09:12")) == ["2027-01-15 09:12 ran; missed: 8 collapsed"]
    ledger = rig.ledger()
    assert len(ledger) + sum(entry.missed for entry in ledger) == 12


def test_a_job_that_was_queued_while_the_clock_was_ahead_is_not_left_waiting_for_that_time():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.tick("2099-01-15 09:00")
    rig.tick("2027-01-15 09:00:40")
    assert rig.jobs.due(("dev",), 10) == 1
    assert rig.jobs.due(("prod",), 10) == 0
    assert [job.run_key for job in rig.work()] == ["etl-01/m/2099-01-15T09:00:00Z"]
    assert [entry.words for entry in rig.go(MINUTE)] == ["ran"]


def test_a_job_that_waits_for_its_next_attempt_waits_though_the_clock_was_corrected_by_a_little():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.go(MINUTE)
    job = rig.jobs.claim(WORKER)
    rig.jobs.finish(job, "retry", JobFacts(retryable=True, wait_seconds=30))
    rig.clock.now -= 4
    assert rig.jobs.due(("dev",), 10) == 0
    assert rig.jobs.claim(WORKER) is None
    rig.clock.now += 34
    assert rig.jobs.claim(WORKER) is not None


def test_a_suspended_machine_runs_what_was_due_once_when_it_wakes():
    rig = Rig(minutely())
    rig.tick()
    rig.clock.sleep(8 * HOUR)
    assert [entry.words for entry in rig.tick()] == ["ran; missed: 479 collapsed"]


def test_first_seen_by_a_clock_that_was_ahead_it_runs_all_the_same_once_the_clock_is_right():
    rig = Rig(daily("02:00"))
    rig.tick("2099-01-01 00:00")
    rig.tick("2027-01-15 09:00")
    assert outcomes(rig.tick("2027-01-16 02:00")) == ["2027-01-16 02:00 ran"]


# The ledger


def test_the_newest_entries_are_kept_and_what_was_deleted_never_runs_again(monkeypatch):
    monkeypatch.setattr(dues_module, "KEPT", 5)
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.go(20 * MINUTE, step=60)
    assert [utc(entry.due)[-5:] for entry in rig.ledger()] == ["09:16", "09:17", "09:18", "09:19", "09:20"]
    rig.work()
    assert rig.tick("2027-01-15 09:03:30") == []
    made = []
    while rig.clock.now < at("2027-01-15 09:22"):
        rig.clock.sleep(10)
        made += rig.tick()
        rig.work()
    assert [utc(entry.due)[-5:] for entry in made] == ["09:21", "09:22"]
    assert rig.jobs.counts() == {"succeeded": 3}
    assert KEPT >= 1000


def test_the_entry_and_the_job_are_written_together_or_not_at_all(monkeypatch):
    rig = Rig(minutely())
    rig.tick()
    full = DiskFull("No room is left.")

    def no_room(*_arguments, **_more):
        raise full

    with monkeypatch.context() as patch:
        patch.setattr(dues_module, "_put", no_room)
        rig.clock.sleep(MINUTE)
        with pytest.raises(DiskFull):
            rig.duty.tick()
        assert rig.ledger() == []
        assert rig.jobs.counts() == {}
    assert [entry.words for entry in rig.tick()] == ["ran"]
    assert rig.jobs.counts() == {"queued": 1}


def test_a_turn_in_which_nothing_is_due_writes_nothing():
    rig = Rig(minutely(), daily())
    rig.tick()
    before = rig.database._connection.total_changes
    rig.go(50)
    assert rig.database._connection.total_changes == before


# Pauses


def test_what_is_due_in_a_pause_is_recorded_and_not_made_up_for():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.schedules.pause("m", FOREVER)
    assert [entry.words for entry in rig.go(3 * MINUTE)] == ["paused"] * 3
    rig.schedules.resume("m", rig.clock.now)
    assert rig.tick() == []
    assert [entry.words for entry in rig.go(MINUTE)] == ["ran"]
    assert sum(rig.jobs.counts().values()) == 1


def test_a_pause_until_a_moment_ends_by_itself():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.schedules.pause("m", at("2027-01-15 09:02:30"))
    assert rig.view().next_due == at("2027-01-15 09:03")
    assert [entry.words for entry in rig.go(3 * MINUTE)] == ["paused", "paused", "ran"]
    assert rig.view().paused_until is None


def test_a_pause_that_ends_in_the_very_moment_of_a_due_time_includes_it():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.schedules.pause("m", at("2027-01-15 09:01"))
    assert [entry.words for entry in rig.go(2 * MINUTE)] == ["paused", "ran"]


def test_a_pause_lasts_over_a_restart():
    rig = Rig(minutely())
    rig.tick()
    rig.schedules.pause("m", FOREVER)
    rig.start()
    rig.clock.sleep(DAY)
    assert [entry.words for entry in rig.tick()] == ["paused, as 1439 before it"]
    assert rig.view().note == "paused until resumed"


def test_a_pause_that_ended_while_down_is_told_apart_from_what_was_missed_after_it():
    rig = Rig(minutely())
    rig.tick("2027-01-15 09:00:30")
    rig.schedules.pause("m", at("2027-01-15 09:10:30"))
    assert outcomes(rig.tick("2027-01-15 09:15:30")) == [
        "2027-01-15 09:10 paused, as 9 before it",
        "2027-01-15 09:15 ran; missed: 4 collapsed",
    ]


def test_a_schedule_resumed_while_the_agent_was_down_makes_up_only_for_what_came_after():
    rig = Rig(daily("02:00"))
    rig.tick("2027-01-15 09:00")
    rig.schedules.pause("d", FOREVER)
    rig.schedules.resume("d", at("2027-01-18 09:00"))
    assert outcomes(rig.tick("2027-01-20 09:00")) == [
        "2027-01-18 02:00 paused, as 2 before it",
        "2027-01-20 02:00 ran; missed: 1 collapsed",
    ]


def test_a_schedule_paused_before_it_was_ever_seen_is_paused():
    rig = Rig(minutely())
    rig.schedules.pause("m", FOREVER)
    assert {entry.words for entry in rig.go(3 * MINUTE)} == {"paused"}


def test_a_pause_outlives_a_change_of_the_times():
    rig = Rig(minutely())
    rig.tick()
    rig.schedules.pause("m", FOREVER)
    rig.start(minutely(every_minutes=2.0))
    assert {entry.words for entry in rig.go(4 * MINUTE)} == {"paused"}


def test_pausing_a_schedule_that_is_not_there_names_the_one_that_may_be_meant():
    rig = Rig(daily(id="nightly"))
    with pytest.raises(NotFound, match="did you mean `nightly`"):
        rig.schedules.pause("nigthly", FOREVER)


# Zones


def test_a_schedule_whose_zone_is_not_known_here_is_not_run_and_told_once_while_others_run():
    rig = Rig(daily("02:00", time_zone="Mars/Olympus"), minutely())
    rig.tick()
    assert {entry.schedule for entry in rig.go(10 * MINUTE, step=30)} == {"m"}
    (said,) = rig.sentences("schedule_trouble")
    assert "Schedule d is not run" in said
    assert "tzdata" in said
    assert rig.view("d").next_due is None
    assert "Mars/Olympus" in rig.view("d").note
    assert rig.dues.standings().keys() == {"m"}


def test_what_is_wrong_with_one_schedules_rows_keeps_no_other_from_running():
    rig = Rig(minutely(id="broken"), minutely())
    rig.tick()
    rig.go(MINUTE)
    rig.work()
    rig.database._connection.execute("update schedule set mark = 0 where id = 'broken'")
    rig.database._connection.execute("update due set outcome = 'lost' where schedule = 'broken'")
    rig.clock.sleep(MINUTE)
    rig.duty.tick()
    assert len(rig.dues.entries("m")) == 2
    assert any("broken is not run" in sentence for sentence in rig.sentences("schedule_trouble"))


# Shared ones


def test_shared_schedules_are_listed_and_not_run_here():
    shared = Schedule(id="s", env="dev", every_minutes=1.0, shared=True)
    rig = Rig(shared, minutely())
    rig.tick()
    assert {entry.schedule for entry in rig.go(3 * MINUTE)} == {"m"}
    assert [view.schedule.id for view in rig.schedules.views(rig.clock.now)] == ["s", "m"]
    assert rig.view("s").next_due == at("2027-01-15 09:04")


def test_a_paused_or_disabled_shared_schedule_is_not_among_those_that_are_posted():
    shared = Schedule(id="s", env="dev", every_minutes=1.0, shared=True)
    rig = Rig(shared, Schedule(id="off", env="dev", every_minutes=1.0, shared=True, enabled=False), minutely())
    assert [one.id for one in rig.schedules.unpaused("dev", rig.clock.now)] == ["s"]
    rig.schedules.pause("s", rig.clock.now + 60)
    assert rig.schedules.unpaused("dev", rig.clock.now) == []
    assert [one.id for one in rig.schedules.unpaused("dev", rig.clock.now + 60)] == ["s"]


def test_a_mark_is_never_behind_the_floor():
    rig = Rig(minutely())
    rig.dues.change("m", lambda _: Standing("m", "every minute", at("2027-01-15 10:00"), at("2027-01-15 10:00")))
    assert rig.tick("2027-01-15 09:00") == []
    assert rig.dues.standings()["m"].mark == at("2027-01-15 10:00")
    assert "resume m" in rig.sentences("schedule_trouble")[0]
    assert "resume m" in rig.view().note
    rig.schedules.resume("m", rig.clock.now)
    assert outcomes(rig.go(MINUTE)) == ["2027-01-15 09:01 ran"]
