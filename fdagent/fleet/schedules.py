"""The schedules of an agent: their due times settled, their jobs, pauses, and how they look to people and to others.

Guarantees: a due time's job has a run key that names agent, schedule and due time, so that a lost queue makes no second
effect of it; a record of this agent that knows newer due times is taken over before it is written over; what is shown is
read and never changed.

Does not say when a look is due (`scheduling.py`), nor post the due times of shared schedules (`slots.py`); it lists them
too, and says which are not paused.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fdagent.config.schedules import Schedule
from fdagent.config.settings import Settings
from fdagent.errors import ConfigError, NotFound
from fdagent.fleet.due import NEVER, Times, local_time
from fdagent.fleet.settle import settled
from fdagent.ports import Ids, Store
from fdagent.project.problems import did_you_mean
from fdagent.queue.dues import FOREVER, Dues, Entry, Outcome, Settled, Standing
from fdagent.why import Answer
from models.ids import shown
from models.job import Job, JobState
from models.step import Check, Write
from models.times import stamp

if TYPE_CHECKING:
    from models import agent as record

AHEAD_SECONDS = 60.0
"""Marks further ahead of this machine's clock are told."""
PART_OF_A_SECOND = 0.999
"""A record has whole seconds. No two due times are closer than 1.2 s, so the end of that second is the same due time."""


def times_of(schedule: Schedule) -> Times:
    """When it is due."""
    return Times(schedule.every_minutes, schedule.daily, schedule.weekly, schedule.time_zone)


def rule_of(schedule: Schedule) -> str:
    """What its due times are counted by; nothing where they are not counted here."""
    return times_of(schedule).words if schedule.enabled and not schedule.shared else ""


def zone_of(schedule: Schedule) -> str:
    """The zone that its times are read in by people: the one its rule names, else this machine's (the empty name)."""
    return schedule.time_zone if schedule.every_minutes is None else ""


def fingerprint(schedule: Schedule) -> str:
    """Equal for copies that mean the same: id, env, entities, cascade, backfill, times, and the zone that they are in."""
    zone = None if schedule.every_minutes is not None else schedule.time_zone
    means = [
        schedule.id,
        schedule.env,
        sorted(set(schedule.entities)),
        schedule.cascade,
        schedule.backfill,
        schedule.every_minutes,
        sorted(set(schedule.daily)),
        sorted(set(schedule.weekly)),
        zone,
    ]
    return hashlib.sha256(json.dumps(means).encode()).hexdigest()[:16]


def dedupe_key(schedule_id: str) -> str:
    """The key that the jobs of one schedule share, so that only one of them is unfinished."""
    return f"schedule:{schedule_id}".casefold()


@dataclass(frozen=True, slots=True)
class View:
    """One schedule as it is now, for people, programs and the agent's record."""

    schedule: Schedule
    standing: Standing | None
    last: Entry | None
    job: Job | None
    """Its newest job, while it is kept."""
    next_due: float | None
    """When it runs next; None: not by itself."""
    problem: str
    now: float

    @property
    def paused_until(self) -> float | None:
        """Until when it is paused now; `FOREVER`: until a person resumes it."""
        until = None if self.standing is None else self.standing.paused_until
        return until if until is not None and until > self.now else None

    @property
    def outcome(self) -> str:
        """What became of its last due time, in words."""
        if self.last is None:
            return ""
        ended = self.job is not None and self.job.id == self.last.job_id and self.last.outcome is Outcome.RAN
        return f"{self.last.words} ({self.job.state})" if ended and self.job is not None else self.last.words

    @property
    def note(self) -> str:
        """What keeps it from running by itself, as a person reads it; empty when nothing does."""
        if not self.schedule.enabled:
            return "disabled"
        if self.problem:
            return self.problem
        if self.paused_until == FOREVER:
            return "paused until resumed"
        if self.paused_until is not None:
            return f"paused until {self.shown(self.paused_until)}"
        return "" if self.standing is None else ahead(self.standing, self.now)

    def shown(self, instant: float) -> str:
        """An instant as the schedule's own zone reads it, with the zone; this machine's where that is not known here."""
        return local_time(instant, "" if self.problem else zone_of(self.schedule))

    @property
    def last_due(self) -> float | None:
        """The newest due time that was dealt with; where only its mark was saved, that."""
        known = [] if self.last is None else [self.last.due]
        known += [self.standing.floor] if self.standing is not None and self.standing.floor else []
        return max(known, default=None)

    def to_record(self) -> "record.Schedule":
        """For the agent's record."""
        from models import agent as record

        schedule = self.schedule
        return record.Schedule(
            id=schedule.id,
            entities=schedule.entities or ("*",),
            when=times_of(schedule).words,
            time_zone=schedule.time_zone or None,
            shared=schedule.shared,
            last_due_at=self.last_due,
            next_due_at=self.next_due,
            paused_until=self.paused_until,
            fingerprint=fingerprint(schedule),
        )


