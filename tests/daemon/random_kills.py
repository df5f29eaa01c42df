"""Kills of a daemon, its worker or both at random moments, until there were enough; used in CI and, longer, in the soak."""

import random
import time
from collections import Counter
from collections.abc import Callable

import psutil
from daemon_kit import Agent

from models.job import FINAL

WHOM = ("worker", "daemon", "both")
LONGEST_DELAY = 1.2
"""A cold worker and one job take about so long."""
MOST_JOBS = 400


def kill_at_random(agent: Agent, next_job: Callable[[], str], *, kills: int, dice: random.Random) -> Counter[str]:
    """Ask for job after job and kill meanwhile; every job is seen to end. Who was hit how often.

    A third of the kills is for each; never more than four workers in a row, for a fifth would be followed by a slow start.
    """
    whom = [WHOM[number % 3] for number in range(kills)]
    dice.shuffle(whom)
    hits: Counter[str] = Counter()
    agent.start()
    for _ in range(MOST_JOBS):
        job = next_job()
        while whom and agent.job(job).state not in FINAL:
            time.sleep(dice.random() * LONGEST_DELAY)
            if agent.job(job).state not in FINAL and _kill(agent, whom[-1]):
                hits[whom.pop()] += 1
        agent.ended(job)
        if not whom:
            break
    return hits


def _kill(agent: Agent, whom: str) -> bool:
    """Did that hit it? A worker may not be there yet."""
    workers = agent.workers()
    if whom != "daemon" and not workers:
        return False
    if whom in ("daemon", "both"):
        agent.kill()
    if whom in ("worker", "both"):
        try:
            workers[0].kill()
        except psutil.NoSuchProcess:
            return whom == "both"
    if whom != "worker":
        agent.start()
    return True
