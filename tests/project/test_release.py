"""The promotion guard, its sentences, and the commit id."""

import subprocess
import time
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
    root = repository(tmp_path / "repo")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(root) == ""
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setattr(release, "GIT_SECONDS", 0.2)
    assert git_commit(root) == ""
    (tmp_path / "git").write_text("#!/bin/sh\necho 'not a commit'\n")
    assert git_commit(root) == ""
    (tmp_path / "git").write_text("#!/bin/sh\nexit 128\n")
    assert git_commit(root) == ""
    monkeypatch.undo()
    assert git_commit(root) == head(root), "no answer is not remembered"


def repository(folder: Path) -> Path:
    """A project that is a repository of one commit."""
    root = project(folder)
    git(root, "init", "-q")
    commit(root)
    return root


def commit(folder: Path, *, file: str = "notes") -> str:
    (folder / file).write_text(f"{time.monotonic_ns()}")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "more")
    return head(folder)


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits that Git is asked up to; the tests' own commands are not counted."""
    found: list[str] = []
    real = release._newest
    monkeypatch.setattr(release, "_newest", lambda folder, up_to: (found.append(up_to), real(folder, up_to))[1])
    return found


def test_git_is_asked_once_for_each_commit(tmp_path: Path, asked: list[str]) -> None:
    root = repository(tmp_path / "repo")
    first = head(root)
    assert [git_commit(root) for _ in range(3)] == [first] * 3
    second = commit(root)
    assert [git_commit(root) for _ in range(3)] == [second] * 3
    git(root, "reset", "-q", "--hard", first)
    assert git_commit(root) == first
    assert asked == [first, second]


@pytest.mark.parametrize("how", ["packed", "detached", "worktree", "submodule", "shallow", "behind a link", "a branch"])
def test_commits_are_seen_however_the_repository_keeps_its_head(tmp_path: Path, asked: list[str], how: str) -> None:
    root = repository(tmp_path / "repo")
    if how == "packed":
        git(root, "pack-refs", "--all")
        assert not list((root / ".git/refs/heads").iterdir())
    elif how == "detached":
        git(root, "checkout", "-q", "--detach")
    elif how == "worktree":
        git(root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
        commit(root)
        root = tmp_path / "tree"
    elif how == "submodule":
        git(tmp_path, "init", "-q", "outer")
        git(tmp_path / "outer", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(root), "inner")
        root = tmp_path / "outer/inner"
    elif how == "shallow":
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", "clone")
        root = tmp_path / "clone"
    elif how == "behind a link":
        (tmp_path / "link").symlink_to(root)
        root = tmp_path / "link"
    else:
        git(root, "checkout", "-q", "-b", "feature/x.y")
    assert git_commit(root) == head(root)
    newest = commit(root)
    assert [git_commit(root), git_commit(root)] == [newest, newest]
    if how == "packed":
        git(root, "pack-refs", "--all")
        assert git_commit(root) == newest
    assert len(asked) == 2
    assert "HEAD" not in asked


def test_a_history_that_becomes_deeper_is_asked_again(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    root = repository(repo / "project")
    (root / ".git").rename(repo / ".git")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "moved")
    touched = head(repo)
    commit(repo, file="elsewhere")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "clone")
    assert git_commit(tmp_path / "clone/project") == head(repo), "nothing older is known"
    git(tmp_path / "clone", "fetch", "-q", "--unshallow")
    assert git_commit(tmp_path / "clone/project") == touched


def test_a_head_that_its_files_do_not_tell_is_asked_of_git(tmp_path: Path, asked: list[str]) -> None:
    root = repository(tmp_path / "repo")
    git(root, "symbolic-ref", "refs/heads/also", git(root, "symbolic-ref", "HEAD").strip())
    git(root, "symbolic-ref", "HEAD", "refs/heads/also")
    for _ in range(2):
        newest = commit(root)
        assert git_commit(root) == newest
    assert set(asked) == {"HEAD"}


def test_files_that_look_like_a_repository_and_are_none_give_no_commit(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    (root / ".git").write_bytes(b"gitdir: \xff\xfe")
    assert git_commit(root) == ""
    (root / ".git").unlink()
    (root / ".git").mkdir()
    assert git_commit(root) == ""
    (root / "HEAD").write_text("ref: refs/heads/main")
    assert git_commit(root) == ""
