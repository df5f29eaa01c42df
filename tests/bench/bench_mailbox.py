"""An idle poll of the mailbox: 10,000 finished requests in a local folder, nothing new, beside reading them all.

The poll is the daemon's own duty over the store of the local folder; the other side is what a scheduler does that keeps
no memory of what it has seen. (`python -m tests.bench.bench_mailbox <folder>` measures both in a process of its own.)
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import measure
from tests.bench.measure import Bound, line

ME = "tests.bench.bench_mailbox"
MANY = 10_000
POLLS, READS, RUNS = 200, 3, 3


def run() -> list[dict[str, Any]]:
    """The line."""
    found = []
    for _ in range(RUNS):
        with measure.scratch() as folder:
            found.append(measure.child(ME, folder))
    return [
        line(
            f"mailbox: an idle poll beside {MANY:,} finished requests",
            "ms",
            [answer["poll_ms"] for answer in found],
            peer="reading them all",
            peers=[answer["read_ms"] for answer in found],
            bound=Bound("<=", 10, of="ours"),
            note="mailbox: a poll lists both folders and reads nothing; the first polls, which do read, don't count",
        )
    ]


def main(folder: Path) -> None:
    """Both sides."""
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "fleet")]
    from finished import agent_beside

    agent = agent_beside(folder, MANY)
    bodies = [*folder.glob("requests/*.json"), *folder.glob("status/*.json")]
    measure.answer(
        poll_ms=1000 * fastest(agent.mailbox.tick, POLLS),
        read_ms=1000 * fastest(lambda: [json.loads(path.read_bytes()) for path in bodies], READS),
    )


def fastest(do: Callable[[], Any], times: int) -> float:
    """Seconds of the fastest of some calls: what it costs when nobody interrupts."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        do()
        spent.append(time.perf_counter() - began)
    return min(spent)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
