"""The plain path: a fresh process that does what KernelBench's evaluation does with a candidate.

`python -m experiments.bench.speed.plain_process REFERENCE CANDIDATE DEVICE OUTCOME` imports torch,
runs the candidate's file with PyTorch's own `load_inline`, compares five calls with the reference
by `allclose`, times a hundred, and writes a verdict as JSON. Nothing of the evaluator is used.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

_TRIALS = 5
_TIMED_CALLS = 100
_WARM_UPS = 3
_TOLERANCE = 1e-2
"""Absolute and relative, as in arXiv 2502.10517."""
_SEED = 42


def judge(reference: Path, candidate: Path, device: torch.device) -> dict[str, Any]:
    """`status` and `reason` in the evaluator's words, and the median of the timed calls."""
    theirs = _namespace(reference)
    torch.manual_seed(_SEED)
    arguments = theirs["get_init_inputs"]()
    model = _constructed(theirs["Model"], arguments, device)
    try:
        kernel = _constructed(_namespace(candidate)["ModelNew"], arguments, device)
    except Exception as error:  # noqa: BLE001 - whatever a candidate raises is its verdict
        failed = str(error).startswith("Error building extension")
        return _refused("build_error" if failed else "runtime_error", error)
    with torch.no_grad():
        try:
            for trial in range(_TRIALS):
                inputs = _inputs(theirs, _SEED + trial, device)
                expected, actual = _outputs(model, inputs), _outputs(kernel, inputs)
                if not _close(expected, actual):
                    return {"status": "incorrect", "reason": f"trial {trial}"}
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises is its verdict
            return _refused("runtime_error", error)
        times = _times_us(lambda: kernel(*inputs), device)
    return {"status": "correct", "reason": "", "latency_us": median(times)}


def _refused(status: str, error: Exception) -> dict[str, Any]:
    return {"status": status, "reason": f"{type(error).__name__}: {error}"[:2000]}


def _namespace(path: Path) -> dict[str, Any]:
    # A module of its own, with a file: Triton reads the source of its kernels.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return vars(module)


def _constructed(cls: Any, arguments: list[Any], device: torch.device) -> Any:
    torch.manual_seed(_SEED)
    return cls(*arguments).to(device)


def _inputs(namespace: dict[str, Any], seed: int, device: torch.device) -> list[Any]:
    torch.manual_seed(seed)
    return [
        value.to(device) if isinstance(value, torch.Tensor) else value
        for value in namespace["get_inputs"]()
    ]


def _outputs(model: Any, inputs: list[Any]) -> list[torch.Tensor]:
    result = model(*inputs)
    if inputs and inputs[0].is_cuda:
        torch.cuda.synchronize()
    return list(result) if isinstance(result, tuple | list) else [result]


def _close(expected: list[torch.Tensor], actual: list[torch.Tensor]) -> bool:
    return len(expected) == len(actual) and all(
        a.shape == b.shape and torch.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)
        for a, b in zip(expected, actual, strict=True)
    )


def _times_us(call: Callable[[], Any], device: torch.device) -> list[float]:
    for _ in range(_WARM_UPS):
        call()
    times = []
    for _ in range(_TIMED_CALLS):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize(device)
            start.record()
            call()
            end.record()
            torch.cuda.synchronize(device)
            times.append(1e3 * start.elapsed_time(end))
        else:
            begin = time.perf_counter()
            call()
            times.append(1e6 * (time.perf_counter() - begin))
    return times


if __name__ == "__main__":
    outcome = judge(Path(sys.argv[1]), Path(sys.argv[2]), torch.device(sys.argv[3]))
    Path(sys.argv[4]).write_text(json.dumps(outcome))
