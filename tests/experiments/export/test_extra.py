import re
import subprocess
import sys

import pytest

from tests.command import ROOT
from tests.experiments.export.exports import REFINED

EXPORT = "experiments.export.__main__"


@pytest.mark.parametrize(
    ("program", "words", "module", "said"),
    [
        (EXPORT, ("parquet", REFINED, "-o", "x"), "pyarrow", "export parquet needs pyarrow"),
        (EXPORT, ("inspect", REFINED, "-o", "x"), "inspect_ai", "export inspect needs inspect_ai"),
        (EXPORT, ("otlp", REFINED), "opentelemetry", "export otlp needs opentelemetry"),
        (EXPORT, ("wandb", REFINED), "wandb", "export wandb needs wandb"),
        ("tools.serve.__main__", (), "aiohttp", "kernel-refinery serve needs aiohttp"),
        ("experiments.report", (REFINED, "-o", "x"), "plotly", "the page's charts need"),
        (
            "experiments.report",
            (REFINED, "--pdf-figures", "x"),
            "matplotlib",
            "--pdf-figures needs",
        ),
    ],
)
def test_a_missing_package_is_one_line_with_the_remedy(
    program: str, words: tuple[object, ...], module: str, said: str
):
    """The finder of paths is asked for all packages but this one."""
    code = (
        "import sys; from importlib.machinery import PathFinder\n"
        "class Without(PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        f"        if name != {module!r}:\n"
        "            return PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path[sys.meta_path.index(PathFinder)] = Without\n"
        f"import {program} as program\n"
        "from evaluator.command.command_line import serve\n"
        "command = getattr(program, 'app', None) or program.command\n"
        f"sys.exit(serve(command, 'x', {[str(word) for word in words]!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    remedy = rf"error: {said}.*: pip install (\S+-)?{module.replace('_', '-')}.*\n"
    assert re.fullmatch(remedy, done.stderr)
