"""How the time of forward calls on a CPU divides between the candidate's own code and libraries."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection

import torch

from evaluator.collect.collected import CallShares
from evaluator.collect.cpu_trace import OWN_PREFIX

_CALLS = 7
_NEUTRAL = frozenset(
    {
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted",
        "resize_", "view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "detach",
        "detach_", "alias", "t", "transpose", "permute", "expand", "expand_as", "unsqueeze",
        "squeeze", "select", "slice", "narrow", "flatten", "unflatten", "contiguous", "view_as",
        "to", "split", "chunk", "unbind", "unfold", "item", "_local_scalar_dense", "result_type",
        "is_nonzero", "size", "stride", "numel", "data", "requires_grad_", "set_", "lift_fresh",
    }
)  # fmt: skip
"""Operators that compute nothing: what they need copied, they leave to `copy_`, which counts."""


def own_namespaces(source: str) -> frozenset[str]:
    found = set(re.findall(r"\bTORCH_LIBRARY(?:_FRAGMENT|_IMPL)?\s*\(\s*(\w+)", source))
    if "TORCH_EXTENSION_NAME" in found:
        found.update(re.findall(r"\b(?:name\s*=|load(?:_inline)?\()\s*[\"'](\w+)", source))
    return frozenset(found - {"aten"})


def collect_shares(
    call: Callable[[], object], namespaces: Collection[str] = ()
) -> tuple[CallShares, ...]:
    """Trace several calls, each by itself. `namespaces` are those of the candidate's operators."""
    # The first use of the profiler sets it up, which would count as the call's time.
    _traced(call, namespaces)
    return tuple(_traced(call, namespaces) for _ in range(_CALLS))


def _traced(call: Callable[[], object], namespaces: Collection[str]) -> CallShares:
    # What torch.profiler is made of: the latter would import the whole compiler first.
    with torch.autograd.profiler.profile(use_kineto=True) as profiler:
        begin = time.perf_counter_ns()
        call()
        wall_us = (time.perf_counter_ns() - begin) / 1e3
    times = [
        (event.key, max(0.0, float(event.self_cpu_time_total))) for event in profiler.key_averages()
    ]
    return divide(times, wall_us, namespaces)


def divide(
    times: list[tuple[str, float]], wall_us: float, namespaces: Collection[str] = ()
) -> CallShares:
    """Sort operators, given by name and own time in microseconds, by whose they are."""
    own: dict[str, float] = {}
    library: dict[str, float] = {}
    neutral_us = 0.0
    for name, spent_us in times:
        space, _, plain = name.rpartition("::")
        if name.startswith(OWN_PREFIX) or space in namespaces:
            own[name.removeprefix(OWN_PREFIX)] = spent_us
        elif plain in _NEUTRAL and space == "aten":
            neutral_us += spent_us
        elif space:
            library[name] = spent_us
    return CallShares(wall_us=wall_us, own_us=own, library_us=library, neutral_us=neutral_us)
