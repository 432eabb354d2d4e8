"""What all our commands have in common."""

import subprocess
import sys

import pytest

from tests.command import ROOT

MODULES = (
    "advice",
    "compare",
    "compact",
    "export.__main__",
    "matrix",
    "plot",
    "readme_table",
    "report",
)


@pytest.mark.parametrize("module", MODULES)
def test_help_is_there_and_loads_nothing_heavy(module: str):
    code = (
        f"import sys; from experiments.{module} import app;"
        " from evaluator.command.command_line import serve;"
        " serve(app, 'x', ['--help']);"
        " sys.exit(bool({'numpy', 'pandas', 'matplotlib', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage:" in done.stdout


def test_a_comparison_and_a_picture_need_no_torch():
    code = (
        "import sys, experiments.comparison, experiments.plots, matplotlib.figure;"
        " sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
