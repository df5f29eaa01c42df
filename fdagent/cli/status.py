"""`status`: what waits, what runs, how the last jobs ended, and when the schedules run."""

import json

from fdagent.cli.job import job_as_json, queue_of
from fdagent.cli.options import Config, Json, Project
from fdagent.cli.schedule import show, view_as_json, views_of
from fdagent.cli.where import where

LAST = 20


def status(project: Project = None, config: Config = None, as_json: Json = False) -> None:
    """Show the queue: counts, running and waiting jobs, and the last 20 with why they failed; the schedules."""
    place = where(project, config)
    jobs = queue_of(place)
    counts = {} if jobs is None else jobs.counts()
    unfinished = [] if jobs is None else jobs.unfinished()
    finished = [] if jobs is None else jobs.finished(LAST)
    schedules = views_of(place)
    if as_json:
        answer = {
            "agent": place.agent,
            "home": str(place.home),
            "project": str(place.project),
            "counts": counts,
            "schedules": [view_as_json(view) for view in schedules],
            "unfinished": [job_as_json(job) for job in unfinished],
            "finished": [job_as_json(job) for job in finished],
        }
        print(json.dumps(answer, indent=2))
        return
    from fdagent.cli import view

    view.status(place, counts, unfinished, finished)
    if schedules:
        show(schedules)
