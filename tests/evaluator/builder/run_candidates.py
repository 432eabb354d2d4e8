"""Runs candidates in a process of their own: stub installed, builder in the same process.

`python -m tests.evaluator.builder.run_candidates cpp|cuda CACHE` prints a JSON object by name.
"""

import json
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import torch

from evaluator.builder.builder import Builder
from evaluator.builder.handover import Build
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.worker import build_stub
from tests.evaluator.builder.cpp_candidates import CANDIDATES, HEAD
from tests.evaluator.builder.cuda_candidates import CUDA


def flat(value):
    return (
        [each for item in value for each in flat(item)]
        if isinstance(value, list | tuple)
        else [value]
    )


def compare(expected, actual, tolerance: float) -> str:
    expected, actual = flat(expected), flat(actual)
    if len(expected) != len(actual):
        return f"{len(actual)} results, not {len(expected)}"
    for e, a in zip(expected, actual, strict=True):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e, rtol=tolerance, atol=tolerance)
        elif e != a and not (isinstance(e, float) and abs(e - a) < 1e-6):
            return f"{a!r}, not {e!r}"
    return ""


def cpp_problem(name: str) -> str:
    module: dict = {}
    exec(compile(HEAD + CANDIDATES[name], name, "exec"), module)
    torch.manual_seed(0)
    inputs = module["inputs"]()
    return compare(
        module["reference"](*inputs),
        module["candidate"](*inputs),
        module.get("tolerance", 1e-5),
    )


def cuda_cases():
    def new(*shape):
        return torch.randn(*shape, device="cuda")

    x, a, b = new(64, 256), new(128, 96), new(96, 64)
    square, half = new(64), new(64, 64).half()
    return {
        "streams_and_guards": ("relu", (x,), x.relu()),
        "dispatch_half": ("gelu", (half,), torch.nn.functional.gelu(half)),
        "packed_accessors": ("diag_scale", (square, b.T[:64]), square[:, None] * b.T[:64]),
        "cublas_and_epilogue": ("gemm_relu", (a, b), (a @ b).relu()),
        "binding_in_cpp": ("swish", (x,), torch.nn.functional.silu(x)),
        "stream_guard": ("negate", (x,), -x),
    }


def cuda_problem(name: str, build: Build) -> str:
    outcome = build(CUDA[name])
    if not outcome.ok:
        return outcome.log
    loader = ExtensionFileLoader(name, outcome.library)
    module = module_from_spec(spec_from_file_location(name, outcome.library, loader=loader))
    loader.exec_module(module)
    torch.backends.cuda.matmul.allow_tf32 = False
    function, arguments, expected = cuda_cases()[name]
    return compare(expected, getattr(module, function)(*arguments), 5e-3)


def main(kind: str, cache: str) -> None:
    arch = None
    if kind == "cuda":
        major, minor = torch.cuda.get_device_capability()
        arch = f"{major}.{minor}{'a' if major >= 9 else ''}"
    builder = Builder(Path(cache), cuda_arch=arch)
    outcomes: list[BuildOutcome] = []

    def build(request: BuildRequest) -> BuildOutcome:
        outcomes.append(builder.build(request, timeout_s=300))
        return outcomes[-1]

    build_stub.install(build)
    report = {}
    for name in CUDA if kind == "cuda" else CANDIDATES:
        try:
            problem = cuda_problem(name, build) if kind == "cuda" else cpp_problem(name)
        except (RuntimeError, AssertionError, TypeError, ImportError) as error:
            problem = f"{type(error).__name__}: {error}"
        report[name] = {
            "problem": problem,
            "headers": outcomes[-1].headers,
            "log": outcomes[-1].log,
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
