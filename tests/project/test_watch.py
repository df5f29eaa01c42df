"""The project folder as a running agent sees it."""

import pytest
from fakes import FakeClock

from fdagent.project import watch
from fdagent.project.load import load_project
from fdagent.project.scaffold import write_scaffold
from fdagent.project.watch import SECONDS, SOON_SECONDS, ProjectWatch


@pytest.fixture
def folder(tmp_path):
    write_scaffold(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def watcher(folder):
    return ProjectWatch(folder, FakeClock())


def change(folder):
    table = folder / "entities/bronze/orders.toml"
    table.write_text(table.read_text().replace("Orders as delivered", "Orders"))
    return load_project(folder).metadata_version


def test_a_version_that_is_expected_is_seen_soon_and_any_other_change_within_a_minute(folder, watcher):
    before = watcher.version()
    after = change(folder)
    assert watcher.version() == before
    watcher.clock.now += SOON_SECONDS
    assert watcher.project().metadata_version == before
    assert watcher.project(after).metadata_version == after


def test_a_change_that_nobody_expects_is_seen_within_its_span(folder, watcher):
    watcher.version()
    after = change(folder)
    watcher.clock.now += SECONDS
    assert watcher.version() == after


def test_a_version_that_does_not_come_is_looked_for_no_oftener_than_that(folder, watcher, monkeypatch):
    reads = []
    monkeypatch.setattr(watch, "load_project", lambda root: reads.append(root) or load_project(root))
    for _ in range(100):
        watcher.project("never")
        watcher.clock.now += SOON_SECONDS / 10
    assert len(reads) <= 11


def test_while_it_can_not_be_read_nothing_is_known(folder, watcher):
    version = watcher.version()
    (folder / "layers.toml").rename(folder / "layers.off")
    watcher.clock.now += SECONDS
    assert watcher.version() is None
    (folder / "layers.off").rename(folder / "layers.toml")
    watcher.clock.now += SOON_SECONDS
    assert watcher.project(version).metadata_version == version