class Schedules:
    """The schedules of an agent.toml, beside the ledger of what became of them.

    Args:
        settings: agent.toml.
        dues: The ledger, in the agent's queue.
        ids: Names jobs.
        stores: The control root of each environment, whose record of this agent knows due times too.
    """

    def __init__(self, settings: Settings, dues: Dues, ids: Ids, stores: Mapping[str, Store] | None = None) -> None:
        self.settings, self.dues, self._ids = settings, dues, ids
        self._unread = dict(stores or {})

    def job(self, schedule: Schedule, due: float) -> Job:
        """The job of one due time. Its run key names the due time, so a lost queue makes no second effect of it."""
        return Job(
            id=self._ids.new()[:12],
            state=JobState.QUEUED,
            op=self._ids.new(),
            env=schedule.env,
            run_key=f"{self.settings.agent.name}/{schedule.id}/{stamp(due)}",
            dedupe_key=dedupe_key(schedule.id),
            source=f"schedule:{schedule.id}",
            entities=schedule.entities,
            cascade=schedule.cascade,
            backfill=bool(schedule.backfill),
            max_attempts=self.settings.retry.max_attempts,
        )

    def look(self, schedule: Schedule, now: float) -> Settled | None:
        """Settle what is due of one schedule.

        Raises:
            ConfigError: Its zone is not known here.
            HomeError: The queue file can't be written; nothing was settled.
        """
        times, rule = times_of(schedule), rule_of(schedule)
        times.next_after(now)  # an unknown zone is told before anything is written
        return self.dues.settle(
            schedule.id,
            lambda was, book: settled(was, rule, times, book, now),
            lambda due: self.job(schedule, due),
        )

    def unpaused(self, env: str, now: float) -> list[Schedule]:
        """The shared schedules of an environment whose due times are posted now: enabled and not paused."""
        shared = [one for one in self.settings.schedules if one.env == env and one.shared and one.enabled]
        standings = self.dues.standings() if shared else {}
        return [one for one in shared if (standings.get(one.id, Standing(one.id)).paused_until or 0) <= now]

    def pause(self, schedule_id: str, until: float) -> None:
        """A person's wish: what is due until then is not run, and not made up for.

        Raises:
            NotFound: There is no such schedule.
        """
        self.dues.change(self.named(schedule_id).id, lambda was: replace(was, paused_until=until))

    def resume(self, schedule_id: str, now: float) -> None:
        """A person's wish: no pause any more, and marks that no clock set back explains are not believed.

        Raises:
            NotFound: There is no such schedule.
        """

        def resumed(was: Standing) -> Standing:
            paused = None if was.paused_until is None else min(was.paused_until, now)
            if was.floor <= now:
                return replace(was, paused_until=paused)
            return replace(was, paused_until=paused, mark=now, floor=now)

        self.dues.change(self.named(schedule_id).id, resumed)

    def named(self, schedule_id: str) -> Schedule:
        """The schedule of that id.

        Raises:
            NotFound: agent.toml has none.
        """
        known = {one.id: one for one in self.settings.schedules}
        if schedule_id not in known:
            what = f"{self.settings.file.name} has no schedule {shown(schedule_id)}{did_you_mean(schedule_id, known)}"
            raise NotFound(what if what.endswith("?") else f"{what}.", fix="`fdagent schedule list` lists them.")
        return known[schedule_id]

    def views(self, now: float, env: str = "") -> list[View]:
        """Every schedule, or those of one environment, in the order of agent.toml."""
        chosen = [one for one in self.settings.schedules if env in ("", one.env)]
        standings = self.dues.standings() if chosen else {}
        return [self._view(one, standings.get(one.id), now) for one in chosen]

    def records(self, env: str, now: float) -> "tuple[record.Schedule, ...]":
        """For this agent's record in an environment; what the one that is there knows is taken over first.

        Raises:
            StoreError: The record can't be read, so nothing may be written over it.
        """
        from fdagent.fleet.presence import agent_cell

        store = self._unread.get(env)
        if store is not None and any(one.env == env and rule_of(one) for one in self.settings.schedules):
            found, _ = agent_cell(store, self.settings.agent.name).read()
            self._adopt(() if found is None else found.schedules or ())
        self._unread.pop(env, None)
        return tuple(view.to_record() for view in self.views(now, env))

    def _adopt(self, known: "Sequence[record.Schedule]") -> None:
        rules = {one.id: rule_of(one) for one in self.settings.schedules}
        self.dues.adopt(
            Standing(one.id, one.when, one.last_due_at + PART_OF_A_SECOND, paused_until=one.paused_until)
            for one in known
            if one.id and one.when and one.when == rules.get(one.id) and one.last_due_at is not None
        )

    def _view(self, schedule: Schedule, standing: Standing | None, now: float) -> View:
        last = None if standing is None else self.dues.last(schedule.id, standing.mark)
        job = None if standing is None else self.dues.jobs.of_key(dedupe_key(schedule.id))
        try:
            next_due, problem = self._next(schedule, standing, now), ""
        except ConfigError as err:
            next_due, problem = None, str(err)
        return View(schedule, standing, last, job, next_due, problem, now)

    def _next(self, schedule: Schedule, standing: Standing | None, now: float) -> float | None:
        times = times_of(schedule)
        due = times.next_after(now)
        if not schedule.enabled or (standing is not None and standing.paused_until == FOREVER):
            return None
        if standing is not None and standing.rule == rule_of(schedule) != "":
            after = max(standing.mark, standing.paused_until or 0)
            had = {entry.due for entry in self.dues.entries(schedule.id, after)}
            due = times.next_after(after)
            for _ in had:
                due = times.next_after(due) if due in had else due
        elif standing is not None and standing.paused_until is not None:
            due = times.next_after(max(now, standing.paused_until))
        return due if due < NEVER else None


