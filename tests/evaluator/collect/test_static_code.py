from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluator.collect.code.static_code import inspect_loops, read_loops
from evaluator.collect.collected import LoopFacts

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("objdump") or not shutil.which("g++"),
    reason="needs g++ and objdump on x86-64",
)

SCALE = "void f(const float* __restrict a, float* __restrict b, long n)" + (
    "{ for (long i = 0; i < n; ++i) b[i] = a[i] * 2.f + 1.f; }"
)
EXP = "#include <cmath>\nvoid f(const float* __restrict a, float* __restrict b, long n)" + (
    "{ for (long i = 0; i < n; ++i) b[i] = a[i] * expf(a[i]); }"
)
SUM = "float f(const float* a, long n)" + (
    "{ float s = 0; for (long i = 0; i < n; ++i) s += a[i] * a[i]; return s; }"
)


def loops(folder: Path, source: str, *flags: str) -> LoopFacts:
    (folder / "a.cpp").write_text(source)
    subprocess.run(
        ["g++", *flags, "-fPIC", "-shared", "a.cpp", "-o", "a.so"], cwd=folder, check=True
    )
    facts = inspect_loops(folder / "a.so")
    assert facts is not None
    return facts


def test_vectorised_loop_without_its_tail(tmp_path: Path) -> None:
    facts = loops(tmp_path, SCALE, "-O3", "-mavx2", "-mfma")
    assert facts.packed > 0
    assert facts.scalar == 0
    assert facts.widest_bits == 256


def test_scalar_loop(tmp_path: Path) -> None:
    facts = loops(tmp_path, SCALE, "-O1")
    assert facts.packed == 0
    assert facts.scalar > 0


def test_call_for_each_element(tmp_path: Path) -> None:
    assert loops(tmp_path, EXP, "-O3", "-mavx2").calls == ("expf",)


def test_vector_maths_is_no_call_for_each_element(tmp_path: Path) -> None:
    facts = loops(tmp_path, EXP, "-O3", "-mavx2", "-ffast-math")
    assert facts.calls == ()
    assert facts.packed > 0


def test_ordered_sum_is_scalar_in_spite_of_packed_products(tmp_path: Path) -> None:
    strict = loops(tmp_path, SUM, "-O3", "-mavx2", "-mfma")
    free = loops(tmp_path, SUM, "-O3", "-mavx2", "-mfma", "-ffast-math")
    assert strict.packed < strict.scalar
    assert free.packed > 0
    assert free.scalar == 0


def test_no_code_no_loops() -> None:
    assert read_loops("") == LoopFacts(packed=0, scalar=0, widest_bits=0)
    assert inspect_loops(Path(__file__)) is None
