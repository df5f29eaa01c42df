"""Real Delta tables under answers that get lost, commits that land late, logs that are cleaned, and killed processes."""

import contextlib
import copy
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from engine_kit import World, rows_of

from fdagent.engine import quarantine
from fdagent.engine.change import Change
from fdagent.engine.compute import Computing
from fdagent.engine.tables.delta import DeltaTablePort, Snapshot
from fdagent.errors import Conflict, StoodDown, Unknown
from fdagent.ports import Note
from models.run import RunStatus

MODES = {
    "append": 'mode = "append"',
    "scd1": 'mode = "scd1"\nkey = ["id"]\norder_by = "w"',
}


class Killed(BaseException):
    """The process dies here."""


@dataclass
class Silver:
    """A source of which the entity under test reads what is new."""

    world: World
    mode: str

    def __post_init__(self) -> None:
        self.world.csv_entity(more='[columns]\nw = { type = "integer" }')
        self.deliver("a,1", "bad,1")
        self.world.entity(
            "silver.s",
            f'[source]\nentity = "bronze.t"\nwatermark = "w"\n[load]\n{MODES[self.mode]}\n'
            '[[checks]]\naccepted = { id = ["a", "b", "c", "foreign"] }\nseverity = "quarantine"\n',
        )
        self.world.run("silver.s")
        self.deliver("b,2", "worse,2")

    def deliver(self, *rows: str) -> None:
        self.world.land(f"{self.world.modified}.csv", "\n".join(["id,w", *rows, ""]))
        self.world.run("bronze.t")

    @property
    def folder(self) -> Path:
        return self.world.folder("silver.s")

    def foreign(self, times: int = 1) -> None:
        """Another writer appends."""
        for _ in range(times):
            row = self.world.delta("silver.s").to_pyarrow_table().slice(0, 1)
            row = row.set_column(0, "id", [["foreign"]])
            write_deltalake(self.folder, row, mode="append")

    def clean_log(self) -> None:
        """A checkpoint, and every older log file removed."""
        table = self.world.delta("silver.s")
        table.create_checkpoint()
        for version in range(table.version()):
            (self.folder / f"_delta_log/{version:020d}.json").unlink(missing_ok=True)

    def effects(self) -> list[str]:
        """The rows but the foreign ones."""
        return [name for (name,) in self.world.rows("silver.s", "id") if name != "foreign"]

    def refused(self) -> list[tuple]:
        """Quarantined rows as a reader of landed runs sees them."""
        entity = self.world.project.entities["silver.s"]
        found = quarantine.read(self.world.places, entity, last=100, clock=self.world.clock)
        return sorted((row["run_key"], row["row"].split('"')[3]) for row in found)


@pytest.fixture(params=MODES)
def silver(request, tmp_path) -> Silver:
    return Silver(World(tmp_path), request.param)


@pytest.fixture
def on_commit(monkeypatch, silver):
    """Replace what the next commits of the entity's table do; each hook gets (really commit, snapshot, change, note)."""
    hooks: list[Callable] = []
    real = DeltaTablePort.commit

    def commit(port: DeltaTablePort, snapshot: Snapshot, change: Change, note: Note) -> None:
        if hooks and port.folder == silver.folder:
            hooks.pop(0)(lambda: real(port, snapshot, change, note), snapshot, change, note)
        else:
            real(port, snapshot, change, note)

    monkeypatch.setattr(DeltaTablePort, "commit", commit)
    return hooks


ALL_REFUSED = [("key", "worse"), ("run-2", "bad")]


def landed_once(silver: Silver) -> None:
    assert silver.effects() == ["a", "b"]
    assert silver.refused() == ALL_REFUSED


def test_an_answer_that_is_lost_doubles_nothing(silver, on_commit):
    def lost(commit, *_):
        commit()
        raise Unknown("no answer")

    on_commit.append(lost)
    assert silver.world.run("silver.s", "key").status is RunStatus.SUCCEEDED
    landed_once(silver)
    assert silver.world.run("silver.s", "key").status is RunStatus.ALREADY_DONE
    landed_once(silver)


def test_a_commit_that_never_arrives_is_sent_again(silver, on_commit):
    def never(*_):
        raise Unknown("no answer")

    on_commit += [never, never]
    assert silver.world.run("silver.s", "key").status is RunStatus.SUCCEEDED
    landed_once(silver)
    assert silver.world.orphans("silver.s") == set()


