"""The port over real folders: what it opens, what it refuses, what it puts on disk."""

import errno
from pathlib import Path

import pytest
from deletion_vector import write_table
from deltalake import DeltaTable, write_deltalake
from engine_kit import World
from fakes import FakeClock

from fdagent.engine.change import Change, NewFile
from fdagent.engine.schema import Field
from fdagent.engine.tables import delta
from fdagent.engine.tables.delta import DeltaTablePort
from fdagent.errors import Conflict, Denied, DiskFull, NotATable, Unknown
from fdagent.ports import Note

FIELDS = (Field("id", "long"), Field("t", "timestamp"), Field("d", "decimal(9,2)"))
NOTE = Note("fdagent/key", "attempt", "key", "agent", "job", 2, "run")


@pytest.fixture
def port(tmp_path) -> DeltaTablePort:
    return DeltaTablePort(tmp_path / "table", FakeClock())


def test_no_folder_and_an_empty_one_are_no_table_yet(port):
    assert port.open().version == -1
    port.folder.mkdir()
    assert port.open().version == -1
    (port.folder / "_delta_log").mkdir()
    assert port.open().version == -1
    assert not port.has_txn(port.open(), "x")
    assert port.author(port.open(), "x") is None


def test_a_file_in_the_place_of_the_folder_is_no_table(port):
    port.folder.write_text("x")
    with pytest.raises(NotATable):
        port.open()


def test_a_created_table_is_one_that_fabric_reads_and_keeps_what_the_landing_rests_on(port):
    port.create(FIELDS)
    snapshot = port.open()
    assert (snapshot.version, snapshot.fields) == (0, FIELDS)
    assert snapshot.handle.protocol().min_reader_version == 1
    assert snapshot.handle.protocol().min_writer_version == 2
    found = snapshot.handle.metadata().configuration
    assert found["delta.setTransactionRetentionDuration"] == "interval 400 days"
    assert found["delta.logRetentionDuration"] == "interval 30 days"


def test_creating_twice_and_adding_a_column_twice_is_harmless(port):
    port.create(FIELDS)
    port.create((Field("other", "long"),))
    first = port.open()
    assert first.fields == FIELDS
    port.add_columns(first, [Field("new", "string")])
    with pytest.raises(Conflict):
        port.add_columns(first, [Field("new", "string")])
    assert [field.name for field in port.open().fields] == ["id", "t", "d", "new"]


def test_a_commit_carries_the_transaction_and_who_made_it(port):
    port.create(FIELDS)
    port.commit(port.open(), Change(0, marks="{}"), NOTE)
    snapshot = port.open()
    assert snapshot.version == 1
    author = port.author(snapshot, "fdagent/key")
    assert (author.attempt_id, author.agent, author.attempt, author.version) == ("attempt", "agent", 2, 1)
    assert next(snapshot.infos())["marks"] == "{}"


def test_the_author_is_found_behind_many_commits(port):
    port.create(FIELDS)
    port.commit(port.open(), Change(0), NOTE)
    for n in range(30):
        port.commit(port.open(), Change(n + 1), Note(f"other-{n}", "x", "", "", "", 1, ""))
    assert port.author(port.open(), "fdagent/key").version == 1


def test_a_transaction_is_never_born_expired_whatever_the_clock_says(port):
    port._clock.now = 0.0
    port.create(FIELDS)
    port.commit(port.open(), Change(0), NOTE)
    assert port.has_txn(port.open(), "fdagent/key")


def test_a_data_file_that_is_not_there_is_never_committed(port):
    port.create(FIELDS)
    with pytest.raises(Unknown):
        port.commit(port.open(), Change(0, adds=(NewFile("nowhere.parquet", 1, 1, "{}"),)), NOTE)
    assert port.open().version == 0


def test_data_files_and_log_are_on_disk_when_a_commit_returns(port, monkeypatch):
    port.create(FIELDS)
    (port.folder / "a.parquet").write_bytes(b"x")
    synced: list[str] = []
    real = DeltaTablePort._sync
    monkeypatch.setattr(
        DeltaTablePort,
        "_sync",
        staticmethod(
            lambda files, *folders: (synced.extend(path.name for path in [*files, *folders]), real(files, *folders))[1]
        ),
    )
    port.commit(port.open(), Change(0, adds=(NewFile("a.parquet", 1, 1, '{"numRecords": 1}'),)), NOTE)
    assert synced == ["a.parquet", "table", f"{1:020d}.json", "_delta_log"]


class Failing:
    """A handle whose commit fails, after it landed or before."""

    def __init__(self, handle: DeltaTable, err: Exception, *, lands: bool) -> None:
        self._handle, self._err, self._lands = handle, err, lands

    def __getattr__(self, name: str):
        return getattr(self._handle, name)

    def create_write_transaction(self, *args, **values) -> None:
        if self._lands:
            self._handle.create_write_transaction(*args, **values)
        raise self._err


