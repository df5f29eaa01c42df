"""SCD1: 100,000 updates and 20,000 new rows into 1M and 10M rows, beside `DeltaTable.merge`, in time and memory.

Both sides get the same table (12 columns, 10 files, statistics) and the same batch, a Delta table of one file, and are
timed from their first look at the table to the landed commit; ours is a whole table run, with its SQL, key checks,
fsync and marks. Random keys touch every file, the newest touch the last one. After the clock stops each side's table is
counted and summed, and must agree. (`python -m tests.bench.bench_scd1 <role> ...`: one side in a process of its own.)
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench import measure
from tests.bench.measure import BenchError, Bound, line

ME = "tests.bench.bench_scd1"
FILES = 10
UPDATES, NEW = 100_000, 20_000
SIZES = {"1M": 1_000_000, "10M": 10_000_000}
SMALL_MEMORY = "512MB"
MERGE, WHOLE = "merge", "merge, not streamed"
ENTITY = """
[source]
entity = "bronze.batch"
[load]
mode = "scd1"
key = ["id"]
order_by = "updated_at"
"""
BOUNDS = {("10M", "random"): Bound(">=", 1.4), ("10M", "newest"): Bound(">=", 3)}
MEMORY = Bound("<=", 1.05)


def run() -> list[dict[str, Any]]:
    """All lines of scd1."""
    return [entry for size in SIZES for keys in ("random", "newest") for entry in _lines(size, keys)]


def _lines(size: str, keys: str) -> list[dict[str, Any]]:
    with measure.scratch() as folder:
        measure.child(ME, "make", folder / "made", SIZES[size], keys)
        sides = {
            "ours": lambda: _once(folder, "ours", ""),
            MERGE: lambda: _once(folder, "merge", "stream"),
            WHOLE: lambda: _once(folder, "merge", "whole"),
        }
        if size == "10M":
            sides[SMALL_MEMORY] = lambda: _once(folder, "ours", SMALL_MEMORY)
        found = measure.alternate(sides)
    answers = {json.dumps(answer["table"]) for side in found.values() for answer in side}
    if len(answers) != 1:
        raise BenchError(f"The sides' tables differ: {answers}")
    name = f"scd1: {UPDATES + NEW:,} rows into {size}, {keys} keys"
    bounds = (BOUNDS.get((size, keys)), MEMORY if size == "10M" else None)
    lines = _beside(name, found["ours"], "DeltaTable.merge", found[MERGE], bounds)
    lines += _beside(f"{name}, vs merge not streamed", found["ours"], "merge, not streamed", found[WHOLE])
    if SMALL_MEMORY in found:
        small = f"{name}, memory_limit {SMALL_MEMORY}"
        lines += _beside(small, found[SMALL_MEMORY], "DeltaTable.merge", found[MERGE])
    return lines


def _beside(
    name: str,
    ours: list[dict[str, Any]],
    peer: str,
    peers: list[dict[str, Any]],
    bounds: tuple[Bound | None, Bound | None] = (None, None),
) -> list[dict[str, Any]]:
    """Rate, processor time and peak memory beside one peer."""
    note = (
        "scd1: peer DeltaTable.merge as it comes (streamed), and with streamed_exec=False; snappy files, no fsync. Ours is a "
        "whole table run: SQL, key checks, marks, zstd files, fsync. Processor time says more than the rate on a busy machine"
    )
    measures = {
        "batch rows/s": (lambda answer: (UPDATES + NEW) / answer["seconds"], "", bounds[0]),
        "CPU s": (lambda answer: answer["processor"], ", processor time", None),
        "MB": (lambda answer: answer["peak"] / 1e6, ", peak memory", bounds[1]),
    }
    return [
        line(
            name + what, unit, [value(answer) for answer in ours], peer=peer, peers=[value(answer) for answer in peers],
            bound=bound, note=note,
        )
        for unit, (value, what, bound) in measures.items()
    ]  # fmt: skip


def _once(folder: Path, side: str, setting: str) -> dict[str, Any]:
    """One run on a fresh copy; data files are linked, since nobody changes a data file."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(
        folder / "made",
        copy,
        copy_function=lambda a, b: os.link(a, b) if a.endswith(".parquet") else shutil.copy2(a, b),
    )
    return measure.child(ME, side, copy, setting)


