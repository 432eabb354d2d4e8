"""Scores over many kernels: small pure functions, formulas with their sources."""

from __future__ import annotations

from collections.abc import Sequence


def fast_p(speedups: Sequence[float | None], p: float) -> float:
    """Share of problems solved correctly and more than `p` times as fast as the baseline.

    `speedups`: one a problem; None where no correct kernel was found. Strictly greater, so that
    fast_0 is the share of correct ones (KernelBench, arXiv 2502.10517).
    """
    if not speedups:
        raise ValueError("fast_p of no problems")
    return sum(s is not None and s > p for s in speedups) / len(speedups)


def sol_score(latency_us: float, baseline_us: float, bound_us: float) -> float:
    """A kernel's place between the baseline (0.5) and the speed of light (1.0).

    1 / (1 + (T - T_sol) / (T_baseline - T_sol)), the score of SOL-ExecBench (arXiv 2603.19173),
    clamped to [0, 1]: unclamped it exceeds 1 below the bound and changes sign further down. Where
    the baseline is at the bound already, 1 for reaching the bound and 0 otherwise.
    """
    if min(latency_us, baseline_us, bound_us) <= 0:
        raise ValueError("times are positive")
    if latency_us <= bound_us:
        return 1.0
    if baseline_us <= bound_us:
        return 0.0
    return 1.0 / (1.0 + (latency_us - bound_us) / (baseline_us - bound_us))
