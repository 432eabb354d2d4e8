from __future__ import annotations

import sys
from pathlib import Path

from evaluator.collect.target.program import Program
from evaluator.walls.environment import clean_environment


def test_nobody_truncates_what_was_printed(tmp_path: Path) -> None:
    """As a candidate could a file that a sanitizer writes to."""
    code = "import os; os.ftruncate(1, 0)"
    script = f"echo finding; {sys.executable} -c '{code}'; true"
    program = Program(["sh", "-c", script], tmp_path, clean_environment(tmp_path), apart=True)
    assert "finding" in program.finish(20, whole=True)
