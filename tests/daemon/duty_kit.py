"""What the duties' unit tests share: a crew that only pretends, a clock whose walls can jump, a store that fails to order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fakes import FakeIds, FakeProcesses

from fdagent.errors import Unavailable, Unknown
from fdagent.queue.db import Database
from fdagent.queue.jobs import Jobs, Worker
from fdagent.stores.memory import MemoryStore
from models.job import Job, JobState

HERE = "host/boot/ns"


@dataclass
class JumpClock:
    """`now` only goes on; `ahead` is what the wall clock has jumped."""

    now: float = 1_000.0
    ahead: float = 1_700_000_000.0
    slept: list[float] = field(default_factory=list)

    def wall(self) -> float:
        return self.now + self.ahead

    def elapsed(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass(frozen=True)
class Gone:
    label: str
    pid: int
    code: int
    how: str


@dataclass
class FakeCrew:
    """Workers that are only numbers. `die` ends one; `refuses` is raised at a start."""

    workers: dict[str, int] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    killed: list[tuple[str, str]] = field(default_factory=list)
    fates: dict[int, str] = field(default_factory=dict)
    refuses: OSError | None = None
    dead: list[Gone] = field(default_factory=list)
    next_pid: int = 500
    news: list[Any] = field(default_factory=list)

    def start(self, label: str) -> int:
        if self.refuses is not None:
            raise self.refuses
        self.next_pid += 1
        self.workers[label] = self.next_pid
        self.started.append(label)
        return self.next_pid

    def pids(self) -> dict[str, int]:
        return dict(self.workers)

    def ended(self) -> list[Gone]:
        dead, self.dead = self.dead, []
        for gone in dead:
            self.workers.pop(gone.label, None)
        return dead

    def fate(self, pid: int) -> str:
        return self.fates.get(pid, "")

    def tell(self, news: Any) -> None:
        self.news.append(news)

    def ask_to_stop(self) -> None:
        self.killed.append(("all", "asked to stop"))

    def kill(self, label: str, why: str = "") -> None:
        self.killed.append((label, why))

    def die(self, label: str, code: int) -> None:
        how = f"ended with exit code {code}"
        if code:
            self.fates[self.workers[label]] = how
        self.dead.append(Gone(label, self.workers[label], code, how))


@dataclass
class Told:
    """What was told."""

    lines: list[tuple[Any, ...]] = field(default_factory=list)

    def __call__(self, *words: Any) -> None:
        self.lines.append(words)

    def events(self) -> list[str]:
        return [line[1] for line in self.lines]


class Queue:
    """One queue file with two connections: the daemon's own, and that of everybody else."""

    def __init__(self, home, clock) -> None:
        self.clock = clock
        self.databases = [Database(home), Database(home)]
        self.own = Jobs(self.databases[0], clock=clock, ids=FakeIds("d"))
        self.other = Jobs(self.databases[1], clock=clock, ids=FakeIds("o"))

    def ask(self, name: str = "j1", **fields: Any) -> Job:
        asked = Job(name, JobState.QUEUED, "op", fields.pop("env", "dev"), run_key=name, dedupe_key=name, **fields)
        answer = self.other.enqueue(asked)
        assert isinstance(answer, Job)
        return answer

    def claim(self, pid: int = 501, *, place: str = HERE, started: float = 1.0) -> Job:
        found = self.other.claim(Worker("etl-01/1", place, pid, started))
        assert found is not None
        return found

    def close(self) -> None:
        for database in self.databases:
            database.close()


class Failing(MemoryStore):
    """A store whose calls fail as `plan` says, one entry a call: None, "away", "lost" (it happened), "late" (it did not)."""

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.plan: Iterator[str | None] = iter(())
        self.down = False

    def _next(self) -> str | None:
        return "away" if self.down else next(self.plan, None)

    def read(self, key):
        if self.down:
            raise Unavailable("The store can't be reached.")
        return super().read(key)

    def write(self, key, body, condition):
        how = self._next()
        if how == "away":
            raise Unavailable("The store can't be reached.")
        if how == "late":
            raise Unknown("no answer")
        etag = super().write(key, body, condition)
        if how == "lost":
            raise Unknown("no answer")
        return etag

    def delete(self, key, condition):
        how = self._next()
        if how == "away":
            raise Unavailable("The store can't be reached.")
        if how == "late":
            raise Unknown("no answer")
        super().delete(key, condition)
        if how == "lost":
            raise Unknown("no answer")


def processes(**alive: float) -> FakeProcesses:
    """This place, with these processes: `p501=1.0` is pid 501, started at 1.0."""
    return FakeProcesses(here=HERE, alive={int(name[1:]): at for name, at in alive.items()})
