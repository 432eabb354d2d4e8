"""The hottest kernel in words: its busiest unit, what limits its occupancy, where warps wait."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.collect.collected import SourceLine
from tools.diagnosis.source_map import SourceMap
from tools.profiling.profile_facts import Facts, percent, shortened

Metrics = Mapping[str, float | None]
"""By the names of `evaluator.collect.nsight.ncu_metrics`; None: not known on this chip."""

PIPES = {
    "fma_pct": "the FMA pipe (fp32 multiply and add)",
    "alu_pct": "the ALU pipe (integers, comparisons, logic)",
    "xu_pct": "the XU pipe (exp, log, sin, reciprocal, square root)",
    "fp64_pct": "the FP64 pipe (look for double constants)",
    "tensor_pct": "the tensor cores",
    "fp64_tensor_pct": "the fp64 tensor cores",
    "issue_pct": "instruction issue",
    "sm_pct": "the SM",
}
"""Units of an SM in words, by the names of metrics."""

STALL_WORDS = {
    "stall_long_scoreboard": "loads from global memory (long scoreboard)",
    "stall_short_scoreboard": "shared memory, shuffles or special functions (short scoreboard)",
    "stall_mbarrier": "bulk copies or other warps (mbarrier)",
    "stall_barrier": "barriers such as __syncthreads (barrier)",
    "stall_lg_throttle": "the queue of global memory instructions (LG throttle)",
    "stall_math_pipe": "a busy arithmetic pipe (math pipe throttle)",
    "stall_mio_throttle": "the queue of shared memory, shuffles and special functions"
    " (MIO throttle)",
    "stall_wait": "the fixed latency of the instruction before (wait)",
    "stall_dispatch": "the dispatcher, as with register bank conflicts (dispatch stall)",
    "stall_branch": "a branch to be taken (branch resolving)",
    "stall_constant": "the cache of constants (IMC miss)",
    "stall_drain": "stores to leave (drain)",
    "stall_membar": "a memory fence (membar)",
    "stall_no_instruction": "instructions to be fetched (no instruction)",
    "stall_sleeping": "the end of a sleep (sleeping)",
    "stall_tensor": "tensor cores (GMMA)",
    "stall_tex_throttle": "the queue of texture instructions (TEX throttle)",
}
"""What warps wait for, by the names of metrics; in brackets what Nsight Compute calls it."""

REGISTERS = "registers per thread"
_SHARED_BYTES, _RESERVED_BYTES = 228 * 1024, 1024
"""Of an SM at most (compute capability 9.0 and 10.0), and for the driver in each block."""
_MOST_LINES = 3
_QUOTED = 80
_LEAST_STALLS = 0.5
"""Warps stalled for an instruction issued, by all reasons; fewer are not reported."""


def busiest_pipe(metrics: Metrics) -> tuple[str, float | None]:
    """The busiest unit of the SM, in words, and its per cent of peak."""
    known = {name: value for name in PIPES if (value := metrics.get(name)) is not None}
    if not known:
        return "", None
    # `sm_pct` is the maximum of its parts: the part says more, where it is among ours.
    top = max(known.values())
    name = next(name for name in PIPES if name in known and known[name] > top - 1.0)
    return PIPES[name], top


def occupancy_limiter(metrics: Metrics) -> str:
    """What allows the fewest blocks on an SM, in words: `REGISTERS` where it is these alone."""
    shared = metrics.get("limit_shared")
    if shared is not None:
        # Of the memory that it shares with L1, the driver gives no more than other limits can use.
        possible = _SHARED_BYTES // ((metrics.get("shared_bytes") or 0.0) + _RESERVED_BYTES)
        shared = max(shared, possible)
    allowed = {
        REGISTERS: metrics.get("limit_registers"),
        "shared memory per block": shared,
        "threads per block": metrics.get("limit_warps"),
        "blocks per SM (blocks are small)": metrics.get("limit_blocks"),
    }
    known = {name: value for name, value in allowed.items() if value is not None}
    fewest = [name for name, value in known.items() if value == min(known.values())]
    return " and ".join(fewest) or "a limit that is not known"


def stall_shares(metrics: Metrics) -> list[tuple[str, float]]:
    """Why warps wait, in words, as shares of all waiting warps; worst first."""
    waits = {
        name: value
        for name, value in metrics.items()
        if name in STALL_WORDS and value is not None and value > 0
    }
    whole = sum(waits.values())
    if whole < _LEAST_STALLS:
        return []
    return sorted(
        ((STALL_WORDS[name], value / whole) for name, value in waits.items()),
        key=lambda pair: -pair[1],
    )


def stall_lines(facts: Facts, source: str) -> list[str]:
    """The candidate's lines at which its kernel waits, in words, the worst first.

    Empty where the profiler knows no lines. A line of another file (one given to `load()`) is left
    out; what is inlined from a header counts for the call.
    """
    mapped = SourceMap(source)
    lines = []
    for line in facts.hot.lines:
        number = mapped.locate(line.file, line.line)
        if number is not None:
            called = _also(", called at line", line.file, line.called_at, mapped)
            used = _also(", used at line", line.file, line.used_at, mapped)
            lines.append(
                f"line {number} `{shortened(mapped.line(number).strip(), _QUOTED)}`{called}:"
                f" {percent(line.share)} of the stalls, {_words(line)}{used}"
            )
    return lines[:_MOST_LINES]


def _words(line: SourceLine) -> str:
    words = STALL_WORDS.get(line.reason)
    name = words[words.rindex("(") + 1 : -1] if words else line.reason.removeprefix("stall_")
    return f"{name} on {line.producer}" if line.producer else name


def _also(words: str, file: str, line: int | None, mapped: SourceMap) -> str:
    number = mapped.locate(file, line) if line is not None else None
    return f"{words} {number}" if number is not None else ""
