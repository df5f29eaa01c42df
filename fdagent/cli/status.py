"""`status`: what waits, what runs, and how the last jobs ended."""

import json

from fdagent.cli.job import job_as_json, queue_of
from fdagent.cli.options import Config, Json, Project
from fdagent.cli.where import where

LAST = 20


def status(project: Project = None, config: Config = None, as_json: Json = False) -> None:
    """Show the queue: counts, running and waiting jobs, and the last 20 with why they failed."""
    place = where(project, config)
    jobs = queue_of(place)
    counts = {} if jobs is None else jobs.counts()
    unfinished = [] if jobs is None else jobs.unfinished()
    finished = [] if jobs is None else jobs.finished(LAST)
    if as_json:
        answer = {
            "agent": place.agent,
            "home": str(place.home),
            "project": str(place.project),
            "counts": counts,
            "unfinished": [job_as_json(job) for job in unfinished],
            "finished": [job_as_json(job) for job in finished],
        }
        print(json.dumps(answer, indent=2))
        return
    from fdagent.cli import view

    view.status(place, counts, unfinished, finished)
