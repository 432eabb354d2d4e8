"""The changes that `docs/extending.md` describes: each fits the code as it is, and works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
CHANGES = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
PACKAGES = ("problems", "evaluator", "tools", "agent", "tests")


def block(text: str, language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    return str(found)


def apply(patch: str, folder: Path) -> list[str]:
    """Change each file of a patch whose hunks have no line numbers; the files' paths."""
    files = re.findall(r"^--- a/(\S+)\n\+\+\+ b/\1\n(.*?)(?=^--- |\Z)", patch, re.M | re.S)
    for path, hunks in files:
        source = (folder / path).read_text()
        for hunk in hunks.split("@@\n")[1:]:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] or line for line in lines if line[0] != "+")
            after = "".join(line[1:] or line for line in lines if line[0] != "-")
            assert source.count(before) == 1, f"{path} has no longer:\n{before}"
            source = source.replace(before, after)
        (folder / path).write_text(source)
    return [path for path, _ in files]


@pytest.mark.parametrize("title", CHANGES)
def test_a_change_takes_two_files_at_most_and_works(title: str, tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    changed = apply(block(CHANGES[title], "diff"), tmp_path)
    assert 1 <= len(changed) <= 2
    check = [sys.executable, "-c", block(CHANGES[title], "python")]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_page_has_the_changes_that_it_promises() -> None:
    assert len(CHANGES) == 4
