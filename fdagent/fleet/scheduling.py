"""The duty that runs an agent's own schedules: each due time becomes a job, or is told why not.

Guarantees
- Never early, by this machine's clock as it is now: a due time is settled when that clock has reached it, and no sooner.
- Never twice: what has an outcome in the ledger never gets another, whatever the clock does. A clock that is set forward,
  a suspend or a stop collapses what was passed into one run, counted at once.
- Never silently: each due time ends with one outcome (ran, skipped: still running, missed, paused); a zone that this
  machine doesn't know, or marks ahead of its clock, are told once and shown.
- A schedule whose times are new (written, changed, enabled again) counts from the moment the agent sees it.

Does not wait for an unreachable store: due times are settled by what the queue file knows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fdagent.config.schedules import Schedule
from fdagent.errors import ConfigError, HomeError
from fdagent.fleet.due import NEVER
from fdagent.fleet.schedules import Schedules, ahead, rule_of, times_of
from fdagent.ports import Clock
from fdagent.queue.dues import Outcome, Settled, Standing
from models.times import stamp

TROUBLE_SECONDS = 60.0
"""How often a schedule whose due times can't be settled is tried again."""


@dataclass(slots=True)
class Scheduling:
    """The duty: settles what is due of every own schedule whose environment is served.

    Args:
        schedules: They.
        envs: The environments that are served now.
        tell: Told what happens: a level, an event, a sentence and fields.
    """

    schedules: Schedules
    envs: Callable[[], Sequence[str]]
    clock: Clock
    tell: Callable[..., None]
    every: float = 0.25
    _seen: tuple[int, tuple[str, ...]] | None = None
    _since: float = NEVER
    _wake: float = NEVER
    _told: dict[str, str] = field(default_factory=dict)
    """Schedule to the trouble that was told of it."""

    def tick(self) -> None:
        """Settle what is due; costs next to nothing while nothing is.

        Raises:
            HomeError: The ledger or `dues.json` can't be written.
        """
        dues, now = self.schedules.dues, self.clock.wall()
        seen = dues.jobs.database.change(), tuple(self.envs())
        if seen == self._seen and self._since <= now < self._wake and not dues.unsaved:
            return
        if self._seen is None:
            self._leave_others()
        standings = dues.standings()
        own = [one for one in self.schedules.settings.schedules if one.env in seen[1] and rule_of(one)]
        wake = min((self._look(one, standings.get(one.id), now) for one in own), default=NEVER)
        if dues.unsaved:
            dues.save()
        self._seen, self._since, self._wake = seen, now, wake

    def _leave_others(self) -> None:
        """Schedules that are not counted here any more are new when they come back."""
        dues, own = self.schedules.dues, {one.id for one in self.schedules.settings.schedules if rule_of(one)}
        dues.adopt_file()
        for standing in dues.standings().values():
            if standing.rule and standing.id not in own:
                dues.change(standing.id, lambda was: replace(was, rule=""))

    def _look(self, schedule: Schedule, standing: Standing | None, now: float) -> float:
        """Settle one schedule; when to look again."""
        times, rule = times_of(schedule), rule_of(schedule)
        try:
            known = standing is not None and standing.rule == rule and standing.mark <= now
            if standing is None or not known or times.next_after(standing.mark) <= now:
                found = self.schedules.look(schedule, now)
                self._tell(schedule, standing, found, now)
                standing = standing if found is None else found.standing
            wake = now if standing is None else times.next_after(standing.mark)
        except HomeError:
            raise
        except ConfigError as err:
            self._trouble(schedule, f"Schedule {schedule.id} is not run: {err}")
            return now + TROUBLE_SECONDS
        except Exception as err:  # noqa: BLE001  # what is wrong with one schedule keeps no other from running
            self._trouble(schedule, f"Schedule {schedule.id} is not run: {type(err).__name__}: {err}")
            return now + TROUBLE_SECONDS
        self._trouble(schedule, "" if standing is None else ahead(standing, now))
        return wake

    def _tell(self, schedule: Schedule, was: Standing | None, found: Settled | None, now: float) -> None:
        about = {"schedule": schedule.id, "env": schedule.env}
        if found is None:
            return
        if was is None or was.rule != found.standing.rule:
            words = times_of(schedule).words
            self.tell("info", "schedule_seen", f"Schedule {schedule.id}, {words}, is counted from now on.", **about)
        elif now < was.mark:
            what = f"The clock was set back behind schedule {schedule.id}'s last due time: nothing of it runs again."
            self.tell("warning", "schedule_set_back", what, **about)
        for entry in found.entries:
            level = "info" if entry.outcome is not Outcome.SKIPPED and not entry.missed else "warning"
            words = entry.words.replace(Outcome.RAN, f"job {entry.job_id} is queued", 1)
            what = f"Schedule {schedule.id} was due at {stamp(entry.due)}: {words}."
            self.tell(level, "schedule_due", what, job_id=entry.job_id, **about)

    def _trouble(self, schedule: Schedule, sentence: str) -> None:
        """The same trouble is told once."""
        if sentence != self._told.get(schedule.id, ""):
            self._told[schedule.id] = sentence
            if sentence:
                self.tell("error", "schedule_trouble", sentence, schedule=schedule.id, env=schedule.env)
