"""A clock and ids that a test moves by hand."""

from dataclasses import dataclass, field


@dataclass
class HandClock:
    """`elapsed` and `wall` go on by sleeping, or where a test sets them."""

    at: float = 1000.0
    epoch: float = 1_800_000_000.0
    slept: list[float] = field(default_factory=list)

    def wall(self):
        return self.epoch

    def elapsed(self):
        return self.at

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.move(seconds)

    def move(self, seconds):
        self.at += seconds
        self.epoch += seconds


@dataclass
class CountingIds:
    """op1, op2, ...; the jitter is always the same."""

    made: int = 0

    def new(self):
        self.made += 1
        return f"op{self.made}"

    def fraction(self):
        return 0.5
