from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluator.collect.code.static_code import inspect_loops
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
    facts = inspect_loops([folder / "a.so"])
    assert facts is not None
    return facts


@pytest.mark.parametrize(
    ("source", "flags", "packed", "scalar", "calls"),
    [
        (SCALE, ("-O3", "-mavx2", "-mfma"), True, False, ()),
        (SCALE, ("-O1",), False, True, ()),
        (EXP, ("-O3", "-mavx2"), False, True, ("expf",)),
        (EXP, ("-O3", "-mavx2", "-ffast-math"), True, False, ()),
        (SUM, ("-O3", "-mavx2", "-mfma", "-ffast-math"), True, False, ()),
    ],
    ids=["without its tail", "scalar", "a call for each element", "vector maths", "free order"],
)
def test_what_a_loop_is_made_of(tmp_path: Path, source, flags, packed, scalar, calls) -> None:
    facts = loops(tmp_path, source, *flags)
    assert (facts.packed > 0, facts.scalar > 0, facts.calls) == (packed, scalar, calls)
    assert not packed or facts.widest_bits == 256


def test_ordered_sum_is_scalar_in_spite_of_packed_products(tmp_path: Path) -> None:
    strict = loops(tmp_path, SUM, "-O3", "-mavx2", "-mfma")
    assert strict.packed < strict.scalar
