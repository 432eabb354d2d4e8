"""Model, judge and profiler that answer at once, with answers of the size that real ones have.

So what a run takes with them is what everything else takes. Nothing they say was measured.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from types import TracebackType
from typing import Self

from agent.record.completion import Completion, CompletionRequest, Tell, Usage, unheard
from evaluator.evaluation import (
    Backend,
    BaselineTiming,
    BuildReport,
    Correctness,
    Evaluation,
    EvaluationRequest,
    Mismatch,
    ProblemRequest,
    Seconds,
    Status,
    Timing,
    Verdict,
    WrongElement,
)
from evaluator.mismatch_pattern import Pattern
from evaluator.settings import BaselineName
from tools.profiling.profile_report import Bottleneck, KernelShare, Profile, ProfilerTier

DEVICE = "stand-in"
_HELPERS = 12

_HELPER = """\
static inline float step_{number}(float value, float scale, float shift) {{
    // An affine step, clamped so that what follows stays finite.
    const float moved = value * scale + {constant:.6f}f * shift;
    return std::fmin(std::fmax(moved, -{limit:.1f}f), {limit:.1f}f);
}}
"""
_KERNEL = '''\
# plan: rows | vec={vec} threads=all chunk={chunk} unroll=on maths=poly stores=stream
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>
#include <vector>

{helpers}
torch::Tensor fused(torch::Tensor input, torch::Tensor weight, torch::Tensor bias, double eps) {{
    auto output = torch::empty_like(input);
    const int64_t rows = input.size(0), columns = input.size(1);
    const float *in = input.data_ptr<float>();
    const float *scale = weight.data_ptr<float>(), *shift = bias.data_ptr<float>();
    float *out = output.data_ptr<float>();
    #pragma omp parallel for schedule(static, {chunk})
    for (int64_t row = 0; row < rows; ++row) {{
        float total = 0.0f;
        for (int64_t column = 0; column < columns; ++column) {{
            float value = in[row * columns + column];
{calls}
            out[row * columns + column] = value;
            total += value * value;
        }}
        const float factor = 1.0f / std::sqrt(total / columns + (float)eps);
        for (int64_t column = 0; column < columns; ++column)
            out[row * columns + column] *= factor;
    }}
    return output;
}}
"""
module = load_inline(
    name="fused_{name}",
    cpp_sources=source,
    functions=["fused"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_features))
        self.bias = nn.Parameter(torch.randn(num_features))
        self.eps = eps

    def forward(self, x):
        return module.fused(x, self.weight, self.bias, self.eps)
