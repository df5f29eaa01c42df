"""A CSV file made safe to read: its header, its encoding, its line ends, and where it really ends.

Guarantees
- The header is read here, by the declared signs; nothing about a file is guessed. A file without a byte, or with
  nothing but white space, is told from one with a header and no rows.
- A file with a quote in it, an encoding other than UTF-8, mixed line ends or a name like a pattern is read from a copy in UTF-8 with one kind of
  line end (inside quotes they stay as they are) and an end mark as its last row. DuckDB drops the rest of a file in
  silence when a quote is never closed; the missing end mark tells. (It also makes a row out of thin air where a quoted
  line end meets two of its threads: such copies are read by one.)

Does not look at values.
"""

import codecs
import csv as csv_module
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Any

from fdagent.engine.marks import FoundFile
from fdagent.engine.sources.listing import reached
from fdagent.errors import BadSource
from fdagent.project.model import Column, Csv
from fdagent.project.names import equal_but_for_case

END = "\x1ffdagent: end of file\x1f"
CHUNK_BYTES = 8 * 1024 * 1024
HEADER_BYTES = 1024 * 1024
"""The longest header."""
_WRONG_STARTS = {
    b"\xff\xfe": 'is UTF-16; expected encoding = "utf-16" in [source.csv]',
    b"\xfe\xff": 'is UTF-16; expected encoding = "utf-16" in [source.csv]',
    b"\x1f\x8b": "is packed (gzip); expected a plain CSV file",
    b"PK\x03\x04": "is packed (zip, or a workbook); expected a plain CSV file",
}
_UTF8 = ("utf-8", "utf-8-sig")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A source file as DuckDB is to read it. `copied`: `path` is a copy that ends with the end mark."""

    file: FoundFile
    path: Path
    header: tuple[str, ...]
    copied: bool


def open_text(file: FoundFile, csv: Csv, columns: tuple[Column, ...], copy: Path) -> TextFile | None:
    """Make a file ready; None when it is empty and empty files are ignored.

    Args:
        file: The file.
        csv: How it is declared to be written.
        columns: Declared columns: its header, where the file has none.
        copy: Where a copy goes, if one is needed.

    Raises:
        BadSource: It is empty, or is not what it is declared to be.
        SourceMissing, Denied, Unavailable: It can't be read.
        DiskFull: No room for its copy.
    """
    with reached(file.name):
        return _opened(file, csv, columns, copy)


def _opened(file: FoundFile, csv: Csv, columns: tuple[Column, ...], copy: Path) -> TextFile | None:
    start = _start(file.path)
    if csv.encoding in _UTF8:
        for wrong, what in _WRONG_STARTS.items():
            if start.startswith(wrong):
                raise BadSource(f"{file.name} {what}.")
    beginning = _decoded(start, file, csv)
    if len(start) < HEADER_BYTES and not beginning.strip():
        if csv.on_empty == "ignore":
            return None
        raise BadSource(
            f"{file.name} is empty: it has no header, so its delivery may have failed.",
            fix='Deliver it again, or set on_empty = "ignore" in [source.csv].',
        )
    header = _header(beginning, file, csv) if csv.header else tuple(column.source for column in columns)
    # DuckDB takes a path with such a sign for a pattern.
    if csv.encoding in _UTF8 and not has_magic(str(file.path)) and _is_plain(file.path, csv.quote):
        return TextFile(file, file.path, header, copied=False)
    _copy(file, csv, copy, len(header))
    return TextFile(file, copy, header, copied=True)


def _start(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(HEADER_BYTES)


def _decoded(start: bytes, file: FoundFile, csv: Csv) -> str:
    """The beginning as text; a character cut at its end is left out. UTF-8 that is not is a matter of its row."""
    errors = "replace" if csv.encoding in _UTF8 else "strict"
    try:
        return codecs.getincrementaldecoder(csv.encoding)(errors).decode(start).removeprefix("\ufeff")
    except UnicodeError as err:
        raise _not_encoded(file, csv, err) from err


def _not_encoded(file: FoundFile, csv: Csv, err: UnicodeError) -> BadSource:
    return BadSource(f"{file.name} is not {csv.encoding}: {err}.", fix="Correct encoding in [source.csv].")


def _header(beginning: str, file: FoundFile, csv: Csv) -> tuple[str, ...]:
    lines = io.StringIO(beginning, newline="")
    try:
        names: list[str] = next(reader(lines, csv))
    except csv_module.Error as err:
        raise BadSource(f"The header of {file.name} can't be read: {err}.") from err
    if not names:
        raise BadSource(f"The first line of {file.name} is blank, a header is expected there.")
    problems = [f"column {n} has no name" for n, name in enumerate(names, start=1) if not name.strip()]
    problems += [f"{name!r} stands there twice" for name in dict.fromkeys(names) if name and names.count(name) > 1]
    problems += [f"{one!r} and {other!r} differ only in letter case" for one, other in equal_but_for_case(names)]
    if problems:
        raise BadSource(
            f"The header of {file.name} can't be used: {', '.join(problems)}.", fix="Correct it where it is written."
        )
    return tuple(names)


def reader(lines: Iterable[str], csv: Csv) -> Any:
    """Python's own CSV reader with the declared signs; `Any` because its class, with `line_num`, has no public name."""
    if csv.quote:
        return csv_module.reader(lines, delimiter=csv.delimiter, quotechar=csv.quote)
    return csv_module.reader(lines, delimiter=csv.delimiter, quotechar=None, quoting=csv_module.QUOTE_NONE)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            yield chunk


