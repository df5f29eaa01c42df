"""Whatever clocks, restarts, people and lost files do: no due time early, none twice, each with one outcome."""

import shutil
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from schedule_kit import DAY, HOUR, MINUTE, WORKER, Rig, at, daily, days, instant_of, minutely, utc

from fdagent.config.schedules import Schedule
from fdagent.queue.dues import FOREVER, Entry, Outcome
from models.job import Job, JobFacts

START = at("2027-03-27 12:00")
FURTHEST = 40 * DAY
KINDS = [
    minutely(id="s", every_minutes=7.0),
    minutely(id="s", every_minutes=90.5),
    daily("02:30", id="s", time_zone="Europe/Berlin"),
    daily("00:00", "02:15", "03:15", id="s", time_zone="Europe/Berlin"),
    daily("02:10", id="s", time_zone="Australia/Lord_Howe"),
    Schedule(id="s", env="dev", weekly=("sun 02:30", "sun 03:30", "wed 12:00"), time_zone="Europe/Berlin"),
]


def due_times(schedule: Schedule, after: float, until: float) -> list[float]:
    """Its due times, by no code of ours: later than one moment, not later than another."""
    if schedule.every_minutes is not None:
        step = schedule.every_minutes * 60
        return [number * step for number in range(int(after // step) + 1, int(until // step) + 1)]
    zone, start = ZoneInfo(schedule.time_zone), datetime.fromtimestamp(after, UTC).date() - timedelta(2)
    words = [(None, text) for text in schedule.daily] + [tuple(text.split()) for text in schedule.weekly]
    found = {
        instant_of(day, clock, zone)
        for day in days(start, int((until - after) / DAY) + 5)
        for weekday, clock in words
        if weekday in (None, day.strftime("%a").lower())
    }
    return sorted(due for due in found if after < due <= until)


class Scheduler(RuleBasedStateMachine):
    """One schedule, its agent, and a world that does what it likes."""

    files = False

    @initialize(schedule=st.sampled_from(KINDS))
    def begin(self, schedule: Schedule) -> None:
        self.home = Path(tempfile.mkdtemp()) if self.files else None
        self.schedule, self.rig = schedule, Rig(schedule, home=self.home)
        self.rig.clock.now = START
        self.had: dict[float, Entry] = {}
        self.jobs: dict[str, float] = {}
        self.base = START
        self.tick()

    def teardown(self) -> None:
        if getattr(self, "home", None) is not None:
            self.rig.database.close()
            shutil.rmtree(self.home)

    # What the world does

    @rule(seconds=st.sampled_from([0.25, 1.0, 59.0, 7 * MINUTE, HOUR, 3 * HOUR, DAY]))
    def time_goes_on(self, seconds: float) -> None:
        self.rig.clock.sleep(seconds)
        self.tick()

    @rule(seconds=st.floats(0.001, 10 * DAY))
    def the_clock_is_set_forward(self, seconds: float) -> None:
        self.rig.clock.now = min(self.rig.clock.now + seconds, START + FURTHEST)
        self.tick()

    @rule(seconds=st.one_of(st.floats(0.001, 10.0), st.floats(10.0, 10 * DAY)))
    def the_clock_is_set_back(self, seconds: float) -> None:
        self.rig.clock.now = max(self.rig.clock.now - seconds, START - FURTHEST)
        self.tick()

    @rule(data=st.data())
    def the_clock_is_set_to_a_due_time_or_right_before(self, data: st.DataObject) -> None:
        known = due_times(self.schedule, self.rig.clock.now - 2 * DAY, self.rig.clock.now + 8 * DAY)
        self.rig.clock.now = data.draw(st.sampled_from(known)) + data.draw(st.sampled_from([-0.001, 0.0, 0.001]))
        self.tick()

    @rule()
    def the_agent_starts_anew(self) -> None:
        self.rig.start()
        self.tick()

    @rule(served=st.booleans())
    def the_environment_is_served_or_not(self, served: bool) -> None:
        self.rig.envs = ("dev",) if served else ()
        self.tick()

    @rule()
    def a_worker_claims_a_job(self) -> None:
        self.rig.jobs.claim(WORKER)

    @rule(event=st.sampled_from(["succeed", "fail"]))
    def jobs_end(self, event: str) -> None:
        for job in self.rig.jobs.running():
            self.rig.jobs.finish(job, event, JobFacts(error="it failed"))
        self.rig.work(event)

    @rule(ahead=st.one_of(st.none(), st.floats(1.0, 3 * DAY)))
    def a_person_pauses_it(self, ahead: float | None) -> None:
        self.rig.schedules.pause("s", FOREVER if ahead is None else self.rig.clock.now + ahead)
        self.rig.dues.save()

    @rule()
    def a_person_resumes_it(self) -> None:
        self.rig.schedules.resume("s", self.rig.clock.now)
        self.rig.dues.save()
        self.tick()

    @precondition(lambda self: self.files)
    @rule()
    def the_queue_file_is_lost(self) -> None:
        self.rig.lose_the_queue()
        self.jobs.clear()
        self.tick()

    @precondition(lambda self: self.files)
    @rule()
    def the_file_beside_it_is_lost(self) -> None:
        (self.home / "dues.json").unlink(missing_ok=True)
        self.the_agent_starts_anew()

    # What must hold

    def tick(self) -> None:
        now, unfinished = self.rig.clock.now, self.unfinished()
        made = self.rig.tick()
        for entry in made:
            assert entry.due <= now, "early"
            assert entry.due not in self.had, "twice"
            assert entry.due in due_times(self.schedule, entry.due - 1, entry.due), "not due at all"
            self.had[entry.due] = entry
        self.check_jobs(made, unfinished)
        if self.rig.envs and not self.files:
            self.base = min(self.base, now)
            self.check_outcomes(now)

    def unfinished(self) -> list[Job]:
        return self.rig.jobs.unfinished()

    def check_jobs(self, made: list[Entry], unfinished: list[Job]) -> None:
        ran = [entry for entry in made if entry.outcome is Outcome.RAN]
        new = {job.id: job for job in self.unfinished() if job.id not in {one.id for one in unfinished}}
        assert {entry.job_id for entry in ran} == new.keys()
        assert len(ran) <= 1
        for entry in ran:
            assert unfinished == []
            assert new[entry.job_id].run_key == f"etl-01/s/{utc_stamp(entry.due)}"
        skipped = [entry for entry in made if entry.outcome is Outcome.SKIPPED]
        assert [entry.job_id for entry in skipped] == [job.id for job in unfinished][: len(skipped)]
        assert "" not in {entry.job_id for entry in skipped}

    def check_outcomes(self, now: float) -> None:
        """Each due time that has come has one outcome; one that has not may only have run ahead of its time."""
        entries = self.rig.ledger()
        own = {entry.due for entry in entries}
        come = due_times(self.schedule, self.base, now)
        last = max([entry.due for entry in entries], default=now)
        counted = 0
        for due in due_times(self.schedule, self.base - 1, max(last, now)):
            covers = [entry for entry in entries if entry.since < due <= entry.until and due not in own]
            assert len(covers) <= 1, f"{utc(due)} has two outcomes"
            counted += len(covers)
            if due in come:
                assert covers or due in own, f"{utc(due)} has no outcome"
            elif due > now:
                assert not covers, f"{utc(due)} was missed before it came"
        assert counted == sum(entry.missed for entry in entries)


def utc_stamp(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class SchedulerThatLosesFiles(Scheduler):
    """The same on a disk whose files get lost, one at a time."""

    files = True


CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
TestScheduler = Scheduler.TestCase
TestScheduler.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=CHECKS)
TestSchedulerThatLosesFiles = SchedulerThatLosesFiles.TestCase
TestSchedulerThatLosesFiles.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=CHECKS
)


def test_the_due_times_of_the_model_are_those_of_a_calendar():
    berlin = daily("02:30", time_zone="Europe/Berlin")
    assert [utc(due) for due in due_times(berlin, at("2027-03-26 12:00"), at("2027-03-29 12:00"))] == [
        "2027-03-27 01:30",
        "2027-03-28 01:30",
        "2027-03-29 00:30",
    ]
    assert date(2027, 3, 28).strftime("%a") == "Sun"