def put_of(silver: Silver, commit_in: Callable[[DeltaTablePort], None]) -> Callable[[], bool]:
    """The log file a commit would write, to be put into the real log later if its name is free then."""
    copy = silver.world.root / "copy"
    shutil.copytree(silver.folder, copy)
    port = DeltaTablePort(copy, silver.world.clock)
    version = port.open().version + 1
    commit_in(port)
    body = (copy / f"_delta_log/{version:020d}.json").read_bytes()

    def put() -> bool:
        target = silver.folder / f"_delta_log/{version:020d}.json"
        if target.exists():
            return False
        target.write_bytes(body)
        return True

    return put


def test_a_commit_that_arrives_behind_thirty_foreign_ones_is_refused_and_the_effect_is_there_once(silver, on_commit):
    late: list[Callable[[], bool]] = []

    def held_back(_commit, _snapshot, change, note):
        late.append(put_of(silver, lambda port: port.commit(port.open(), change, note)))
        silver.foreign(30)
        raise Unknown("no answer")

    on_commit.append(held_back)
    assert silver.world.run("silver.s", "key").status is RunStatus.SUCCEEDED
    assert late[0]() is False
    landed_once(silver)


def test_a_commit_that_lands_as_a_free_name_below_a_cleaned_log_counts_for_nothing(silver, on_commit):
    late: list[Callable[[], bool]] = []

    def held_back(_commit, _snapshot, change, note):
        late.append(put_of(silver, lambda port: port.commit(port.open(), change, note)))
        raise Killed

    on_commit.append(held_back)
    with pytest.raises(Killed):
        silver.world.outcome("silver.s", "key")
    silver.foreign(12)
    table = silver.world.delta("silver.s")
    # The marks' own commit is young, so it is kept; the name the late commit wants is free.
    wanted = silver.folder / f"_delta_log/{2:020d}.json"
    table.create_checkpoint()
    wanted.unlink()
    assert late[0]() is True
    assert silver.effects() == ["a"]
    assert silver.world.run("silver.s", "key").status is RunStatus.SUCCEEDED
    landed_once(silver)


def test_after_a_checkpoint_and_a_cleaned_log_a_retry_still_knows_that_it_landed(silver, on_commit):
    def die_after(commit, *_):
        commit()
        raise Killed

    on_commit.append(die_after)
    with pytest.raises(Killed):
        silver.world.outcome("silver.s", "key")
    silver.foreign(3)
    silver.clean_log()
    row = silver.world.run("silver.s", "key")
    assert (row.status, row.rows_inserted) == (RunStatus.ALREADY_DONE, 0)
    landed_once(silver)


def test_an_already_done_row_names_who_did_it(silver):
    first = silver.world.run("silver.s", "key", agent="agent-7", attempt=4)
    row = silver.world.run("silver.s", "key", agent="agent-8")
    assert (
        row.error
        == f"The run key's effect is in the table already, as version {first.version_after} by agent agent-7, attempt 4."
    )


def computes(monkeypatch) -> list[int]:
    """Counts how often a change of the table is computed to the end."""
    counted: list[int] = []
    real = Computing._changed

    def changed(self, snapshot, *rest):
        counted.append(snapshot.version)
        return real(self, snapshot, *rest)

    monkeypatch.setattr(Computing, "_changed", changed)
    return counted


def test_a_foreign_append_in_between_is_a_conflict_a_merge_computes_again_and_an_append_does_not(
    silver, on_commit, monkeypatch
):
    counted = computes(monkeypatch)

    def in_between(commit, *_):
        silver.foreign()
        commit()

    on_commit += [in_between, in_between]
    row = silver.world.run("silver.s", "key")
    assert row.status is RunStatus.SUCCEEDED
    assert len(counted) == (1 if silver.mode == "append" else 3)
    landed_once(silver)
    assert silver.world.rows("silver.s", "id").count(("foreign",)) == 2
    assert silver.world.orphans("silver.s") == set()


