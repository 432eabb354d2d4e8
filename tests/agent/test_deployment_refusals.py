"""What can't be loaded is refused in one line."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from agent.deployment.load import load
from agent.deployment.unsafe_code import unsafe_code
from evaluator.audit_record import Life
from problems.errors import UsageError
from tests.agent.proven_kernel import NORM, NORM_IN_CPP, kernel_of, proven
from tests.agent.test_deployment import Norm
from tests.command import ROOT
from tests.task import task

NORM_IN_TORCH = kernel_of(NORM)


def refused(path: Path, *given: object, **options: object) -> str:
    with pytest.raises(UsageError) as error:
        load(path, *given, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_files_that_were_not_judged(tmp_path: Path) -> None:
    path = proven(tmp_path, NORM, NORM_IN_TORCH)
    path.write_text(NORM_IN_TORCH + "# mine\n")
    assert "was changed since its verdict" in refused(path)
    path.with_suffix(".json").write_text("{}")
    assert "can't be read" in refused(path)
    path.with_suffix(".json").unlink()
    assert "has no second verdict beside it" in refused(tmp_path)
    path.unlink()
    assert "holds 0 best kernels" in refused(tmp_path)
    assert "can't read" in refused(path)


@pytest.mark.parametrize("life", [Life.RESULT_KEPT, Life.INSTANCES])
def test_kernels_that_their_audit_found_unfit(tmp_path: Path, life: Life) -> None:
    path = proven(tmp_path, NORM, NORM_IN_TORCH, life={life: "broken"})
    assert "one call at a time only: it is broken" in refused(path)


def test_a_kernel_for_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = proven(tmp_path, NORM, NORM_IN_TORCH)
    text = path.with_suffix(".json").read_text()
    path.with_suffix(".json").write_text(text.replace('"device":"cpu"', '"device":"cuda:0"'))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "this machine has no GPU" in refused(path)


def test_modules_that_are_others(tmp_path: Path) -> None:
    path = proven(tmp_path, NORM, NORM_IN_TORCH)
    assert "other names or shapes" in refused(path, nn.Linear(3, 3))
    other = Norm()
    other.eps = 0.5
    assert "kernel and module differ (off by" in refused(path, other)
    assert "has a kernel already" in refused(path, load(path))
    other.forward = lambda x: x
    assert "another forward" in refused(path, other)
    assert "lies on meta" in refused(path, Norm().to("meta"))
    taken = Norm()
    taken.calls = 3
    assert "an attribute calls" in refused(path, taken)


@pytest.mark.parametrize(
    ("forward", "kernel", "why"),
    [
        ("return x * 2.0", "return x * 2.1", "kernel and module differ (off by 0.05"),
        ("return x * 2.0", "return (x * 2.0).double()", "shape, layout or dtype"),
        ("return x * 2.0", "raise ValueError('no\\nway')", "no"),
        ("return x.view(-1)", "return x.view(-1).clone()", "returns an input or a part of one"),
        ("return x.add_(1.0)", "return x + 1.0", "changes its inputs"),
        ("return x.relu(), 1", "return x.relu(), 1", "returns more than tensors"),
        (
            "return x * 2.0",
            "self.kept = getattr(self, 'kept', x * 2.0); return torch.mul(x, 2.0, out=self.kept)",
            "the next call overwrites it",
        ),
    ],
)
def test_kernels_that_are_wrong_here(tmp_path: Path, forward: str, kernel: str, why: str) -> None:
    problem = task(forward, x="torch.rand(6, 48) + 0.5")
    path = proven(tmp_path, problem, kernel_of(problem, kernel), weights="none")
    assert why in refused(path)
    assert why in refused(path)  # what was found once is found again


def test_a_kernel_that_keeps_its_first_weights(tmp_path: Path) -> None:
    forward = "globals().setdefault('kept', self.weight.clone()); return x * kept * 1.0"
    problem = NORM.replace("* torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) *", "*")
    path = proven(tmp_path, problem, kernel_of(problem, forward))
    assert "line 12 uses globals" in refused(path)
    assert "kernel and module differ" in refused(path, allow_unsafe=True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("import subprocess", "subprocess"),
        ("from os import system", "os.system"),
        ("import os as o", "os as o"),
        ("import os\nos.popen('ls')", "os.popen"),
        ("import ctypes", "ctypes"),
        ("import urllib.request", "urllib.request"),
        ("open('/etc/passwd')", "open"),
        ("eval('1')", "eval"),
        ("__import__('os')", "__import__"),
        ("import torch\ntorch.load('x')", "torch.load"),
        ("import torch\ntorch.ops.load_library('x')", "torch.ops.load_library"),
        ("S = 'void f() { system(\"ls\"); }'", "system"),
        ("S = 'void f() { ::socket (1, 2, 3); }'", "socket"),
        ("S = 'void f() { std::ifstream in(\"x\"); }'", "ifstream"),
        ("S = 'void f() { dlopen(\"x\", 1); }'", "dlopen"),
        ("S = 'void f() { asm(\"syscall\"); }'", "assembly"),
    ],
)
def test_sources_that_reach_out(text: str, named: str) -> None:
    assert unsafe_code(text).endswith(f"uses {named}")


def test_sources_that_do_not() -> None:
    assert unsafe_code(NORM_IN_CPP) == ""
    assert unsafe_code("S = '__global__ void k() { asm(\"cp.async;\"); } // open(x)'") == ""
    assert unsafe_code("import os, torch\nos.environ['A'], os.cpu_count(), x.load(1)") == ""


def test_the_weights_that_a_problem_came_with(tmp_path: Path) -> None:
    path, weights = proven(tmp_path, NORM, NORM_IN_TORCH), tmp_path / "mine.safetensors"
    text = path.with_suffix(".json").read_text()
    path.with_suffix(".json").write_text(text.replace('"weights":null', f'"weights":"{weights}"'))
    assert f"the weights {weights} are gone" in refused(path)
    save_file({"weight": torch.full((48,), 3.0)}, weights)
    assert bool((load(path).weight == 3.0).all())


def test_builds_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = NORM_IN_CPP.replace("float*", "flo*")
    assert "can't be built or imported: Error building extension 'norm'" in refused(
        proven(tmp_path / "1", NORM, broken)
    )
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path / "cache"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    other = NORM_IN_CPP.replace("float factor", "float  factor")
    monkeypatch.setattr(Path, "write_bytes", full)
    assert "No space left on device" in refused(proven(tmp_path / "2", NORM, other))


def test_a_process_that_loads_needs_no_model_library(tmp_path: Path) -> None:
    path = proven(tmp_path, NORM, NORM_IN_TORCH)
    program = f"""
import sys
import torch.utils.cpp_extension as extension
before = extension.load_inline
from kernel_refinery import load
load({str(path)!r})
assert extension.load_inline is before
assert not {{"litellm", "langgraph", "pandas"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
