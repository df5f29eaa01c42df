"""Three records prove a store's conditions; a store that keeps one less is found out, and nothing stays behind."""

import pytest
from fakes import FakeClock, FakeIds

from fdagent.errors import Conflict, Denied, StoreError, Unavailable, Unknown
from fdagent.ports import Absent, Blob, Entry, Match
from fdagent.probe.findings import Level
from fdagent.probe.store import PREFIX, STRAY_SECONDS, probe
from fdagent.stores.local import LocalStore
from fdagent.stores.memory import MemoryStore
from fdagent.system import SystemClock, SystemIds


class Store(MemoryStore):
    """A store that keeps everything; each test takes one thing away."""

    def __init__(self, clock=None):
        super().__init__(clock or FakeClock())

    def etag(self, key):
        blob = self.read(key)
        return None if blob is None else blob.etag


def levels(found):
    return {finding.what: finding.level for finding in found}


def wrong(store):
    """What is found out about a store."""
    return {finding.what for finding in probe(store, FakeIds()) if finding.level is not Level.OK}


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_store_that_keeps_its_conditions_passes_and_is_left_as_it_was(kind, tmp_path):
    store = Store() if kind == "memory" else LocalStore(tmp_path, clock=SystemClock(), ids=SystemIds())
    store.write("release.json", b"{}", Absent())
    found = probe(store, SystemIds())
    assert levels(found) == dict.fromkeys(("create", "replace", "delete", "listing", "clocks"), Level.OK)
    assert [entry.key for entry in store.list("")] == ["release.json"]


def test_two_probes_at_once_do_not_meet(tmp_path):
    store = LocalStore(tmp_path, clock=SystemClock(), ids=SystemIds())

    class Within(LocalStore):
        """A second probe runs in the middle of the first."""

        inner = None

        def delete(self, key, condition):
            if self.inner is None:
                Within.inner = []
                Within.inner = probe(store, SystemIds())
            super().delete(key, condition)

    outer = probe(Within(tmp_path, clock=SystemClock(), ids=SystemIds()), SystemIds())
    assert set(levels(outer).values()) == set(levels(Within.inner).values()) == {Level.OK}


class CreatesTwice(Store):
    def write(self, key, body, condition):
        etag = self.etag(key)
        return super().write(key, body, Match(etag) if isinstance(condition, Absent) and etag else condition)


class CreatesNever(Store):
    def write(self, key, body, condition):
        if isinstance(condition, Absent):
            raise Conflict("already there")
        return super().write(key, body, condition)


class SaysItRefusedTheSecondCreate(Store):
    """The answer is right, the record is not."""

    def write(self, key, body, condition):
        etag = self.etag(key)
        if isinstance(condition, Absent) and etag:
            super().write(key, body, Match(etag))
            raise Conflict("already there")
        return super().write(key, body, condition)


class ReplacesAnyVersion(Store):
    def write(self, key, body, condition):
        return super().write(key, body, Match(self.etag(key)) if isinstance(condition, Match) else condition)


class ReplacesNothing(Store):
    def write(self, key, body, condition):
        return condition.etag if isinstance(condition, Match) else super().write(key, body, condition)


class DeletesAnyVersion(Store):
    def delete(self, key, condition):
        super().delete(key, Match(self.etag(key)))


class DeletesNothing(Store):
    def delete(self, key, condition):
        if self.etag(key) != condition.etag:
            raise Conflict("another version")


class AcceptsEveryDelete(Store):
    """A stale delete is answered as done, and isn't."""

    def delete(self, key, condition):
        if self.etag(key) == condition.etag:
            super().delete(key, condition)


class ListsLate(Store):
    def list(self, prefix):
        return tuple(Entry(e.key, "m0", e.age, e.size) for e in super().list(prefix))


class ListsLess(Store):
    def list(self, prefix):
        return super().list(prefix)[1:]


class StampsWrong(Store):
    seconds: float | None = 3600.0

    def read(self, key):
        blob = super().read(key)
        return None if blob is None else Blob(blob.body, blob.etag, self.seconds)