def _project(root: Path) -> None:
    files = {
        "layers.toml": 'format = 1\n[bronze]\nrank = 1\nlakehouse = "LH"\n[silver]\nrank = 2\nlakehouse = "LH2"\n',
        "environments.toml": 'format = 1\n[dev]\ntarget = "local"\nvars = { landing = "landing" }\n',
        "entities/bronze/batch.toml": '[source]\nfiles = "{landing}/*.csv"\n[load]\nmode = "append"\n',
        "entities/silver/big.toml": ENTITY,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def _tables(root: Path) -> tuple[Path, Path]:
    return root / ".local/dev/LH/Tables/batch", root / ".local/dev/LH2/Tables/big"


def _child_make(root: Path, rows: str, keys: str) -> None:
    """The project, its table of `rows` rows and the batch."""
    import duckdb

    _project(root)
    batch, big = _tables(root)
    count = int(rows)
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    each = count // FILES
    _write(duck, big, [_values(f"range({n * each}, {(n + 1) * each})", "r.i", "0") for n in range(FILES)])
    picked = f"hash(i) % {count}" if keys == "random" else f"{count} - {UPDATES} + i"
    # A hash may hit a key twice: enough are drawn and the first kept.
    updates = f"(SELECT DISTINCT ({picked})::BIGINT AS i FROM range({UPDATES * 2 if keys == 'random' else UPDATES}) t(i) ORDER BY hash(i) LIMIT {UPDATES})"
    new = f"(SELECT i FROM range({count}, {count + NEW}) t(i))"
    _write(duck, batch, [_values(f"(SELECT * FROM {updates} UNION ALL SELECT * FROM {new})", "r.i", "1")])
    measure.answer(made=True)


def _values(source: str, key: str, age: str) -> str:
    return (
        f"SELECT {key}::BIGINT AS id, (hash({key}, {age}) % 500000)::BIGINT AS customer_no, "
        f"['NEW', 'PAID', 'SENT', 'DONE', 'BACK'][1 + (hash({key} + 1, {age}) % 5)::INT] AS status, "
        f"((hash({key} + 2, {age}) % 1000000) / 100.0)::DECIMAL(18, 2) AS amount, (hash({key} + 3) % 100)::INT AS quantity, "
        f"(hash({key} + 4) % 10000) / 7.0 AS weight, 'c' || (hash({key} + 5) % 200) AS country, "
        f"'item ' || (hash({key} + 6) % 100000) AS item, hash({key} + 7) % 2 = 0 AS paid, "
        f"DATE '2020-01-01' + (hash({key} + 8) % 2000)::INT AS ordered_on, "
        f"TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_seconds({key} % 86400) + to_days({age} * 30) AS updated_at, "
        f"'note ' || (hash({key} + 9) % 10000000) AS note FROM {source} r(i)"
    )


def _write(duck: Any, folder: Path, queries: list[str]) -> None:
    """A Delta table with one file a query, its statistics written by delta-rs itself."""
    from deltalake import write_deltalake

    for query in queries:
        write_deltalake(str(folder), duck.sql(query).to_arrow_table(), mode="append")


def _child_ours(root: Path, memory_limit: str = "") -> None:
    from fdagent.engine.runtable import RunContext, run_table
    from fdagent.project.load import load_project
    from fdagent.project.places import Places
    from fdagent.system import SystemClock, SystemIds

    project = load_project(root)
    environment = project.environments["dev"]
    context = RunContext(
        environment=environment, places=Places(project, environment), run_key="bench", clock=SystemClock(), ids=SystemIds(),
        still_mine=lambda: None, memory_limit=memory_limit, spill=root / "spill",
    )  # fmt: skip
    started, processor = time.perf_counter(), time.process_time()
    row = run_table(project, project.entities["silver.big"], context).row
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    if (row.rows_updated, row.rows_inserted) != (UPDATES, NEW):
        raise SystemExit(f"{row.status}: {row.error} {row.rows_updated} updated, {row.rows_inserted} inserted")
    _answer(root, seconds, processor)


def _child_merge(root: Path, mode: str) -> None:
    from deltalake import DeltaTable

    batch, big = _tables(root)
    started, processor = time.perf_counter(), time.process_time()
    rows = DeltaTable(str(batch)).to_pyarrow_table()
    merger = DeltaTable(str(big)).merge(
        rows, "t.id = s.id", source_alias="s", target_alias="t", streamed_exec=mode == "stream"
    )
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    _answer(root, time.perf_counter() - started, time.process_time() - processor)


def _answer(root: Path, seconds: float, processor: float) -> None:
    """Time and peak first; then the table, read by neither side's writer."""
    peak = measure.peak_rss_bytes()
    import duckdb
    from deltalake import DeltaTable

    files = DeltaTable(str(_tables(root)[1])).file_uris()
    sums = "count(*), count(DISTINCT id), sum(id), sum(amount), sum(customer_no), count(*) FILTER (status = 'PAID'), max(updated_at)"
    found = duckdb.execute(f"SELECT {sums} FROM read_parquet({files})").fetchone()
    measure.answer(seconds=seconds, processor=processor, peak=peak, table=[str(value) for value in found or ()])


if __name__ == "__main__":
    {"make": _child_make, "ours": _child_ours, "merge": _child_merge}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
