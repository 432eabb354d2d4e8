import os
import subprocess
from pathlib import Path

import pytest

from agent.loop.environment import revision

ROOT = Path(__file__).parents[3]


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *who, *arguments]
    done = subprocess.run(command, env=kept, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "module.py").write_text("x = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("not tracked, so not of the program")
    found = revision(checkout)
    assert found is not None and len(found) == 12
    assert git(checkout, "rev-parse", "HEAD").startswith(found)


def test_changes_are_said(checkout: Path) -> None:
    before = revision(checkout)
    (checkout / "module.py").write_text("x = 2\n")
    assert revision(checkout) == f"{before}+changes"
    git(checkout, "commit", "-qam", "second")
    after = revision(checkout)
    assert after is not None and after != before and "+" not in after


def test_another_repository_named_by_the_environment_is_not_ours(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(checkout / ".git"))
    other = tmp_path / "other"
    other.mkdir()
    assert revision(other) is None


def test_outside_a_checkout_nothing_is_claimed(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert revision(tmp_path) is None
    installed = checkout / "venv" / "site-packages"
    installed.mkdir(parents=True)
    assert revision(installed) is None  # that commit is of somebody else's program
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert revision(empty) is None  # no commit yet
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision(checkout) is None  # no git