def ahead(standing: Standing, now: float) -> str:
    """What to say of marks that are ahead of the clock; empty when they are not."""
    if standing.mark - now < AHEAD_SECONDS:
        return ""
    return (
        f"Schedule {standing.id} is not run before {stamp(standing.mark)}: its due times up to then count as dealt with, "
        f"though this machine's clock says {stamp(now)}. If the clock was wrong when they did, "
        f"`fdagent schedule resume {standing.id}` counts from now."
    )


def explain(view: View, *, served: bool | None = None) -> list[Answer]:
    """Why a schedule runs now, or why not: the one arrow from waiting to a queued job, with each condition's answer.

    Args:
        view: The schedule as it is.
        served: Whether the agent runs and serves its environment; None: not known, and not among the answers.
    """
    schedule, standing, now = view.schedule, view.standing, view.now
    running = view.job is not None and view.job.finished_at is None
    early = "" if standing is None else ahead(standing, now)
    until = "a person resumes it" if view.paused_until == FOREVER else view.shown(view.paused_until or 0)
    due = view.next_due is not None and view.next_due <= now
    seen = "its slots need no look before" if schedule.shared else "it was seen by its agent"
    when = "nothing is due" if view.next_due is None else f"it is due at {view.shown(view.next_due)}"
    answers = [
        ("enabled", schedule.enabled, "it is enabled", "it has `enabled = false` in agent.toml"),
        ("own", not schedule.shared, "it is this agent's own", "it is shared: its due times are requests"),
        ("zone_known", not view.problem, "its time zone is known here", view.problem),
        ("served", served is not False, "its environment is served", f"no agent of this home serves {schedule.env}"),
        ("seen", schedule.shared or standing is not None, seen, "no agent of this home has seen it yet"),
        ("not_ahead", not early, "its last due time is not ahead of the clock", early),
        ("not_paused", view.paused_until is None, "it is not paused", f"it is paused until {until}"),
        ("due", due, when, when),
        ("run_over", not running, "its last run is over", f"job {view.job.id if view.job else ''} of it is unfinished"),
    ]
    checks = tuple(
        Check(name, held, yes if held else no)
        for name, held, yes, no in answers
        if name != "served" or served is not None
    )
    write = Write.CREATE.value
    return [Answer("run", "waiting", "queued", write, all(check.held for check in checks), checks)]
