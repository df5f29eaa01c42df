"""On which line of a CSV file a refused row stands.

Guarantees: lines count from 1 as an editor shows them, header and line ends inside quotes included. A row that can't be
found again (a text for NULL that was quoted, or more than `MAX_LOCATED` refused rows in one file) has no line rather
than a wrong one. Reads a file only when rows of it were refused.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from fdagent.engine.sources.listing import reached
from fdagent.engine.sources.text import CHUNK_BYTES, reader
from fdagent.project.model import Csv

MAX_LOCATED = 100_000
"""Refused rows of one file whose lines are looked for: their texts are held in memory."""

Row = tuple[str | None, ...]


def at_offsets(path: Path, offsets: Sequence[int]) -> dict[int, int]:
    """The line of each byte offset (from 0)."""
    lines: dict[int, int] = {}
    wanted = sorted(set(offsets))
    line, position, next_one = 1, 0, 0
    with reached(path), path.open("rb") as opened:
        while next_one < len(wanted) and (chunk := opened.read(CHUNK_BYTES)):
            start = 0
            while next_one < len(wanted) and wanted[next_one] < position + len(chunk):
                stop = wanted[next_one] - position
                line += chunk.count(b"\n", start, stop)
                lines[wanted[next_one]] = line
                start, next_one = stop, next_one + 1
            line += chunk.count(b"\n", start)
            position += len(chunk)
    return lines


def of_rows(path: Path, rows: Sequence[Row], csv: Csv) -> list[int | None]:
    """The line on which each row begins; equal rows get the lines on which they stand, in their order.

    Whole lines are compared first, which takes a tenth of the time of a CSV reader and finds nearly every row.
    """
    found: list[int | None] = [None] * len(rows)
    wanted: dict[bytes, deque[int]] = defaultdict(deque)
    nulls = csv.null or ("",)
    for n, row in enumerate(rows[:MAX_LOCATED]):
        for key in dict.fromkeys(_bare(row, null, csv) for null in nulls):
            wanted[key].append(n)
    before = 1
    for lines in _bare_lines(path, csv.quote.encode()):
        for offset in [offset for offset, line in enumerate(lines) if line in wanted]:
            _settle(wanted[lines[offset]], found, before + offset)
        before += len(lines)
    if None in found[:MAX_LOCATED]:
        _read_again(path, rows, found, csv)
    return found


def _bare_lines(path: Path, quote: bytes) -> Iterator[list[bytes]]:
    """The file's lines without their ends and without quotes, as many at a time as a chunk has."""
    rest = b""
    with reached(path), path.open("rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            bare = chunk.replace(quote, b"") if quote else chunk
            lines = (rest + bare).split(b"\n")
            rest = lines.pop()
            yield [line.removesuffix(b"\r") for line in lines] if b"\r" in chunk else lines
    yield [rest]


def _bare(row: Row, null: str, csv: Csv) -> bytes:
    """The row as one line without quotes, NULL written as `null`."""
    line = csv.delimiter.join(null if value is None else value for value in row)
    return (line.replace(csv.quote, "") if csv.quote else line).encode()


def _settle(waiting: deque[int], found: list[int | None], number: int) -> None:
    while waiting:
        n = waiting.popleft()
        if found[n] is None:
            found[n] = number
            return


def _read_again(path: Path, rows: Sequence[Row], found: list[int | None], csv: Csv) -> None:
    """Find what is left with a CSV reader: rows over several lines, or with several texts for NULL."""
    wanted: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
    for n, row in enumerate(rows[:MAX_LOCATED]):
        if found[n] is None:
            wanted[tuple(value or "" for value in row)].append(n)
    nulls = set(csv.null)
    with reached(path), path.open(encoding="utf-8", errors="replace", newline="") as opened:
        records = reader(opened, csv)
        before = 0
        for record in records:
            key = tuple("" if value in nulls else value for value in record)
            if key in wanted:
                _settle(wanted[key], found, before + 1)
            before = records.line_num
