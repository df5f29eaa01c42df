"""The landing loop over a table in memory: every answer a store may give, and every moment to die."""

import contextlib
import itertools

import pytest
from fakes import FakeClock, FakeIds
from memory_table import MemoryTable, Pin, Rows

from fdagent.engine.landing import AlreadyDone, Landed, Prepare, Unchanged, land
from fdagent.errors import CheckFailed, StoodDown, TableBusy, Unknown
from fdagent.ports import Note


class Killed(BaseException):
    """The process dies here."""


class Writer:
    """One attempt of one run key that adds the row "effect"."""

    def __init__(self, table: MemoryTable, *, append_only: bool = True, name: str = "a", run_key: str = "run") -> None:
        self.table, self.append_only, self.name, self.run_key = table, append_only, name, run_key
        self.ids = FakeIds(name)
        self.computed = 0
        self.mine = True

    def compute(self, snapshot: Pin, attempt_id: str) -> Rows:
        self.computed += 1
        self.table.files.add(attempt_id)
        return Rows(("effect",), (attempt_id,), self.append_only)

    def still_mine(self) -> None:
        if not self.mine:
            raise StoodDown("taken over")

    def note(self, attempt_id: str) -> Note:
        return Note(f"fdagent/{self.run_key}", attempt_id, self.run_key, self.name, "job", 1, "run")

    def go(self, **changed: object):
        options = {
            "app_id": f"fdagent/{self.run_key}",
            "note": self.note,
            "compute": self.compute,
            "keeps": lambda _snapshot, change: change,
            "still_mine": self.still_mine,
            "clock": FakeClock(),
            "ids": self.ids,
        }
        return land(self.table, **(options | changed))


def effects(table: MemoryTable) -> int:
    return table.versions[-1].rows.count("effect")


def test_an_undisturbed_change_lands_in_one_commit():
    table = MemoryTable()
    answer = Writer(table).go()
    assert isinstance(answer, Landed)
    assert (answer.version, answer.attempt_id, table.commits, effects(table)) == (1, "a1", 1, 1)


def test_only_an_answer_that_was_not_a_good_one_is_followed_by_a_pause():
    clock = FakeClock()
    Writer(MemoryTable()).go(clock=clock)
    assert clock.slept == []
    Writer(MemoryTable(plan=["lost"])).go(clock=clock)
    assert len(clock.slept) == 1


def test_a_second_run_of_the_same_run_key_writes_nothing_and_names_the_author():
    table = MemoryTable()
    Writer(table).go()
    answer = Writer(table, name="b").go()
    assert isinstance(answer, AlreadyDone)
    assert answer.author is not None
    assert answer.author.agent == "a"
    assert (table.commits, effects(table)) == (1, 1)


@pytest.mark.parametrize("append_only", [True, False])
def test_a_commit_whose_answer_is_lost_is_recognised(append_only):
    table = MemoryTable(plan=["lost"])
    assert isinstance(Writer(table, append_only=append_only).go(), Landed)
    assert (table.commits, effects(table), table.readable()) == (1, 1, True)


@pytest.mark.parametrize("append_only", [True, False])
def test_while_its_version_is_free_the_same_change_is_sent_again(append_only):
    table = MemoryTable(plan=["late", "ok"])
    writer = Writer(table, append_only=append_only)
    assert isinstance(writer.go(), Landed)
    assert (writer.computed, table.commits) == (1, 2)
    assert table.release() is False
    assert (effects(table), table.readable()) == (1, True)


def test_files_are_kept_while_the_commit_may_still_land():
    table = MemoryTable(plan=["late"] * 60)
    writer = Writer(table)
    with pytest.raises(Unknown, match="does not show it yet"):
        writer.go()
    assert table.release() is True
    assert (effects(table), table.readable()) == (1, True)
    assert isinstance(Writer(table, name="b").go(), AlreadyDone)


def test_a_commit_that_lands_late_behind_thirty_others_is_found():
    table = MemoryTable(plan=["late"])

    def later() -> None:
        table.release()
        for _ in range(30):
            table.foreign()

    writer = Writer(table, append_only=False)
    clock = FakeClock()
    clock.sleep = lambda _seconds: later() if table.held else None  # type: ignore[method-assign]
    assert isinstance(writer.go(clock=clock), Landed)
    assert (effects(table), table.readable()) == (1, True)


def test_after_a_checkpoint_and_cleaned_logs_the_transaction_still_tells():
    table = MemoryTable()
    Writer(table).go()
    for _ in range(30):
        table.foreign()
    table.clean()
    answer = Writer(table, name="b").go()
    assert answer == AlreadyDone(None)
    assert effects(table) == 1


