"""What the nodes ask for a profile of a correct kernel."""

from __future__ import annotations

from collections.abc import Callable

from evaluator.evaluation import Evaluation, EvaluationRequest
from tools.profiling.profile_report import Profile

Profiler = Callable[[EvaluationRequest, Evaluation], Profile]
"""Raises `InfrastructureError` (`ProfilerError`) when it can't."""
