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
CHECKS = {
    "A feedback component": """
from agent.config.feedback_spec import FeedbackSpec
from agent.prompt.measured import measured_sections
from tests.agent.made_records import kernel_share, profile, turn

spec = FeedbackSpec.parse("g+e+l")
assert str(spec) == "G+E+L" and spec.needs_profile
base = turn(0, profile=profile().model_copy(update={"kernels": (kernel_share(),) * 2}))
(section,) = measured_sections(spec, base, (), None)
assert "- launches a call: 4" in section.text
""",
    "An option of the command": r"""
import json
import subprocess
import sys

command = [sys.executable, "-m", "agent.run", "--dry-run", "--json", "--device", "cpu"]
done = subprocess.run([*command, "--hint", "Use one kernel."], capture_output=True, text=True)
plan = json.loads(done.stdout)
assert plan["config"]["hint"] == "Use one kernel."
assert plan["prompt"].endswith("\n\nUse one kernel.\n")
""",
}
"""What each change must bring about, run in a copy of the code that has it."""


def patch(text: str) -> str:
    (found,) = re.findall(r"^```diff\n(.*?)^```$", text, re.M | re.S)
    return str(found)


def apply(diff: str, folder: Path) -> list[str]:
    """Change each file of a patch whose hunks have no line numbers; the files' paths."""
    files = re.findall(r"^--- a/(\S+)\n\+\+\+ b/\1\n(.*?)(?=^--- |\Z)", diff, re.M | re.S)
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
    changed = apply(patch(CHANGES[title]), tmp_path)
    assert 1 <= len(changed) <= 2
    check = [sys.executable, "-c", CHECKS[title]]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_page_has_the_changes_that_it_promises() -> None:
    assert list(CHANGES) == list(CHECKS)