@pytest.mark.parametrize(
    ("err", "lands", "expected"),
    [
        (OSError("some words"), False, Unknown),
        (OSError("some words"), True, Unknown),
        (OSError(errno.EACCES, "Permission denied"), False, Denied),
        (OSError(errno.EACCES, "Permission denied"), True, Unknown),
        (Exception("No space left on device (os error 28)"), False, DiskFull),
        (Exception("No space left on device (os error 28)"), True, Unknown),
    ],
)
def test_a_clear_refusal_is_one_only_while_the_version_is_free(port, err, lands, expected):
    port.create(FIELDS)
    snapshot = port.open()
    failing = delta.Snapshot(snapshot.folder, Failing(snapshot.handle, err, lands=lands))
    with pytest.raises(expected) as caught:
        port.commit(failing, Change(0), NOTE)
    assert type(caught.value) is expected
    assert port.has_txn(port.open(), "fdagent/key") is lands


@pytest.mark.parametrize("sign", ["%20", "*", "?", "["])
def test_a_folder_that_two_libraries_would_read_as_two_is_refused(tmp_path, sign):
    with pytest.raises(NotATable):
        DeltaTablePort(tmp_path / f"a{sign}b", FakeClock())


@pytest.fixture
def world(tmp_path) -> World:
    made = World(tmp_path)
    made.csv_entity()
    made.entity("silver.s", '[source]\nentity = "bronze.t"\n[load]\nmode = "overwrite"\n')
    return made


def test_rows_deleted_by_a_vector_never_come_back(world):
    write_table(world.folder("bronze.t"), ["a", "b", "c", "d"], [1, 3])
    world.run("silver.s")
    assert world.rows("silver.s") == [("a",), ("c",)]


def test_a_table_with_deletion_vectors_is_never_written(world):
    write_table(world.folder("bronze.t"), ["a", "b"], [1])
    world.land("a.csv", "id\nx\n")
    assert "reader 3 and writer 7" in world.fails("bronze.t")


def test_a_partitioned_source_is_read_with_its_partition_values(world):
    import pyarrow as pa

    write_deltalake(world.folder("bronze.t"), pa.table({"p": ["x y", "z%"], "n": [1, 2]}), partition_by=["p"])
    world.run("silver.s")
    assert world.rows("silver.s", "n", "p") == [(1, "x y"), (2, "z%")]
    world.land("a.csv", "p,n\nx,1\n")
    assert "partitioned by p" in world.fails("bronze.t")


def test_old_files_lack_new_columns_and_are_read_with_null(world):
    world.land("a.csv", "id\n1\n")
    world.run("bronze.t")
    world.land("b.csv", "id,x\n2,y\n")
    world.run("bronze.t")
    world.run("silver.s")
    assert world.rows("silver.s", "id", "x") == [("1", None), ("2", "y")]


def test_a_nested_column_of_a_source_is_named_as_what_is_not_read(world):
    import pyarrow as pa

    write_deltalake(world.folder("bronze.t"), pa.table({"n": [1], "l": [[1, 2]]}))
    assert "Column `l` has the type" in world.fails("silver.s")


def test_a_source_written_without_zone_is_read_as_utc(world):
    import datetime as dt

    import pyarrow as pa

    rows = pa.table({"t": pa.array([dt.datetime(2027, 1, 15, 9)], pa.timestamp("us"))})
    write_deltalake(world.folder("bronze.t"), rows)
    world.run("silver.s")
    assert world.delta("silver.s").schema().fields[0].type.type == "timestamp"
    assert world.rows("silver.s")[0][0].isoformat() == "2027-01-15T09:00:00+00:00"


def test_a_column_that_may_not_be_null_gets_no_null(world):
    import pyarrow as pa

    schema = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("_file", pa.string()),
            pa.field("_loaded_at", pa.timestamp("us", "UTC")),
        ]
    )
    write_deltalake(world.folder("bronze.t"), schema.empty_table())
    world.land("a.csv", "id\nx\n")
    world.run("bronze.t", backfill=True)
    world.land("b.csv", "id,x\n,1\n")
    assert "may not be NULL" in world.fails("bronze.t")
    assert world.orphans("bronze.t") == set()


def test_nothing_is_left_of_what_a_run_spilled(world, tmp_path):
    world.land("a.csv", 'id\n"x"\n')
    world.run("bronze.t", spill=tmp_path / "spill")
    world.land("b.csv", "")
    world.fails("bronze.t", spill=tmp_path / "spill")
    assert list(Path(tmp_path / "spill").iterdir()) == []
