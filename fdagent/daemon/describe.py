"""What an agent says of itself in its record: built from its settings, its queue and its project, anew at each beat.

Guarantees: only this environment's jobs and schedules; never a secret. A project that can't be loaded just now leaves
its version unknown instead of stopping the beat.
"""

import platform
from dataclasses import dataclass

from fdagent import __version__
from fdagent.config.settings import Settings
from fdagent.fleet.schedules import Schedules
from fdagent.fleet.serving import ALL
from fdagent.ports import Clock, Processes
from fdagent.project.watch import ProjectWatch
from fdagent.queue.jobs import Jobs
from models.agent import AgentRecord, AgentState, IncidentSettings, Pipeline, RunningJob
from models.liveness import grace_for


@dataclass(slots=True)
class Describe:
    """One start of an agent, as it describes itself."""

    settings: Settings
    instance: str
    host: str
    jobs: Jobs
    schedules: Schedules
    clock: Clock
    processes: Processes
    watch: ProjectWatch

    def record(self, env: str) -> AgentRecord:
        """What it says of itself in an environment, without op, state and times of its own.

        Raises:
            StoreError: The record that is there may know due times that nothing here does, and can't be read.
        """
        agent, pid = self.settings.agent, self.processes.pid()
        running = [job for job in self.jobs.running() if job.env == env]
        return AgentRecord(
            name=agent.name,
            state=AgentState.RUNNING,
            instance=self.instance,
            host=self.host,
            boot=self.processes.place(),
            pid=pid,
            process_started_at=self.processes.started_at(pid),
            os=f"{platform.system()} {platform.release()}",
            version=__version__,
            grace_seconds=grace_for(agent.stale_seconds),
            status_seconds=agent.status_seconds,
            env=env,
            metadata_version=self.watch.version(),
            owner=agent.owner or None,
            credential=self.settings.identity.kind,
            concurrency=agent.concurrency,
            running=tuple(
                RunningJob(job_id=job.id, started_at=job.started_at, attempt=job.attempt, source=job.source)
                for job in running
            ),
            queue=self.jobs.counts(env),
            schedules=self.schedules.records(env, self.clock.wall()),
            pipeline=self._pipeline(env),
            incidents=IncidentSettings(enabled=False),
        )

    def _pipeline(self, env: str) -> Pipeline:
        """What it serves of the environment's mailbox, so that others can tell."""
        told = self.settings.pipeline
        return Pipeline(
            enabled=told.enabled and env in told.environments,
            claim=told.claim,
            take_over=told.take_over,
            entities=told.entities or ALL,
            allow_backfill=told.allow_backfill,
        )
