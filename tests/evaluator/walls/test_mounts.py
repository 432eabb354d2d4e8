from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CODE = """
import os, sys
from pathlib import Path
from evaluator.walls import mounts
os.umask(0o077)
mounts.leave_shared_mounts()
mounts.own_temporary_folders(Path(sys.argv[1]), outlives=bool(int(sys.argv[2])))
print(oct(Path(sys.argv[1]).parent.stat().st_mode & 0o777), os.umask(0) == 0o077)
"""


def printed_by(code: str, *arguments: object) -> str:
    """What the code prints in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to mount")
@pytest.mark.parametrize("outlives", [False, True])
def test_another_user_comes_through_to_the_scratch_folder_whatever_our_umask(
    outlives: bool,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name, "between", "scratch")
        scratch.mkdir(parents=True)
        said = printed_by(CODE, scratch, int(outlives))
    assert said.split() == ["0o755", "True"]


HIDING = """
import sys
from pathlib import Path
from evaluator.walls import mounts
hidden, seen = map(Path, sys.argv[1:])
mounts.leave_shared_mounts()
mounts.hide([hidden])
print(repr(hidden.read_text()), seen.read_text())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to mount")
def test_a_hidden_file_looks_empty_to_that_process_alone(tmp_path: Path) -> None:
    hidden, seen = tmp_path / "nvidia1", tmp_path / "nvidia0"
    hidden.write_text("theirs")
    seen.write_text("ours")
    assert printed_by(HIDING, hidden, seen).split() == ["''", "ours"]
    assert hidden.read_text() == "theirs"
