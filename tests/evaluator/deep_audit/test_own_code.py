from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evaluator.deep_audit.own_code import own_code, read_unseen, triton_kernels

IMPORTED = """\
                 U GOMP_parallel@GOMP_4.0
                 U at::_ops::mm::call(at::Tensor const&, at::Tensor const&)
                 U at::native::mm(at::Tensor const&, at::Tensor const&)
                 U cblas_sgemm
                 U sgemm_
                 U dlsym@GLIBC_2.34
                 U cublasSgemm_v2
                 w __gmon_start__
"""


def test_imports_that_no_trace_on_a_cpu_sees() -> None:
    # PyTorch's dispatcher announces what it calls, and a GPU's kernels have names of their own.
    assert read_unseen(IMPORTED) == ["at::native::mm", "cblas_sgemm", "sgemm_", "dlsym"]


@pytest.mark.parametrize("strip", [False, True])
def test_a_built_library(tmp_path: Path, strip: bool) -> None:
    source, library = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(
        'extern "C" void cblas_sgemm();\n'
        'namespace mine { __attribute__((visibility("hidden"))) int work() { return 1; } }\n'
        "int entry() { cblas_sgemm(); return mine::work(); }\n"
    )
    compiler = shutil.which("g++")
    assert compiler
    flags = ["-s"] if strip else []
    subprocess.run([compiler, "-shared", "-fPIC", *flags, source, "-o", library], check=True)
    code = own_code([library], "x = 1")
    assert code.exists and code.libraries == 1
    # Stripping hides names, not what has to be found when the library is loaded.
    assert code.unseen == ("cblas_sgemm",)
    assert code.known is not strip
    assert ("mine::work" in code.kernels) is not strip


def test_triton_functions_under_any_decorators() -> None:
    source = """
import triton
@triton.jit
def one(x): pass
@triton.autotune(configs=[], key=[])
@triton.jit
def two(x): pass
@staticmethod
def three(x): pass
"""
    assert triton_kernels(source) == {"one", "two"}
    assert own_code([], source).exists
    assert not own_code([], "import torch").exists
    assert triton_kernels("def (") == set()
