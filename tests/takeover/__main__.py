"""The takeover cases again and again: `python -m tests.takeover ROUNDS`, on a folder and, where it is installed, Azurite.

Ends at the first round in which something did not hold, with what that was and where its files are kept.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, *(HERE.parent / name for name in (".", "process", "daemon", "stores"))):
    sys.path.insert(0, str(folder))

import azurite  # noqa: E402  # the helpers of the tests are found by the paths above
import takeover_cases  # noqa: E402
from takeover_stage import Stage, title  # noqa: E402


def main(words: list[str]) -> int:
    """Play; 1 when something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.takeover", description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=1)
    parser.add_argument("--only", default="", help="words of a case's title")
    asked = parser.parse_args(words)
    cases = [case for case in takeover_cases.ALL if asked.only.casefold() in title(case).casefold()]
    for number in range(asked.rounds):
        root = Path(tempfile.mkdtemp(prefix="takeover-"))
        print(f"Round {number + 1} of {asked.rounds}, in {root}", flush=True)
        if not _round(root, cases):
            return 1
        shutil.rmtree(root)
    return 0


def _round(root: Path, cases: list[takeover_cases.Case]) -> bool:
    kinds = ["local", *(["azurite"] if azurite.MAIN.is_file() else [])]
    stage, held = Stage(root, blobs="azurite" in kinds), True
    try:
        begun = [
            (f"{kind}: {title(case)}", stage.play(case, kind, f"{kind}-{number}"))
            for kind in kinds
            for number, case in enumerate(cases)
        ]
        for name, future in begun:
            trouble = future.exception()
            held = held and trouble is None
            print(future.result() if trouble is None else f"DOES NOT HOLD: {name}: {trouble!r}", flush=True)
    finally:
        stage.close()
    return held


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
