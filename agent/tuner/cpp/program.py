"""Writes fused kernels as C++ for `load_inline`.

The schedule's knobs (`schedule.py`) decide threads, vector width, how sums are accumulated, what is
staged, and stores; `nests.py` writes the loops, `maths.py` the functions they call.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from agent.tuner.cpp.maths import prelude
from agent.tuner.cpp.nests import CppKernel
from agent.tuner.planning.expression import FUNCTIONS
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule

_STREAM = """\
static inline void stream_out(float* to, const float* from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX__)
  for (; i < n && (reinterpret_cast<uintptr_t>(to + i) & 31); ++i) to[i] = from[i];
  for (; i + 8 <= n; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
  for (; i < n; ++i) to[i] = from[i];
}
"""


def source(kernels: Sequence[Fused], schedule: Schedule) -> str:
    """All kernels as one C++ file."""
    body = "\n".join(CppKernel(k, schedule).text() for k in kernels)
    used = sorted(set(re.findall(r"\b(\w+_)\(", body)) & {f"{op}_" for op in FUNCTIONS})
    width = schedule.number("vec")
    lines = ["#include <torch/extension.h>", "#include <cmath>", "#include <cstring>"]
    lines += ["#include <vector>", "#include <algorithm>", "#include <omp.h>"]
    if schedule["stores"] == "stream":
        lines += ["#if defined(__AVX__)", "#include <immintrin.h>", "#endif"]
    lines.append('#pragma GCC optimize("no-math-errno", "no-trapping-math")')
    if width == 1:
        lines.append('#pragma GCC optimize("no-tree-vectorize")')
    else:
        pragma = f'#pragma GCC target("prefer-vector-width={32 * width}")'
        lines += ["#if defined(__x86_64__)", pragma, "#endif"]
    if schedule["unroll"] == "on":
        lines.append('#pragma GCC optimize("unroll-loops")')
    text = "\n".join(lines) + "\n\n" + prelude(schedule["maths"], used)
    if schedule["stores"] == "stream":
        text += _STREAM
    return text + "\n" + body


def load(kernels: Sequence[Fused], schedule: Schedule) -> str:
    """The Python text that builds the kernels with `load_inline` and calls the module `kernels`."""
    text = source(kernels, schedule)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    names = ", ".join(f'"{k.name}"' for k in kernels)
    return f'''\
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
{text}"""

kernels = load_inline(
    name="tuned_{digest}",
    cpp_sources=[SOURCE],
    functions=[{names}],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)'''
