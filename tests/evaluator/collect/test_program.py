from __future__ import annotations

import sys
from pathlib import Path

from evaluator.collect.target.program import Program, last_line
from evaluator.walls.environment import clean_environment


def test_nobody_truncates_what_was_printed(tmp_path: Path) -> None:
    """As a candidate could a file that a sanitizer writes to."""
    code = "import os; os.ftruncate(1, 0)"
    script = f"echo finding; {sys.executable} -c '{code}'; true"
    program = Program(["sh", "-c", script], tmp_path, clean_environment(tmp_path), apart=True)
    assert "finding" in program.finish(20, whole=True)


def test_the_reason_is_not_a_hint_that_follows_it() -> None:
    said = "RuntimeError: CUDA error: an illegal memory access was encountered"
    hints = "For debugging consider passing X=1\nCompile with `TORCH_USE_CUDA_DSA` to enable it.\n"
    assert last_line(f"Traceback ...\n{said}\n{hints}") == said