def test_own_files_stay_when_the_log_no_longer_says_whose_commit_it_was():
    table = MemoryTable(plan=["lost"])
    writer = Writer(table)
    original = table.commit

    def commit_then_clean(*args: object) -> None:
        try:
            original(*args)
        finally:
            table.clean()

    table.commit = commit_then_clean  # type: ignore[method-assign]
    assert writer.go() == AlreadyDone(None)
    assert table.readable()


def test_a_merge_that_lost_the_race_is_computed_again_and_its_files_are_removed():
    table = MemoryTable(before_commit=None)
    table.before_commit = table.foreign
    writer = Writer(table, append_only=False)
    assert isinstance(writer.go(), Landed)
    assert writer.computed == 2
    assert "a1" not in table.files
    assert "a2" in table.files


def test_a_merge_gives_up_as_table_busy_after_its_recomputes():
    table = MemoryTable()
    writer = Writer(table, append_only=False)

    def still_mine() -> None:
        table.foreign()

    with pytest.raises(TableBusy):
        writer.go(still_mine=still_mine)
    assert writer.computed == 4
    assert effects(table) == 0
    assert not {name for name in table.files if name.startswith("a")}, (
        "nothing of ours may still land, so nothing stays"
    )


def test_a_busy_foreign_writer_cannot_starve_an_append():
    table = MemoryTable()
    writer = Writer(table)
    rounds = itertools.count()

    def still_mine() -> None:
        if next(rounds) < 30:
            table.foreign()

    assert isinstance(writer.go(still_mine=still_mine), Landed)
    assert writer.computed == 1


def test_an_append_whose_marks_moved_is_computed_again():
    table = MemoryTable()
    table.before_commit = table.foreign
    writer = Writer(table)
    assert isinstance(writer.go(keeps=lambda _snapshot, _change: None), Landed)
    assert writer.computed == 2
    assert "a1" not in table.files


def test_nothing_moved_means_no_commit():
    table = MemoryTable()
    assert Writer(table).go(compute=lambda _snapshot, _attempt: None) == Unchanged()
    assert table.commits == 0


def test_a_preparation_is_applied_before_the_change_and_repeated_until_it_is_there():
    table = MemoryTable()
    writer = Writer(table)
    prepared: list[int] = []

    def apply() -> None:
        prepared.append(1)
        if len(prepared) == 1:
            raise Unknown("no answer")

    def compute(snapshot: Pin, attempt_id: str):
        return Prepare("create", apply) if len(prepared) < 2 else writer.compute(snapshot, attempt_id)

    assert isinstance(writer.go(compute=compute), Landed)
    assert (len(prepared), table.commits) == (2, 1)


def test_one_that_is_no_longer_ours_commits_nothing():
    table = MemoryTable()
    writer = Writer(table)
    writer.mine = False
    with pytest.raises(StoodDown):
        writer.go()
    assert (table.commits, effects(table)) == (0, 0)


def test_what_compute_raises_passes_through():
    def compute(_snapshot: Pin, _attempt: str) -> None:
        raise CheckFailed("a check failed")

    with pytest.raises(CheckFailed):
        Writer(MemoryTable()).go(compute=compute)


STEPS = ["open", "has_txn", "author", "compute", "still_mine", "commit", "after commit", "discard"]


@pytest.mark.parametrize("append_only", [True, False])
@pytest.mark.parametrize("answer", ["ok", "lost", "never", "late", "refused"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("nth", [1, 2])
def test_killed_at_any_step_and_run_again_the_effect_is_there_once(step, nth, answer, append_only):
    table = MemoryTable(plan=[answer])
    victim = Writer(table, append_only=append_only, name="a")
    dying = _Dying(table, step, nth)
    victim.table = dying
    with contextlib.suppress(Killed, Unknown):
        victim.go(compute=dying.wrap("compute", victim.compute), still_mine=dying.wrap("still_mine", victim.still_mine))
    Writer(table, append_only=append_only, name="b").go()
    while table.held:
        table.release()
    Writer(table, append_only=append_only, name="c").go()
    assert effects(table) == 1
    assert table.readable()


class _Dying:
    """The table, until the nth call of one step kills the process before (or after) it happens."""

    def __init__(self, table: MemoryTable, step: str, nth: int) -> None:
        self.table, self.step, self.left = table, step, nth

    def __getattr__(self, name: str):
        value = getattr(self.table, name)
        return self.wrap(name, value) if callable(value) else value

    def wrap(self, name: str, call):
        def run(*args: object):
            self._maybe_die(name)
            try:
                return call(*args)
            finally:
                self._maybe_die(f"after {name}")

        return run

    def _maybe_die(self, point: str) -> None:
        if point == self.step:
            self.left -= 1
            if self.left == 0:
                raise Killed
