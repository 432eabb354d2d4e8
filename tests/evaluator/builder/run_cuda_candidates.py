"""Builds the CUDA candidates for the GPU at hand, runs them, compares them with PyTorch.

`python -m tests.evaluator.builder.run_cuda_candidates CACHE` prints a JSON object by name.
"""

import json
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import torch

from evaluator.builder.builder import Builder
from tests.evaluator.builder.cuda_candidates import CUDA


def cases():
    def new(*shape):
        return torch.randn(*shape, device="cuda")

    x, a, b = new(64, 256), new(128, 96), new(96, 64)
    square, half = new(64), new(64, 64).half()
    return {
        "elementwise_add": ("elementwise_add_cuda", (x, x), x + x),
        "streams_and_guards": ("relu", (x,), x.relu()),
        "dispatch_half": ("gelu", (half,), torch.nn.functional.gelu(half)),
        "packed_accessors": ("diag_scale", (square, b.T[:64]), square[:, None] * b.T[:64]),
        "cublas_and_epilogue": ("gemm_relu", (a, b), (a @ b).relu()),
        "binding_in_cpp": ("swish", (x,), torch.nn.functional.silu(x)),
        "stream_guard": ("negate", (x,), -x),
    }


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    major, minor = torch.cuda.get_device_capability()
    builder = Builder(Path(sys.argv[1]), cuda_arch=f"{major}.{minor}{'a' if major >= 9 else ''}")
    report = {}
    for name, (function, arguments, expected) in cases().items():
        outcome = builder.build(CUDA[name], timeout_s=300)
        problem = "" if outcome.ok else outcome.log
        if outcome.ok:
            loader = ExtensionFileLoader(name, outcome.library)
            spec = spec_from_file_location(name, outcome.library, loader=loader)
            module = module_from_spec(spec)
            loader.exec_module(module)
            actual = getattr(module, function)(*arguments)
            try:
                torch.testing.assert_close(actual, expected, rtol=5e-3, atol=5e-3)
            except AssertionError as error:
                problem = str(error)
        report[name] = {
            "problem": problem,
            "headers": outcome.headers,
            "seconds": round(outcome.seconds, 2),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