def _is_plain(path: Path, quote: str) -> bool:
    """Can DuckDB read it as it is: no quote in it, one kind of line end, and that not a lone carriage return?"""
    mark = quote.encode()
    returns = pairs = feeds = 0
    held = False
    for chunk in _chunks(path):
        if mark and mark in chunk:
            return False
        if held or b"\r" in chunk:
            returns += chunk.count(b"\r")
            pairs += chunk.count(b"\r\n") + (held and chunk.startswith(b"\n"))
            held = chunk.endswith(b"\r")
        feeds += chunk.count(b"\n") if returns else 0
    return returns == 0 or returns == pairs == feeds


def _copy(file: FoundFile, csv: Csv, copy: Path, width: int) -> None:
    """Write the copy. Bytes that are not UTF-8 stay where UTF-8 is declared: the rows that have them are refused."""
    decoder = None if csv.encoding in _UTF8 else codecs.getincrementaldecoder(csv.encoding)("strict")
    lines = _Lines(csv.quote.encode())
    with copy.open("wb") as target:
        try:
            for number, chunk in enumerate(_chunks(file.path)):
                plain = chunk if decoder is None else decoder.decode(chunk).encode("utf-8")
                target.write(lines.plain(plain.removeprefix(codecs.BOM_UTF8) if number == 0 else plain))
            rest = b"" if decoder is None else decoder.decode(b"", final=True).encode("utf-8")
        except UnicodeError as err:
            raise _not_encoded(file, csv, err) from err
        target.write(lines.plain(rest, last=True))
        target.write(csv.delimiter.join([END] * width).encode() + b"\n")


class _Lines:
    """Makes every line end outside quotes one line feed, over chunks, and sees to one at the very end."""

    def __init__(self, quote: bytes) -> None:
        self._quote = quote
        self._quoted = False
        self._return = False
        self._ends = True

    def plain(self, chunk: bytes, *, last: bool = False) -> bytes:
        """The next chunk. A carriage return at its end waits for the next one: a line feed may follow."""
        if self._return:
            chunk, self._return = b"\r" + chunk, False
        if chunk.endswith(b"\r") and not last:
            chunk, self._return = chunk[:-1], True
        parts = chunk.split(self._quote) if self._quote else [chunk]
        for n, part in enumerate(parts):
            if n:
                self._quoted = not self._quoted
            if not self._quoted and b"\r" in part:
                parts[n] = part.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        joined = self._quote.join(parts)
        if joined:
            self._ends = joined.endswith(b"\n")
        return joined + b"\n" if last and not self._ends else joined
