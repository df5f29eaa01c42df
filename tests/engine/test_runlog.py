"""The run log: each batch once, newest first, and rows that survive their JSON."""

import json
from dataclasses import replace

import pytest
from engine_kit import World, rows_of
from hypothesis import given
from hypothesis import strategies as st

from fdagent.engine import runlog
from fdagent.engine.runtable import skipped_row
from fdagent.engine.tables.delta import DeltaTablePort
from fdagent.errors import Unknown
from models.errors import BadRecord
from models.run import CheckResult, RunRow, RunStatus


def row(n: int = 0, **values: object) -> RunRow:
    made = RunRow(
        run_id=f"run-{n}", job_id="job", request_id="", run_key="key", env="dev", entity="silver.s", layer="silver",
        mode="append", status=RunStatus.SUCCEEDED, started_at="2027-01-15T09:00:00.000Z",
        finished_at=f"2027-01-15T09:{n // 60:02d}:{n % 60:02d}.250Z", duration_ms=250, attempt=1, worker="w", host="h",
        agent="a", source="cli", rows_read=3, checks=(CheckResult("unique(id)", "warn", 2),),
    )  # fmt: skip
    return replace(made, **values)


@pytest.fixture
def world(tmp_path) -> World:
    made = World(tmp_path)
    made.csv_entity()
    return made


def append(world: World, batch: str, *rows: RunRow) -> None:
    runlog.append_rows(world.places, batch, rows, clock=world.clock, ids=world.ids)


def read(world: World, last: int = 100) -> list[RunRow]:
    return runlog.read_rows(world.places, last=last, clock=world.clock)


def test_no_log_has_no_rows(world):
    assert read(world) == []
    append(world, "empty")
    assert not world.places.run_log.exists()


def test_rows_are_read_back_as_they_were(world):
    append(world, "b", row(1), row(2, error='it\'s "so"', checks=(), status=RunStatus.FAILED))
    assert read(world) == [row(2, error='it\'s "so"', checks=(), status=RunStatus.FAILED), row(1)]


def test_many_rows_of_one_append_keep_each_their_own_values(world):
    rows = [
        row(n, error="é\n'\"" * n, rows_read=2**40 + n, version_before=n if n % 2 else -1, checks=(), attempt=n)
        for n in range(300)
    ]
    append(world, "b", *rows)
    assert list(reversed(read(world, 300))) == rows


def test_a_batch_appended_again_doubles_nothing(world, monkeypatch):
    real = DeltaTablePort.commit

    def lost(self, *args):
        real(self, *args)
        raise Unknown("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTablePort, "commit", lost)
        append(world, "b", row(1))
    append(world, "b", row(1))
    append(world, "c", row(2))
    assert [found.run_id for found in read(world)] == ["run-2", "run-1"]


def test_the_newest_rows_are_found_among_many_files(world):
    order = [5, 1, 9, 3, 7, 0, 8, 2, 6, 4]
    for n in order:
        append(world, f"b{n}", row(n), row(n + 20))
    assert [found.run_id for found in read(world, 3)] == ["run-29", "run-28", "run-27"]
    assert [found.run_id for found in read(world, 12)][-2:] == ["run-9", "run-8"]
    assert len(read(world)) == 20


def test_each_check_has_a_row_of_its_own(world):
    append(world, "b", row(1), row(2, checks=()))
    append(world, "b", row(1), row(2, checks=()))
    from deltalake import DeltaTable

    found = rows_of(DeltaTable(str(world.places.check_log)), "run_id", "entity", "check", "severity", "rows")
    assert found == [("run-1", "silver.s", "unique(id)", "warn", 2)]


def test_the_log_has_exactly_the_columns_of_a_row(world):
    append(world, "b", row(1))
    fields = DeltaTablePort(world.places.run_log, world.clock).open().fields
    assert [field.name for field in fields] == list(RunRow.__dataclass_fields__)
    assert {field.name for field in fields if field.type == "timestamp"} == {"started_at", "finished_at"}


def test_marks_are_those_of_the_newest_run_that_finished(world):
    append(world, "b", row(1, watermark_after="one"), row(2, watermark_after="two"))
    append(
        world,
        "c",
        row(3, watermark_after="no", status=RunStatus.FAILED),
        row(4, entity="silver.x", watermark_after="x"),
    )
    assert runlog.last_marks(world.places, "silver.s", world.clock) == "two"
    assert runlog.last_marks(world.places, "silver.o'hara", world.clock) is None


def test_a_log_that_a_newer_version_wrote_is_read_and_written(world):
    from fdagent.engine.schema import Field

    append(world, "b", row(1))
    port = DeltaTablePort(world.places.run_log, world.clock)
    port.add_columns(port.open(), [Field("of_a_newer_version", "string")])
    append(world, "c", row(2))
    assert len(read(world)) == 2


def test_a_skipped_row_says_why(world):
    found = skipped_row(world.project.entities["bronze.t"], world.context(), "bronze.x failed")
    assert (found.status, found.error, found.rows_written) == (RunStatus.SKIPPED, "bronze.x failed", 0)


@given(st.integers(0, 10**12), st.text(), st.sampled_from(list(RunStatus)))
def test_a_row_survives_its_json(count, error, status):
    found = row(1, rows_inserted=count, error=error, status=status)
    assert RunRow.from_text(json.dumps(found.to_json())) == found


@pytest.mark.parametrize(
    "change",
    [
        {"status": "great"},
        {"rows_read": "3"},
        {"rows_read": True},
        {"extra": 1},
        {"checks": [{"check": "x"}]},
        {"entity": None},
    ],
)
def test_a_stored_row_that_is_none_is_refused(change):
    with pytest.raises(BadRecord):
        RunRow.from_json({**row().to_json(), **change})


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"run_id": "x"}'])
def test_text_that_is_no_row_is_refused(text):
    with pytest.raises(BadRecord):
        RunRow.from_text(text)
