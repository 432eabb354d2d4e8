"""What this very device reaches: bandwidth, rates, cost of a call; measured once and kept."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from evaluator.cache_folder import cache_folder
from evaluator.devices import cache_bytes, describe

_SECONDS = 0.3
"""Spent on each figure."""


@dataclass(frozen=True)
class Ceilings:
    """The best of several runs of plain library calls."""

    bandwidth_bytes_s: float
    """Of a large copy, bytes read and written."""
    flops: dict[str, float]
    """Of a large matrix product, by arithmetic: operations a second."""
    empty_call_us: float
    """From launch to end of an operator that does next to nothing."""


def measure_ceilings(device: str, threads: int | None = None) -> Ceilings:
    """Measure a device (`cpu` or `cuda:N`), or read what an earlier call measured.

    Kept under the user's cache folder by device name, threads and torch version. About 2 seconds
    the first time; nothing else should run meanwhile.
    """
    name = describe(device).name
    threads = threads or torch.get_num_threads()
    key = f"{name} {threads if device == 'cpu' else ''} torch {torch.__version__}"
    path = cache_folder() / "ceilings" / (re.sub(r"[^A-Za-z0-9.]+", "-", key) + ".json")
    try:
        return Ceilings(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        ceilings = _measure(torch.device(device), threads)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(ceilings)))
        draft.replace(path)
    except OSError:
        # A read-only home: measured again the next time.
        return ceilings
    return ceilings


def _measure(device: torch.device, threads: int) -> Ceilings:
    before = torch.get_num_threads()
    tf32 = torch.backends.cuda.matmul.allow_tf32
    if device.type == "cpu":
        torch.set_num_threads(threads)
    try:
        torch.backends.cuda.matmul.allow_tf32 = False
        rates = {
            name: _matmul_rate(device, getattr(torch, name))
            for name in ("float32", "float16", "bfloat16")
        }
        if device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = True
            rates["tfloat32"] = _matmul_rate(device, torch.float32)
        else:
            # Where the library is slow in 16 bits, one can still convert and compute in 32.
            rates = {name: max(rate, rates["float32"]) for name, rate in rates.items()}
            rates["tfloat32"] = rates["float32"]
        return Ceilings(_bandwidth(device), rates, _empty_call_us(device))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.set_num_threads(before)


def _bandwidth(device: torch.device) -> float:
    count = max(4 * cache_bytes(str(device)), 64 * 2**20) // 4
    source = torch.ones(count, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * count / _best_seconds(device, lambda: target.copy_(source))


def _matmul_rate(device: torch.device, dtype: torch.dtype) -> float:
    small = 512 if dtype is torch.float16 else 1024
    size = small if device.type == "cpu" else 8192
    a = torch.randn(size, size, device=device).to(dtype)
    b = torch.randn(size, size, device=device).to(dtype)
    out = torch.empty_like(a)
    return 2 * size**3 / _best_seconds(device, lambda: torch.mm(a, b, out=out))


def _empty_call_us(device: torch.device) -> float:
    tiny = torch.zeros(1, device=device)
    return 1e6 * _best_seconds(device, lambda: tiny.add_(1))


def _best_seconds(device: torch.device, run: Callable[[], object]) -> float:
    """The shortest of as many runs as fit the time, at least one after one for warming up."""
    best = float("inf")
    run()
    end = time.perf_counter() + _SECONDS
    while best == float("inf") or time.perf_counter() < end:
        if device.type == "cuda":
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            stop.record()
            stop.synchronize()
            seconds = start.elapsed_time(stop) / 1e3
        else:
            begin = time.perf_counter()
            run()
            seconds = time.perf_counter() - begin
        best = min(best, seconds)
    return best