def test_a_merge_gives_up_after_its_recomputes_and_leaves_no_file(silver, on_commit):
    def in_between(commit, *_):
        silver.foreign()
        commit()

    on_commit += [in_between] * 10
    outcome = silver.world.outcome("silver.s", "key")
    if silver.mode == "append":
        assert outcome.row.status is RunStatus.SUCCEEDED
    else:
        assert (outcome.row.category, outcome.retryable) == ("Table busy", True)
        assert silver.effects() == ["a"]
        assert silver.refused() == [("run-2", "bad")]
    assert silver.world.orphans("silver.s") == set()


def test_a_stale_snapshot_never_commits(silver):
    port = DeltaTablePort(silver.folder, silver.world.clock)
    stale = port.open()
    silver.foreign()
    note = Note("fdagent/x", "a", "x", "", "", 1, "")
    with pytest.raises(Conflict):
        port.commit(stale, Change(stale.version), note)
    assert not port.has_txn(port.open(), "fdagent/x")


def test_two_run_keys_at_once_load_new_rows_once(silver, on_commit):
    def other_first(commit, *_):
        silver.world.run("silver.s", "other")
        commit()

    on_commit.append(other_first)
    row = silver.world.run("silver.s", "key")
    assert row.status is RunStatus.NO_CHANGE
    assert silver.effects() == ["a", "b"]
    assert silver.refused() == [("other", "worse"), ("run-2", "bad")]


def test_two_run_keys_one_after_the_other_are_two_transactions(silver):
    silver.world.run("silver.s", "one")
    silver.deliver("c,3")
    silver.world.run("silver.s", "two")
    port = DeltaTablePort(silver.folder, silver.world.clock)
    snapshot = port.open()
    assert [port.has_txn(snapshot, f"fdagent/{key}") for key in ("one", "two", "three")] == [True, True, False]
    assert silver.effects() == ["a", "b", "c"]


def test_the_same_run_key_by_two_attempts_at_once_lands_once(silver, on_commit):
    def other_first(commit, *_):
        silver.world.run("silver.s", "key")
        commit()

    on_commit.append(other_first)
    assert silver.world.run("silver.s", "key").status is RunStatus.ALREADY_DONE
    landed_once(silver)
    assert silver.world.orphans("silver.s") == set()


def test_one_who_was_taken_over_writes_nothing_further(silver):
    def not_mine() -> None:
        raise StoodDown("taken over")

    with pytest.raises(StoodDown):
        silver.world.outcome("silver.s", "key", still_mine=not_mine)
    assert silver.effects() == ["a"]
    assert silver.world.orphans("silver.s") == set()


STEPS = {
    "open": (DeltaTablePort, "open"),
    "has_txn": (DeltaTablePort, "has_txn"),
    "author": (DeltaTablePort, "author"),
    "create": (DeltaTablePort, "create"),
    "commit": (DeltaTablePort, "commit"),
    "compute": (Computing, "compute"),
    "quarantine": (quarantine.Quarantine, "write"),
    "settle": (quarantine.Quarantine, "settle"),
}


READS = {"open", "has_txn", "author"}
"""Steps after which nothing has changed: to die after one is to die before the next."""


def elsewhere(silver: Silver, root: Path) -> Silver:
    """The same state in another folder."""
    shutil.copytree(silver.world.root, root)
    there = copy.deepcopy(silver)
    there.world.root = root
    return there


def steps_of(silver: Silver, monkeypatch, *, die_at: int = -1, after: bool = False) -> list[str]:
    """Run once; the steps that were taken. With `die_at` it must die at that one."""
    taken: list[str] = []

    def watched(step: str, real: Callable) -> Callable:
        def call(self, *args, **values):
            taken.append(step)
            dies = len(taken) - 1 == die_at
            if dies and not after:
                raise Killed
            done = real(self, *args, **values)
            if dies:
                raise Killed
            return done

        return call

    dying = pytest.raises(Killed) if die_at >= 0 else contextlib.nullcontext()
    with monkeypatch.context() as patch, dying:
        for step, (cls, name) in STEPS.items():
            patch.setattr(cls, name, watched(step, getattr(cls, name)))
        silver.world.outcome("silver.s", "key")
    return taken