'''
_ANSWER = """\
The module is bound by memory bandwidth, so I fuse everything into one pass over each row and keep
the row in cache for the second. Each row is worked on by one thread, in chunks of {chunk} rows.

```python
{kernel}```

The sum is accumulated in single precision, which is enough for rows of this length.
"""


class InstantModel:
    """Answers every request with a kernel of some kilobytes, another one each time."""

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, request: CompletionRequest, tell: Tell = unheard) -> Completion:
        """The answer follows from the request's place."""
        self.calls += 1
        name = f"{request.problem}_{request.sample}_{request.turn}"
        chance = _chance(name)
        chunk = chance.randrange(1, 1000)
        numbers = range(_HELPERS)
        helpers = [
            _HELPER.format(number=n, constant=chance.random(), limit=chance.uniform(10, 1000))
            for n in numbers
        ]
        call = " " * 12 + "value = step_{}(value, scale[column], shift[column]);"
        kernel = _KERNEL.format(
            vec=chance.choice((4, 8, 16)),
            chunk=chunk,
            helpers="\n".join(helpers),
            calls="\n".join(call.format(n) for n in numbers),
            name=name,
        )
        return Completion(
            text=_ANSWER.format(chunk=chunk, kernel=kernel),
            model_asked=request.model,
            model_answered=DEVICE,
            usage=Usage(prompt_tokens=1200, completion_tokens=1900, cost_usd=0.0125),
            seconds=12.5,
        )


class InstantJudge:
    """An executor whose verdict follows from the kernel's text; `before` hears of each request."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self._before = before

    def prepare(self, candidates: int = 1, backend: Backend = Backend.CUDA) -> None:
        """There is nothing to start."""

    def check(self, request: ProblemRequest) -> None:
        """Every problem can be judged."""

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Most kernels are correct; the others fail to build, differ or crash."""
        self._before()
        return verdict_on(request.candidate.source)

    def close(self) -> None:
        """Nothing was started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


def verdict_on(source: str) -> Evaluation:
    """An evaluation with everything that a real one has, so that it takes as much room."""
    chance = _chance(source)
    ran: dict[str, object] = {
        "weights": "named",
        "isolation": _ISOLATION,
        "device": DEVICE,
        "conditions": _CONDITIONS,
        "seeds": tuple(chance.getrandbits(62) for _ in range(24)),
        "seconds": Seconds(build=3.25, judge=2.125, device=0.625),
        "build": BuildReport(ok=True, seconds=3.25, headers="light", log=_WARNING * 6),
    }
    kind = chance.random()
    if kind < 0.1:
        report = BuildReport(ok=False, seconds=3.25, headers="full", log=_ERROR * 14)
        message = "main.cpp:41:9: error: 'scale' was not declared in this scope"
        failed = {"status": Status.BUILD_ERROR, "reason": "compile_failed", "message": message}
        return Evaluation.model_validate({**ran, **failed, "build": report})
    if kind < 0.2:
        failed = {"status": Status.RUNTIME_ERROR, "reason": "segfault", "detail": _TRACE * 12}
        return Evaluation.model_validate({**ran, **failed, "message": "it crashed in forward"})
    if kind < 0.35:
        failed = {"status": Status.INCORRECT, "reason": "wrong_values", "message": "values differ"}
        return Evaluation.model_validate({**ran, **failed, "correctness": _wrong(chance)})
    judged = Correctness(calls_judged=17, calls_made=55, error_ratio=0.7, error_ratio_limit=32.0)
    right = {"status": Status.CORRECT, "message": "correct", "correctness": judged}
    return Evaluation.model_validate({**ran, **right, "timing": _timing(chance)})


def instant_profile(request: EvaluationRequest, evaluation: Evaluation) -> Profile:
    """A profile with as many lines as a prompt takes."""
    chance = _chance(request.candidate.source)
    metrics: dict[str, float | None] = {f"counter_{n}": chance.random() for n in range(20)}
    kernel = KernelShare(
        name="fused", own=True, launches=1, time_us=800.0, share=0.9, metrics=metrics
    )
    found = chance.choice(list(Bottleneck))
    lines = [f"- figure {number}: {chance.random():.3f} of its peak" for number in range(20)]
    return Profile(
        rung=ProfilerTier.CPU,
        device=DEVICE,
        bottleneck=found,
        headline=f"It is {found}.",
        kernels=(kernel,),
        summary="\n".join([f"- bottleneck: {found}", *lines]),
        seconds=0.5,
    )


def _chance(text: str) -> random.Random:
    """Random numbers that follow from `text`."""
    return random.Random(hashlib.sha256(text.encode()).digest())


def _timing(chance: random.Random) -> Timing:
    speedup, latency = chance.uniform(0.5, 3.0), chance.uniform(100, 2000)
    low, high = 0.99 * speedup, 1.01 * speedup
    verdict = Verdict.FASTER if low > 1 else Verdict.SLOWER if high < 1 else Verdict.SAME
    against = BaselineTiming(
        latency_us=latency * speedup,
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        verdict=verdict,
        pairs=52,
    )
    return Timing(
        verdict=verdict,
        latency_us=latency,
        latency_low_us=0.99 * latency,
        latency_high_us=1.01 * latency,
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        baselines={BaselineName.EAGER: against, BaselineName.COMPILE: against},
        sol_fraction=chance.random(),
        bound_us=latency / 2,
        calls=52,
        stopped="precise",
        wall_latency_us=latency,
    )


def _wrong(chance: random.Random) -> Correctness:
    examples = tuple(
        WrongElement(
            index=(chance.randrange(128), chance.randrange(4096)),
            expected=chance.random(),
            actual=chance.random(),
        )
        for _ in range(8)
    )
    mismatch = Mismatch(
        output=0,
        kind="values",
        wrong=chance.randrange(1, 1000),
        total=524288,
        max_abs_error=chance.random(),
        max_rel_error=chance.random(),
        examples=examples,
        patterns=(Pattern.BOUNDARY, Pattern.ROWS),
        details={"first_wrong_flat": chance.randrange(1000), "period": 16},
    )
    return Correctness(calls_judged=2, calls_made=2, error_ratio=900.0, mismatch=mismatch)


_ISOLATION = (
    "mount_namespace",
    "homes_hidden",
    "network_namespace",
    "ipc_namespace",
    "uts_namespace",
    "pid_namespace",
    "uid_nobody",
    "landlock",
    "seccomp",
    "no_new_privs",
    "dies_with_parent",
    "memory_limit",
    "rlimits",
    "clean_environment",
)
_CONDITIONS: dict[str, str | int | float] = {
    "load_average_1m": 1.62,
    "cores": 16,
    "cpu_steal_s": 14.71,
    "sm_clock_mhz": 1980,
    "sm_clock_max_mhz": 1980,
    "memory_clock_mhz": 3201,
    "temperature_c": 45,
    "power_w": 183.543,
    "power_limit_w": 700.0,
    "throttled": "",
    "other_processes": 1,
    "threads": 16,
    "torch": "2.11.0",
    "python": "3.12.3",
}
_WARNING = (
    "main.cpp:27:18: warning: comparison of integer expressions of different signedness:"
    " 'int' and 'const int64_t' [-Wsign-compare]\n   27 |     for (int i = 0; i < n; ++i)\n"
)
_ERROR = (
    "main.cpp: In function 'at::Tensor fused(at::Tensor, at::Tensor, at::Tensor, double)':\n"
    "main.cpp:41:9: error: 'scale' was not declared in this scope; did you mean 'scalef'?\n"
    "   41 |         scale[i] * value\n      |         ^~~~~\n"
)
_TRACE = (
    '  File "candidate.py", line 61, in forward\n'
    "    return module.fused(x, self.weight, self.bias, self.eps)\n"
    "signal SIGSEGV while forward was running, address 0x7f3a5c000000, last line known: 61\n"
)