class StampsAbsurdly(StampsWrong):
    seconds = None


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (CreatesTwice, {"create"}),
        (SaysItRefusedTheSecondCreate, {"create"}),
        (CreatesNever, {"create", "replace", "delete", "listing"}),
        (ReplacesAnyVersion, {"replace"}),
        (ReplacesNothing, {"replace", "delete"}),
        (DeletesAnyVersion, {"delete"}),
        (AcceptsEveryDelete, {"delete"}),
        (ListsLate, {"listing"}),
        (ListsLess, {"listing"}),
        (StampsWrong, {"clocks"}),
        (StampsAbsurdly, {"clocks"}),
    ],
)
def test_a_store_that_keeps_less_is_found_out(kind, found):
    store = kind()
    assert found <= wrong(store)
    assert wrong(kind()) - found <= {"clocks", "listing"}
    assert not [entry for entry in MemoryStore.list(store, "") if entry.key.startswith(PREFIX)]


def test_what_is_wrong_says_not_to_run_there():
    [finding] = [one for one in probe(CreatesTwice(), FakeIds()) if one.what == "create"]
    assert finding.level is Level.ERROR
    assert "Don't run agents on this store" in finding.fix


def test_what_can_not_be_removed_is_named():
    store = DeletesNothing()
    found = probe(store, FakeIds())
    assert levels(found)["delete"] is Level.ERROR
    assert levels(found)["cleaning up"] is Level.WARNING
    assert all(entry.key in found[-1].sentence for entry in store.list(PREFIX))


@pytest.mark.parametrize("error", [Unavailable("The store is away.", fix="Wait."), Denied("Not allowed.", fix="Ask.")])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_store_that_can_not_be_used_is_an_error_with_its_own_words_and_cleans_up_later(error, after):
    class Failing(Store):
        calls = 0

        def write(self, key, body, condition):
            self.calls += 1
            if self.calls > after:
                raise error
            return super().write(key, body, condition)

    store = Failing()
    last = probe(store, FakeIds())[-1]
    assert (last.level, last.what, last.sentence, last.fix) == (Level.ERROR, "store", error.what, error.fix)
    assert not store.list(PREFIX)


@pytest.mark.parametrize("happens", [True, False])
def test_lost_answers_are_settled_by_reading_back_and_prove_nothing_otherwise(happens):
    class Lossy(Store):
        """Every third change brings no answer."""

        calls = 0

        def lost(self):
            self.calls += 1
            return self.calls % 3 == 0

        def write(self, key, body, condition):
            lost = self.lost()
            if happens or not lost:
                etag = super().write(key, body, condition)
            if lost:
                raise Unknown("no answer")
            return etag

        def delete(self, key, condition):
            lost = self.lost()
            if happens or not lost:
                super().delete(key, condition)
            if lost:
                raise Unknown("no answer")

    store = Lossy()
    found = levels(probe(store, FakeIds()))
    if happens:
        assert Level.ERROR not in found.values()
    else:
        assert found["store"] is Level.ERROR
    assert not store.list(PREFIX)


def test_what_a_killed_probe_left_behind_is_removed_an_hour_later_and_not_before():
    clock = FakeClock()
    store = Store(clock)
    store.write(f"{PREFIX}dead-1.json", b"{}", Absent())
    probe(store, FakeIds())
    assert [entry.key for entry in store.list("")] == [f"{PREFIX}dead-1.json"]
    clock.now += STRAY_SECONDS + 1
    store.write("release.json", b"{}", Absent())
    probe(store, FakeIds())
    assert [entry.key for entry in store.list("")] == ["release.json"]


def test_a_store_that_fails_while_cleaning_up_raises_nothing():
    class Gone(Store):
        def list(self, prefix):
            raise Unavailable("away")

        def delete(self, key, condition):
            raise Unavailable("away")

    found = probe(Gone(), FakeIds())
    assert isinstance(Unavailable("x"), StoreError)
    assert levels(found)["cleaning up"] is Level.WARNING
