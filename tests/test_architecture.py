from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from agent.loop.graph import draw

ROOT = Path(__file__).parents[1]
PATH = re.compile(
    r"`((?:problems|evaluator|tools|agent|experiments|notebooks|tests|docs)/[\w./]+\.\w+)`"
)


def test_the_drawn_state_machine_is_the_real_one():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    drawn = re.search(r"```mermaid\n(.*?)```", page, re.DOTALL)
    assert drawn
    assert drawn[1].strip() == draw().strip()


def test_every_file_that_the_pages_name_exists():
    for page in [ROOT / "ARCHITECTURE.md", ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for name in PATH.findall(page.read_text()):
            assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config):
    passed_over = pytestconfig.getini("norecursedirs")
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")}
    missed = [
        str(folder)
        for folder in folders
        if any(fnmatch(part, pattern) for part in folder.parts for pattern in passed_over)
    ]
    assert not missed
