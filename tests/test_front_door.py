"""The command and the module that an installed wheel brings, in folders that would mislead them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kernel_refinery.command import COMMANDS
from tests.task import as_candidate, task

ROOT = Path(__file__).parents[1]
OURS = ("agent", "tools", "evaluator", "problems", "experiments")

pytestmark = pytest.mark.usefixtures("own_locks")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is installed, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    with zipfile.ZipFile(file) as opened:
        opened.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose own packages have the names of ours."""
    for name in OURS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    return tmp_path


def installed(
    wheel: Path, folder: Path, *words: str, code: str = ""
) -> subprocess.CompletedProcess[str]:
    """The command as its script starts it; with `code`, a Python program instead."""
    start = ["-c", code] if code else ["-P", "-m", "kernel_refinery", *words]
    return subprocess.run(
        [sys.executable, "-W", "error", *start],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(wheel), "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_wheel_holds_what_a_user_runs(wheel: Path):
    assert {path.name for path in wheel.iterdir() if path.suffix != ".dist-info"} == {
        "kernel_refinery"
    }
    packages = wheel / "kernel_refinery" / "packages"
    assert {path.name for path in packages.iterdir()} == set(OURS)
    assert not {"bench", "results", "recordings"} & {
        path.name for path in (packages / "experiments").iterdir()
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_answers_from_a_folder_with_packages_of_our_names(
    name: str, wheel: Path, hostile: Path
):
    done = installed(wheel, hostile, name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: kernel-refinery {name}" in done.stdout


def test_a_kernel_is_judged_there(wheel: Path, hostile: Path):
    source = task("return x + 1.0", x="torch.randn(64, 64)")
    (hostile / "task.py").write_text(source)
    (hostile / "kernel.py").write_text(as_candidate(source))
    judged = "check kernel.py --problem task.py --device cpu --timing-seconds 0.1 --json"
    done = installed(wheel, hostile, *judged.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["status"] == "correct"


def test_the_module_has_the_public_functions(wheel: Path, tmp_path: Path):
    code = (
        "import kernel_refinery as k, sys;"
        "print(*[getattr(k, name).__module__ for name in k.__all__], sys.modules['agent'].__file__)"
    )
    done = installed(wheel, tmp_path, code=code)
    assert (done.returncode, done.stderr) == (0, "")
    *modules, agent = done.stdout.split()
    assert {module.partition(".")[0] for module in modules} <= set(OURS)
    assert Path(agent).is_relative_to(wheel)


def test_a_package_of_our_name_that_was_imported_before_is_named(wheel: Path, tmp_path: Path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").touch()
    done = installed(wheel, tmp_path, code="import tools, kernel_refinery as k; k.optimize")
    assert "ImportError: this process has imported another package named 'tools'" in done.stderr


@pytest.mark.parametrize(
    ("word", "hint"),
    [("chek", "did you mean check?"), ("xyz", "kernel-refinery --help lists the commands")],
)
def test_an_unknown_command_is_one_line(word: str, hint: str, wheel: Path, tmp_path: Path):
    done = installed(wheel, tmp_path, word)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: no command {word!r}: {hint}\n"
