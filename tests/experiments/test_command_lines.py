"""What all our commands have in common."""

import subprocess
import sys

import pytest

from tests.command import READERS, ROOT

HEAVY = ("torch", "litellm", "langgraph", "pandas", "rich", "matplotlib", "numpy", "jinja2")


@pytest.mark.parametrize("module", [*READERS, "experiments.matrix", "agent.run"])
def test_help_is_there_and_loads_nothing_heavy(module: str):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", module, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "Usage:" in done.stdout
    lines = done.stderr.splitlines()
    assert all(line.startswith("import time:") for line in lines)
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert "typer" in imported
    assert not imported & {*HEAVY}


def test_a_comparison_and_a_picture_need_no_torch():
    code = (
        "import sys, experiments.comparison, experiments.plots, matplotlib.figure;"
        " sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
