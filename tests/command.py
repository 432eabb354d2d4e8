"""Our commands run as a person runs them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def command(
    module: str, *words: object, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`python -m module words...`, from the repository's root if nothing else is said."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *map(str, words)],
        cwd=cwd,
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(module: str, *words: object) -> str:
    """The one line on stderr of a command that must be refused with exit code 2."""
    done = command(module, *words)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]
