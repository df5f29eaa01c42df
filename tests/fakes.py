"""Stand-ins for the ports that unit tests share: a clock that only moves when told, ids that count."""

from dataclasses import dataclass, field


@dataclass
class FakeClock:
    """Both clocks in one; `sleep` moves them."""

    now: float = 1_700_000_000.0
    slept: list[float] = field(default_factory=list)

    def wall(self) -> float:
        return self.now

    def elapsed(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class FakeIds:
    """Ids `a1`, `a2`, ...; no jitter."""

    prefix: str = "a"
    count: int = 0

    def new(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count}"

    def fraction(self) -> float:
        return 0.5


@dataclass
class FakeProcesses:
    """One place; `alive` maps pids to start times."""

    here: str = "host/boot/ns"
    me: int = 100
    alive: dict[int, float] = field(default_factory=lambda: {100: 1.0})

    def place(self) -> str:
        return self.here

    def pid(self) -> int:
        return self.me

    def started_at(self, pid: int) -> float | None:
        return self.alive.get(pid)
