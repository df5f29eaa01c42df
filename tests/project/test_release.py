"""The promotion guard, its sentences, and the commit id."""

import subprocess
from pathlib import Path

import pytest
from project_kit import project

from fdagent.errors import Refused
from fdagent.project import release
from fdagent.project.load import load_project
from fdagent.project.release import changes, check_promoted, git_commit

OLD = "3f2a" * 16


def git(folder: Path, *words: str) -> str:
    options = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", "-C", str(folder), *options, *words], check=True, capture_output=True, text=True
    ).stdout


def test_the_promoted_version_runs(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    check_promoted(loaded, loaded.environments["dev"], loaded.metadata_version)
    assert changes(loaded, loaded.environments["dev"], loaded.metadata_version) == []


def test_another_version_is_refused_naming_both(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    with pytest.raises(Refused) as caught:
        check_promoted(loaded, loaded.environments["dev"], OLD)
    assert caught.value.what == (
        f"dev has metadata 3f2a3f2a3f2a…, this project is {loaded.metadata_version[:12]}…: "
        "check out the promoted version, or promote."
    )
    assert caught.value.exit_code == 4


def test_an_environment_nothing_was_promoted_to_is_refused(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    with pytest.raises(Refused, match=r"Nothing was promoted to dev yet\. .*`fdagent promote dev`"):
        check_promoted(loaded, loaded.environments["dev"], "")


def test_a_promotion_says_what_it_changes(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    new = loaded.metadata_version[:12]
    assert changes(loaded, loaded.environments["dev"], OLD) == [
        f"dev goes from metadata 3f2a3f2a3f2a to metadata {new}.",
        "The project has 3 entities in 3 layers.",
    ]
    assert changes(loaded, loaded.environments["dev"], "")[0] == f"dev goes from nothing to metadata {new}."


def test_the_commit_is_the_newest_that_touched_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path / "repo" / "project")
    git(tmp_path / "repo", "init", "-q")
    assert git_commit(root) == ""
    git(tmp_path / "repo", "add", ".")
    git(tmp_path / "repo", "commit", "-q", "-m", "one")
    first = git(tmp_path / "repo", "rev-parse", "HEAD").strip()
    assert git_commit(root) == first
    (tmp_path / "repo" / "other").write_text("x")
    git(tmp_path / "repo", "add", ".")
    git(tmp_path / "repo", "commit", "-q", "-m", "two")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert git_commit(root) == first


def test_a_folder_that_git_does_not_know_has_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("x")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "somebody else's")
    (tmp_path / "project").mkdir()
    assert git_commit(tmp_path / "project") == ""
    assert git_commit(tmp_path / "nowhere") == ""


def test_without_git_or_with_one_that_hangs_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(tmp_path) == ""
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setattr(release, "GIT_SECONDS", 0.2)
    assert git_commit(tmp_path) == ""
    (tmp_path / "git").write_text("#!/bin/sh\necho 'not a commit'\n")
    assert git_commit(tmp_path) == ""
