"""The daemon's mailboxes: one for each environment whose requests this agent serves, with the shared schedules there.

Guarantees: what is served is what agent.toml says, with the project as it is now and the version that is promoted now.
Wires `fleet/mailbox.py` and `fleet/slots.py`; decides nothing.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from fdagent.commit import Audit
from fdagent.config.schedules import Schedule
from fdagent.config.settings import Settings
from fdagent.errors import BadRecord, NewerContract, StoreError
from fdagent.fleet.look import Me
from fdagent.fleet.mailbox import Mailbox, Patience
from fdagent.fleet.presence import Presence, Standing
from fdagent.fleet.release import promoted_version
from fdagent.fleet.serving import Serving
from fdagent.fleet.slots import Posting
from fdagent.ports import Clock, Ids, Store
from fdagent.project.watch import ProjectWatch
from fdagent.queue.jobs import Jobs

DAY_SECONDS = 86_400.0
VIGIL_SECONDS = 0.25
"""How often it is counted, without a look at the store, whether another agent is lost by now."""


@dataclass(frozen=True, slots=True)
class Vigil:
    """Polls a mailbox as soon as a holder has been silent for long enough, so that a takeover waits for no second poll."""

    mailbox: Mailbox
    every: float = VIGIL_SECONDS

    def tick(self) -> None:
        """Count; poll if it is time."""
        if self.mailbox.is_early():
            # A store that is away is told of by the mailbox's own turn, which comes within a poll.
            with contextlib.suppress(StoreError):
                self.mailbox.tick()


@dataclass(frozen=True, slots=True)
class Mail:
    """What the mailboxes of one daemon share.

    Args:
        served: The environments whose jobs are run now.
        shared: The shared schedules of an environment that are enabled and not paused now.
        stopping: Was this agent asked to stop?
        queued: Told that a job was queued, so that a worker is found at once.
    """

    settings: Settings
    me: Me
    jobs: Jobs
    watch: ProjectWatch
    served: Callable[[], tuple[str, ...]]
    shared: Callable[[str], list[Schedule]]
    stopping: Callable[[], bool]
    queued: Callable[[], None]
    clock: Clock
    ids: Ids
    tell: Callable[..., None]
    audit: Audit | None

    def serves(self, env: str) -> bool:
        """Does agent.toml switch this environment's mailbox on?"""
        pipeline = self.settings.pipeline
        return pipeline.enabled and env in pipeline.environments

    def duties(self, env: str, store: Store, presence: Presence) -> tuple[Mailbox, Vigil, Posting]:
        """The duties of one environment."""
        settings = self.settings
        mailbox = Mailbox(
            env,
            store,
            self.me,
            lambda: self._serving(env, store),
            lambda: presence.standing is Standing.PRESENT,
            self.free,
            self.stopping,
            self.jobs,
            Patience(
                settings.agent.poll_seconds,
                settings.retry.max_attempts,
                settings.pipeline.retention_days * DAY_SECONDS,
            ),
            self.clock,
            self.ids,
            lambda level, event, message, **about: self.tell(level, event, message, env=env, **about),
            self.queued,
            self.audit,
        )
        posting = Posting(
            env,
            store,
            lambda: self.shared(env) if env in self.served() else [],
            lambda _slot: mailbox.tick(),
            self.clock,
            self.ids,
            self.tell,
            self.audit,
        )
        return mailbox, Vigil(mailbox), posting

    def _serving(self, env: str, store: Store) -> Serving:
        promoted = _promoted(store)
        return Serving(env, self.settings.pipeline, self.watch.project(promoted), promoted)

    def free(self) -> int:
        """Workers without work, less what waits for them; negative when more waits than there are workers."""
        concurrency = self.settings.agent.concurrency
        busy = len(self.jobs.running()) + self.jobs.due(self.served(), concurrency + 1)
        return concurrency - busy


def _promoted(store: Store) -> str:
    """The promoted version; none while the record of it can't be read as one, which keeps nothing else from going on."""
    try:
        return promoted_version(store)
    except (BadRecord, NewerContract):
        return ""
