"""An agent on a fast schedule, under a fault injector, for as long as asked: `python -m tests.soak.daemon_soak 10`.

Files arrive and jobs are asked for all the while. Meanwhile workers and the daemon are killed, stopped past their leases
and continued, asked to stop and started again, and the control folder goes away and comes back. Then everything is left
alone, and must come to rest: the tables of an undisturbed run, every effect once, every job ended well, no lease, no
zombie, no worker without a daemon, no secret in any file. A seed repeats the injector's choices, not their moments.
"""

import argparse
import contextlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil

for folder in ("", "process", "daemon"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

from daemon_kit import Agent, Calm, make_site, orphans, run_keys, until, zombies  # noqa: E402  # found there only now
from random_kills import kill_at_random  # noqa: E402

from models.job import FINAL, JobState  # noqa: E402

MINUTES, KILLS = 10.0, 200
CONCURRENCY = 2
ATTEMPTS = 100
"""Faults are the rule here: no job may run out of attempts."""
LEASE = 4.0
RETRY = {"backoff_seconds": 1, "max_backoff_seconds": 2, "max_attempts": ATTEMPTS}
SCHEDULE = {"id": "fast", "env": "dev", "every_minutes": 0.1}
LONGEST_PAUSE = 2.5
LONGEST_STOP = 7.0
REST_SECONDS = 180.0
LEAST_OF_EACH_MINUTES = 2.0
"""In a run so long, every kind of fault must have come."""
KILLS_A_MINUTE = 4
"""A worker that ends badly more often is started slowly, which would only make the soak wait."""


class Injector:
    """Does one thing after another to an agent, and remembers what it has to put right again."""

    def __init__(self, agent: Agent, dice: random.Random) -> None:
        self.agent, self.dice = agent, dice
        self.done: Counter[str] = Counter()
        self.stopped: list[psutil.Process] = []
        self.ends: list[float] = []
        self.what: dict[str, tuple[int, Callable[[], bool]]] = {
            "a file arrives": (5, self.deliver),
            "a job is asked for": (5, self.ask),
            "a worker is killed": (3, self.kill_worker),
            "the daemon is killed": (2, self.kill_daemon),
            "both are killed": (2, self.kill_both),
            "a worker is stopped": (3, self.stop_worker),
            "the daemon is stopped": (1, self.stop_daemon),
            "the daemon is asked to stop": (1, self.ask_to_stop),
            "the control folder is away": (1, self.control_away),
        }

    def step(self) -> None:
        """One thing."""
        names = list(self.what)
        (name,) = self.dice.choices(names, [self.what[each][0] for each in names])
        if self.what[name][1]():
            self.done[name] += 1

    def go_on(self) -> None:
        """Continue whoever stands still."""
        for process in self.stopped:
            go_on(process)
        self.stopped.clear()

    def deliver(self) -> bool:
        self.agent.site.deliver()
        return True

    def ask(self) -> bool:
        entities = list(self.agent.site.places.project.entities)
        chosen = self.dice.sample(entities, self.dice.randint(1, len(entities)))
        self.agent.ask(*chosen, attempts=ATTEMPTS, lease=LEASE)
        return True

    def kill_worker(self) -> bool:
        now = time.monotonic()
        self.ends = [at for at in self.ends if now - at < 60]
        workers = self.agent.workers()
        if not workers or len(self.ends) >= KILLS_A_MINUTE:
            return False
        self.ends.append(now)
        return kill(self.dice.choice(workers))

    def kill_daemon(self) -> bool:
        self.go_on_daemon()
        self.agent.kill()
        self.start()
        return True

    def kill_both(self) -> bool:
        workers = self.agent.workers()
        self.go_on_daemon()
        self.agent.kill()
        hit = [kill(worker) for worker in workers]
        self.start()
        return any(hit)

    def stop_worker(self) -> bool:
        workers = self.agent.workers()
        return bool(workers) and self.stop(self.dice.choice(workers))

    def stop_daemon(self) -> bool:
        return self.stop(psutil.Process(self.agent.pid))

    def ask_to_stop(self) -> bool:
        self.go_on_daemon()
        self.go_on()
        self.agent.stop()
        self.start()
        return True

    def control_away(self) -> bool:
        control = self.agent.site.places.control
        aside = control.with_name("aside")
        control.rename(aside)
        control.write_text("not a folder")
        time.sleep(self.dice.random() * LONGEST_PAUSE)
        control.unlink()
        aside.rename(control)
        return True

    def stop(self, process: psutil.Process) -> bool:
        try:
            process.send_signal(signal.SIGSTOP)
        except psutil.NoSuchProcess:
            return False
        self.stopped.append(process)
        # From a thread: a process stopped inside a lock holds up this one too, as soon as it asks for a job.
        timer = threading.Timer(self.dice.random() * LONGEST_STOP, go_on, (process,))
        timer.daemon = True
        timer.start()
        return True

    def go_on_daemon(self) -> None:
        """A daemon that stands still can't be told anything."""
        self.agent.signal(signal.SIGCONT)

    def start(self) -> None:
        self.ends.clear()
        self.agent.start().up()


def go_on(process: psutil.Process) -> None:
    """Continue a process, if it is still there."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGCONT)


def kill(process: psutil.Process) -> bool:
    """Was it there to be killed?"""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def run(minutes: float, seed: int, root: Path) -> Counter[str]:
    """One soak in a folder; what was done to the agent. Raises AssertionError with the seed when something is wrong."""
    print(f"soak of an agent: {minutes:g} minutes, seed {seed}, in {root}", flush=True)
    site = make_site(root / "project")
    agent = Agent(site, retry=RETRY, schedules=[SCHEDULE], concurrency=CONCURRENCY)
    injector = Injector(agent, random.Random(seed))
    end = time.monotonic() + minutes * 60
    try:
        injector.start()
        # A table whose source was never loaded is refused for good.
        agent.ended(agent.ask())
        while time.monotonic() < end:
            injector.step()
            time.sleep(injector.dice.random() * LONGEST_PAUSE)
        injector.go_on()
        agent.stop()
        comes_to_rest(agent, Calm(root / "calm"))
    except AssertionError as err:
        err.add_note(f"seed {seed}, after {dict(injector.done)}; see {root}")
        raise
    finally:
        injector.go_on()
        agent.close()
    if minutes >= LEAST_OF_EACH_MINUTES:
        assert set(injector.done) == set(injector.what), f"seed {seed}: {injector.done}"
    print(f"soak of an agent: right in the end, after {dict(injector.done)}", flush=True)
    return injector.done


def comes_to_rest(agent: Agent, calm: Calm) -> None:
    """Left alone and without its schedule, the agent finishes everything, and everything is right."""
    site = agent.site
    agent.configure(schedules=[])
    agent.start().up()
    agent.ask(attempts=ATTEMPTS)
    until(lambda: not agent.jobs.unfinished(), "every job has ended", REST_SECONDS)
    agent.flushed()
    until(lambda: not agent.leases(), "no table is leased")
    assert not zombies(agent.pid)
    agent.stop()
    assert not orphans(agent.home)
    bad = [job for job in agent.jobs.finished(100_000) if job.state is not JobState.SUCCEEDED]
    assert not bad, [(job.id, str(job.state), job.attempt, job.error) for job in bad[:5]]
    assert all(agent.job(job).state in FINAL for job in site.jobs_asked)
    right(site.tables(), calm.after(site.delivered))
    log = site.log()
    assert len({row.run_id for row in log}) == len(log), "a row of the run log is doubled"
    for name, keys in run_keys(site).items():
        assert len(keys) == len(set(keys)), f"{name} has two commits of one run key"
    assert agent.log("started")


def right(found: dict[str, list[str]], expected: dict[str, list[str]]) -> None:
    """The same tables. How often a row that stays refused was refused again depends on how many jobs there were."""
    for name, rows in expected.items():
        if name.startswith("quarantine of silver."):
            assert set(found[name]) == set(rows), name
        else:
            assert found[name] == rows, name


def kills(count: int, seed: int, root: Path) -> None:
    """So many kills at random moments, job after job, as the tests do with a few."""
    print(f"kills of an agent: {count}, seed {seed}, in {root}", flush=True)
    agent = Agent(make_site(root / "project"), retry=RETRY)

    def next_job() -> str:
        if agent.site.jobs_asked:
            agent.site.deliver()
        return agent.ask(attempts=ATTEMPTS)

    try:
        hits = kill_at_random(agent, next_job, kills=count, dice=random.Random(seed))
        assert sum(hits.values()) == count, hits
        agent.stop()
        comes_to_rest(agent, Calm(root / "calm"))
    finally:
        agent.close()
    print(f"kills of an agent: right in the end, after {dict(hits)}", flush=True)


def soak(minutes: float, count: int, seed: int) -> None:
    """Both, in a folder of their own; what went wrong stays there to be looked at."""
    folder = Path(tempfile.mkdtemp(prefix="fdagent-soak-"))
    run(minutes, seed, folder / "faults")
    kills(count, seed, folder / "kills")
    shutil.rmtree(folder)


def main(words: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=MINUTES)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    asked = parser.parse_args(words)
    soak(asked.minutes, asked.kills, asked.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
