"""Long runs: of the simulated world, with replays of what they found, and of a real agent under a fault injector.

`python -m tests.soak --seeds N` stops at the first violation with the line that brings it back. `--exhaustive` also
searches every scope whole, those of three agents too. `--minutes 0` leaves the real agent (`daemon_soak.py`) out.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.soak import daemon_soak
from tests.world.drive import replay
from tests.world.explore import explore
from tests.world.large import LARGE
from tests.world.process import Violation
from tests.world.replay import parse
from tests.world.scopes import SCOPES, WALKS
from tests.world.seeds import SEEDED, run, wider

for folder in ("", "fleet"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

import fleet_world  # noqa: E402  # found there only now

FLEET_HOURS, FLEET_RATE = 1000, 0.3
"""How long each seed's fleet runs, and how often something goes wrong in it."""
MOST_STATES = 3_000_000
TOLD_EVERY_SECONDS = 10.0


def main(words: list[str]) -> int:
    """Run; 1 when something broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds, each over every scope")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--exhaustive", action="store_true", help="also search every scope whole")
    parser.add_argument("--minutes", type=float, default=daemon_soak.MINUTES, help="how long an agent is under faults")
    parser.add_argument("--kills", type=int, default=daemon_soak.KILLS, help="how often an agent is killed after that")
    parser.add_argument("--replay", metavar="LINE", help="bring one run back")
    asked = parser.parse_args(words)
    try:
        if asked.replay:
            _replay(asked.replay)
        else:
            _soak(range(asked.first, asked.first + asked.seeds), exhaustive=asked.exhaustive)
            if asked.minutes:
                daemon_soak.soak(asked.minutes, asked.kills, asked.first)
    except (Violation, fleet_world.Violation) as err:
        print(f"VIOLATION: {err}")
        return 1
    except AssertionError as err:
        if not asked.replay:
            print(f"VIOLATION: {err}")
            return 1
        print(f"This line can't be walked on the code as it is: {err}")
        return 2
    return 0


def _soak(seeds: range, *, exhaustive: bool) -> None:
    begun = told = time.monotonic()
    seen: set[str] = set()
    for seed in seeds:
        for name in SEEDED:
            seen |= run(name, seed)
        seen |= set(fleet_world.run(1, FLEET_HOURS, first=seed, rate=FLEET_RATE, say=lambda _: None))
        if time.monotonic() - told > TOLD_EVERY_SECONDS:
            told = time.monotonic()
            print(f"seed {seed}: nothing broke", flush=True)
    print(
        f"{len(seeds)} seeds x ({len(SEEDED)} scopes, a fleet for {FLEET_HOURS} hours) in {time.monotonic() - begun:.0f} s: nothing broke."
    )
    print(f"Seen: {', '.join(sorted(seen))}")
    for scope in (SCOPES | LARGE).values() if exhaustive else ():
        print(explore(scope, most=MOST_STATES), flush=True)


def _replay(line: str) -> None:
    if "fleet@" in line:
        seed, slots, rate = line.strip().strip('"').rpartition("fleet@")[2].split("/")
        fleet_world.World(int(seed), int(slots), float(rate)).run()
        print("Nothing broke.")
        return
    name, run_or_seed = parse(line)
    wide = name.endswith("+")
    if isinstance(run_or_seed, int):
        run(name.rstrip("+"), run_or_seed)
    else:
        scope = (SCOPES | WALKS | LARGE)[name.rstrip("+")]
        replay(wider(scope) if wide else scope, run_or_seed, print)
    print("Nothing broke.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
