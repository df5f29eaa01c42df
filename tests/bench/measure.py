"""What the benches share: child processes, alternating runs, medians, peak memory, and a result's shape.

Every measurement runs in a process of its own, ours and the peer's, on the disk the repository lies on; sides alternate
so that a disk or a neighbour that slows down hits both.
"""

import contextlib
import json
import operator
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
BENCH = ROOT / ".bench"
PEERS = Path(__file__).parent / "peers"
PEERS_PYTHON = BENCH / "peers" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
LEAST_RUNS = 3
CHILD_SECONDS = 600.0


class BenchError(Exception):
    """A measurement that could not be taken."""


class Bound(NamedTuple):
    """What a line must reach: `op` (`>=` or `<=`) and a number, of the ratio to the peer or of our own value."""

    op: str
    number: float
    of: str = "ratio"

    def holds(self, ours: float, ratio: float | None) -> bool | None:
        """Is it reached? None without a peer's value to compare with."""
        value = ours if self.of == "ours" else ratio
        return None if value is None else {">=": operator.ge, "<=": operator.le}[self.op](value, self.number)

    def __str__(self) -> str:
        return f"{self.op} {self.number:g}" + (" x peer" if self.of == "ratio" else "")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the repository's disk, removed afterwards."""
    folder = BENCH / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        yield Path(made)


def child(module: str, *arguments: object, seconds: float = CHILD_SECONDS) -> dict[str, Any]:
    """Run a module of ours (`tests.bench.x`) in a process of its own; what its last line of output says, as JSON."""
    return _run([sys.executable, "-m", module], arguments, seconds)


def peer(script: str, *arguments: object, seconds: float = CHILD_SECONDS) -> dict[str, Any]:
    """Run `peers/<script>.py` with the peers' own interpreter; what its last line of output says, as JSON."""
    if not PEERS_PYTHON.exists():
        raise BenchError(f"The peers are not installed in {BENCH / 'peers'}: `make bench` does that.")
    return _run([str(PEERS_PYTHON), str(PEERS / f"{script}.py")], arguments, seconds)


def together(module: str, count: int, *arguments: object, seconds: float = CHILD_SECONDS) -> list[dict[str, Any]]:
    """Run `count` processes of a module of ours at once; what the last line of output of each says, as JSON.

    Each says one line when it is ready, then waits for a line; they get theirs when all are ready.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(count)]
    try:
        if not all(process.stdout.readline() for process in started):
            raise BenchError(f"{command} ended before it was ready.")
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        return [_ended(process, seconds) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def _ended(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as err:
        raise BenchError(f"{process.args} took longer than {seconds:.0f} s.") from err
    return _answer(process.args, process.returncode, out)


def _run(command: list[str], arguments: Sequence[object], seconds: float) -> dict[str, Any]:
    whole = [*command, *map(str, arguments)]
    try:
        # What goes wrong is the reader's to see: standard error is not captured.
        done = subprocess.run(whole, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as err:
        raise BenchError(f"{whole} took longer than {seconds:.0f} s.") from err
    return _answer(whole, done.returncode, done.stdout)


def _answer(command: object, code: int, out: str) -> dict[str, Any]:
    lines = out.strip().splitlines()
    if code != 0 or not lines:
        raise BenchError(f"{command} ended with {code} and said: {out.strip() or 'nothing'}")
    return json.loads(lines[-1])


def answer(**values: Any) -> None:
    """What a child says: one line of JSON."""
    print(json.dumps(values), flush=True)


def alternate(sides: Mapping[str, Callable[[], T]], runs: int = LEAST_RUNS) -> dict[str, list[T]]:
    """Run every side `runs` times, in turn, each round in the reverse order of the one before."""
    if runs < LEAST_RUNS:
        raise ValueError(f"a median of {runs} runs says too little")
    found: dict[str, list[T]] = {name: [] for name in sides}
    for turn in range(runs):
        for name in list(sides) if turn % 2 == 0 else reversed(list(sides)):
            found[name].append(sides[name]())
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of the values don't exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def peak_rss_bytes() -> int:
    """The most memory this very process has held; to be asked inside a child, just before it answers.

    On Linux from /proc: getrusage would count what the parent held when it forked.
    """
    if sys.platform == "linux":
        for text in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if text.startswith("VmHWM:"):
                return int(text.split()[1]) * 1024
    import resource  # not on Windows

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def line(
    name: str,
    unit: str,
    ours: Sequence[float],
    *,
    peer: str = "",
    peers: Sequence[float] = (),
    bound: Bound | None = None,
    note: str = "",
) -> dict[str, Any]:
    """One line of the results.

    Args:
        name: What is measured; unique among all lines, begins with the bench's name.
        unit: Of `ours` and `peers`.
        ours: Our value of each run; the line shows the median.
        peer: Whom we are compared with.
        peers: The peer's value of each run.
        bound: What must be reached.
        note: The peer's settings, and what the reader must know.
    """
    mine = statistics.median(ours)
    theirs = statistics.median(peers) if peers else None
    ratio = mine / theirs if theirs else None
    return {
        "name": name,
        "unit": unit,
        "ours": mine,
        "peer": peer,
        "peer_value": theirs,
        "ratio": ratio,
        "bound": str(bound) if bound else "",
        "holds": bound.holds(mine, ratio) if bound else None,
        "runs": {"ours": list(ours), "peer": list(peers)},
        "note": note,
    }
