"""What this very device reaches: bandwidth, rates, cost of a call; measured once and kept."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from evaluator.hardware.devices import cache_bytes, describe
from problems.cache_folder import cache_folder, keep

_REVISION = 3
"""Changes whenever what is measured does, so that figures kept by an older version are not used."""
_SECONDS = 0.15
"""Spent on each figure."""
_LEAD_CYCLES = 100_000
"""The device waits so long before each measured call: then launching is no part of its time."""


@dataclass(frozen=True)
class Ceilings:
    """The best of several runs of plain library calls. Bandwidths count bytes at the caller's."""

    read_bytes_s: float
    """Of arrays larger than the caches that are only read."""
    write_bytes_s: float
    """Of such arrays that are only written."""
    flops: dict[str, float]
    """Of a large matrix product, by arithmetic: operations a second."""
    empty_call_us: float
    """Of an operator that does next to nothing; on a GPU without its launch."""

    @property
    def bandwidth_bytes_s(self) -> float:
        return 2.0 / (1.0 / self.read_bytes_s + 1.0 / self.write_bytes_s)

    def moving_s(self, read: float, written: float) -> float:
        return read / self.read_bytes_s + written / self.write_bytes_s


def measure_ceilings(device: str, threads: int) -> Ceilings:
    """Measure a device (`cpu` or `cuda:N`), or read what an earlier call measured.

    Kept under the user's cache folder by device name, threads and torch version. A few seconds the
    first time; nothing else should run meanwhile.
    """
    name = describe(device).name
    key = f"{name} {threads if device == 'cpu' else ''} torch {torch.__version__} r{_REVISION}"
    path = cache_folder() / "ceilings" / (re.sub(r"[^A-Za-z0-9.]+", "-", key) + ".json")
    try:
        return Ceilings(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        ceilings = _measure(torch.device(device), threads)
    keep(path, json.dumps(asdict(ceilings)))
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
        return Ceilings(*_bandwidths(device), rates, _empty_call_us(device))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.set_num_threads(before)
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _bandwidths(device: torch.device) -> tuple[float, float]:
    """Of reading and of writing; no mix of the two that was tried is faster than they predict."""
    size = (8 if device.type == "cuda" else 4) * cache_bytes(str(device))
    count = max(size, 64 * 2**20) // 4
    one, other = torch.ones(count, device=device), torch.ones(count, device=device)
    out = torch.empty_like(one)
    size = 4 * count
    read = size / _best_seconds(device, lambda: one.sum())
    fills: list[Callable[[], object]] = [lambda: out.fill_(1.0), lambda: out.zero_()]
    write = size / min(_best_seconds(device, fill) for fill in fills)
    found = Ceilings(read, write, {}, 0.0)
    excess = max(
        1.0,
        found.moving_s(size, size) / _best_seconds(device, lambda: out.copy_(one)),
        found.moving_s(2 * size, size)
        / _best_seconds(device, lambda: torch.add(one, other, out=out)),
    )
    return read * excess, write * excess


def _matmul_rate(device: torch.device, dtype: torch.dtype) -> float:
    """The best of several sizes; on a GPU of two kinds of data as well.

    Zeros switch no transistors: under a power cap, products of them run at the highest clock.
    """
    if device.type == "cuda":
        tried = [(size, make) for size in (4096, 8192) for make in (torch.randn, torch.zeros)]
        return max(_product_rate(device, dtype, size, make) for size, make in tried)
    small, large = (1024, 2048) if dtype == torch.float32 else (512, 1024)
    rate = _product_rate(device, dtype, small, torch.randn)
    # Without instructions for 16 bits the large product takes seconds, and 32 bits are faster.
    if dtype != torch.float32 and 2 * small**3 / rate > _SECONDS:
        return rate
    return max(rate, _product_rate(device, dtype, large, torch.randn))


def _product_rate(
    device: torch.device, dtype: torch.dtype, size: int, make: Callable[..., torch.Tensor]
) -> float:
    a, b = (make(size, size, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    return float(2 * size**3 / _best_seconds(device, lambda: torch.mm(a, b, out=out)))


def _empty_call_us(device: torch.device) -> float:
    tiny, other = torch.zeros(1, device=device), torch.ones(1, device=device)
    calls: list[Callable[[], object]] = [
        lambda: tiny.add_(1),
        lambda: tiny.zero_(),
        lambda: tiny.copy_(other),
    ]
    return 1e6 * min(_best_seconds(device, call) for call in calls)


def _best_seconds(device: torch.device, run: Callable[[], object]) -> float:
    best = float("inf")
    run()
    end = time.perf_counter() + _SECONDS
    while best == float("inf") or time.perf_counter() < end:
        if device.type == "cuda":
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(_LEAD_CYCLES)
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
