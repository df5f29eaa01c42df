"""A worker that is stopped inside a lock must not hold up its agent for ever."""

import pytest
from daemon_kit import fault, make_site, one_effect_each, until
from duty_kit import JumpClock, Told

from fdagent.daemon.watchdog import STANDSTILL_SECONDS, Watchdog
from models.job import JobState


class Crew:
    def __init__(self) -> None:
        self.still: list[str] = []
        self.killed: list[str] = []

    def stopped(self) -> list[str]:
        return self.still

    def kill(self, label: str, why: str = "") -> None:
        assert "SIGSTOP" in why
        self.killed.append(label)


@pytest.fixture
def clock():
    return JumpClock()


@pytest.fixture
def dog(clock):
    made = Watchdog(Crew(), clock, Told())
    made.turned()
    yield made
    made.end()


def test_while_the_loop_turns_a_stopped_worker_is_left_to_the_duties(dog, clock):
    dog._crew.still = ["etl-01/1"]
    for _ in range(100):
        clock.now += STANDSTILL_SECONDS - 0.1
        dog.look()
        dog.turned()
    assert dog._crew.killed == []
    assert dog._tell.lines == []


def test_a_stopped_worker_is_ended_once_the_loop_stands_still(dog, clock):
    dog._crew.still = ["etl-01/2"]
    clock.now += STANDSTILL_SECONDS
    dog.look()
    assert dog._crew.killed == ["etl-01/2"]
    assert dog._tell.events() == ["standstill", "worker_stalled"]


def test_a_loop_that_waits_for_something_else_ends_nobody_and_is_told_once(dog, clock):
    clock.now += STANDSTILL_SECONDS
    for _ in range(10):
        dog.look()
        clock.now += 1
    assert dog._crew.killed == []
    assert dog._tell.events() == ["standstill"]
    dog.turned()
    dog.look()
    clock.now += STANDSTILL_SECONDS
    dog.look()
    assert dog._tell.events() == ["standstill"] * 2


@pytest.mark.process
@pytest.mark.long
def test_an_agent_gets_past_a_worker_that_is_stopped_while_it_holds_the_queue(agents, tmp_path):
    # Its schedule makes the daemon write to the queue, too.
    schedule = {"id": "fast", "env": "dev", "every_minutes": 0.05, "entities": ["bronze.orders"]}
    agent = agents(make_site(tmp_path / "project"), schedules=[schedule])
    mark = tmp_path / "mark"
    # Inside the write transaction of its claim, under the queue's lock.
    agent.start(fault("fdagent.queue.cell:JobCell.write", "stop", mark)).up()
    job = agent.ask()
    agent.close_queue()
    until(mark.exists, "the worker holds the queue and stands still")
    agent.told("worker_stalled", "is stopped, and the agent waits")
    ended = agent.ended(job)
    # The claim was never committed, so nothing of it counts.
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 1)
    assert "was stopped (SIGSTOP) while the agent waited" in agent.told("worker_ended")["message"]
    agent.flushed()
    agent.stop()
    one_effect_each(agent.site, [job])