@pytest.mark.long
def test_killed_at_any_step_and_run_again_the_tables_are_those_of_an_undisturbed_run(
    silver, tmp_path_factory, monkeypatch
):
    folder = tmp_path_factory.mktemp("deaths")
    steps = steps_of(elsewhere(silver, folder / "undisturbed"), monkeypatch)
    assert set(steps) >= {"open", "has_txn", "commit", "compute", "quarantine", "settle"}
    deaths = [(at, False) for at in range(len(steps))]
    deaths += [(at, True) for at, step in enumerate(steps) if step not in READS]
    for at, after in deaths:
        died = elsewhere(silver, folder / f"died-{at}-{after}")
        steps_of(died, monkeypatch, die_at=at, after=after)
        again = died.world.run("silver.s", "key")
        assert again.status in {RunStatus.SUCCEEDED, RunStatus.ALREADY_DONE}, (steps[at], after)
        landed_once(died)
        kept = died.world.quarantine("silver.s", "run_key", "attempt_id", "row")
        assert len(kept) == 2, f"rows of the attempt that died at {steps[at]} are gone"


def test_quarantine_of_a_lost_attempt_is_removed_and_others_rows_stay(silver):
    folder = silver.world.places.quarantine(silver.world.project.entities["silver.s"])
    silver.world.run("silver.s", "key")
    table = rows_of(DeltaTable(str(folder)), "attempt_id")
    assert len(table) == 2
    lost = DeltaTable(str(folder)).to_pyarrow_table()
    lost = lost.set_column(lost.column_names.index("attempt_id"), "attempt_id", [["lost"] * lost.num_rows])
    # Both runs' rows in one file of one attempt that never landed, as a compaction might leave them.
    write_deltalake(folder, lost, mode="append")
    silver.world.run("silver.s", "key")
    kept = rows_of(DeltaTable(str(folder)), "run_key", "attempt_id")
    assert len(kept) == 3
    assert ("run-2", "lost") in kept
    assert ("key", "lost") not in kept


@pytest.fixture
def left_by_a_death(silver, on_commit) -> Silver:
    """A first attempt that died between the quarantine's commit and the data's; then another run took the rows."""

    def dies(*_):
        raise Killed

    on_commit.append(dies)
    with pytest.raises(Killed):
        silver.world.run("silver.s", "key")
    silver.world.run("silver.s", "other")
    assert [key for (key,) in silver.world.quarantine("silver.s", "run_key")] == ["key", "other", "run-2"]
    return silver


def test_a_run_that_finds_nothing_left_to_do_removes_the_quarantine_rows_of_its_lost_attempt(left_by_a_death):
    silver = left_by_a_death
    assert silver.world.run("silver.s", "key").status is RunStatus.NO_CHANGE
    assert [key for (key,) in silver.world.quarantine("silver.s", "run_key")] == ["other", "run-2"]
    assert silver.effects() == ["a", "b"]
    version = silver.world.delta("silver.s").version()
    assert silver.world.run("silver.s", "later").version_after == version, "nothing is left to settle"


def test_a_lost_attempt_whose_quarantine_rows_were_removed_can_not_land_any_more(tmp_path, monkeypatch):
    world = World(tmp_path)
    world.csv_entity(more='[columns]\nn = { type = "integer" }')
    world.land("a.csv", "n\n1\n")
    world.run("bronze.t")
    late = world.land("b.csv", "n\n2\nbad\n")
    held: list[Callable] = []
    real = DeltaTablePort.commit

    def held_back(port: DeltaTablePort, *arguments) -> None:
        if port.folder == world.folder("bronze.t") and not held:
            held.append(lambda: real(port, *arguments))
            raise Killed
        real(port, *arguments)

    monkeypatch.setattr(DeltaTablePort, "commit", held_back)
    with pytest.raises(Killed):
        world.run("bronze.t", "key")
    assert len(world.quarantine("bronze.t")) == 1
    late.unlink()
    assert world.run("bronze.t", "key").status is RunStatus.NO_CHANGE
    assert world.quarantine("bronze.t") == []
    with pytest.raises(Conflict):
        held[0]()
    assert world.rows("bronze.t") == [(1,)]


def test_a_run_with_nothing_to_do_leaves_the_quarantine_rows_of_other_run_keys(left_by_a_death):
    silver = left_by_a_death
    assert silver.world.run("silver.s", "third").status is RunStatus.NO_CHANGE
    assert len(silver.world.quarantine("silver.s", "run_key")) == 3, "an attempt under `key` may still land"
