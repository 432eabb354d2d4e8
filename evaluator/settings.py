"""How a candidate is judged: what users choose, and what the judge gets."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from evaluator.command.option import CommandOption
from evaluator.record import Record


class Precision(StrEnum):
    """The arithmetic that the task asks for. `fp32` means IEEE fp32, TF32 off."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"


class BaselineName(StrEnum):
    EAGER = "eager"
    """The reference with the flags of the task's precision."""
    DEFAULT_FLAGS = "default_flags"
    """Eager with the flags that PyTorch starts with: TF32 in convolutions. Added by itself where
    it is faster or slower."""
    CUDNN_BENCHMARK = "cudnn_benchmark"
    CUDA_GRAPH = "cuda_graph"
    COMPILE = "compile"
    MAX_AUTOTUNE = "max_autotune"


Protocol = Literal["refinery", "kernelbench", "verified", "kernelbench-x"]
"""Whose rules decide what is correct: ours, KernelBench's, KernelBench-Verified's or those of
KernelBench-X."""
AuditSetting = Literal["auto", "always", "never"]
Requirement = Literal["any", "custom", "kept_results"]


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _audit(value: object) -> object:
    """`--audit` is true and `--no-audit` false."""
    return ("always" if value else "never") if isinstance(value, bool) else value


class JudgeOptions(Record):
    precision: Annotated[
        Precision,
        CommandOption("The arithmetic that the task asks for.", "fp32|tf32|fp16|bf16"),
    ] = Precision.FP32
    protocol: Annotated[
        Protocol,
        CommandOption(
            "Whose rules decide what is correct.", "refinery|kernelbench|verified|kernelbench-x"
        ),
    ] = "refinery"
    inputs: Annotated[
        Literal["varied", "recipe"],
        CommandOption(
            "Whether some calls get inputs of other scales and signs.",
            "varied|recipe",
        ),
    ] = "varied"
    """Varied only under our own protocol."""
    baselines: Annotated[
        tuple[BaselineName, ...],
        BeforeValidator(_several),
        CommandOption(
            "Measure a baseline beside eager: compile, max_autotune, cuda_graph, cudnn_benchmark, "
            "default_flags; repeatable.",
            "NAME",
            names=("--baseline",),
            repeats=True,
        ),
    ] = (BaselineName.EAGER,)
    timing_seconds: Annotated[
        float, CommandOption("Longest time spent on timing one kernel.", "S")
    ] = Field(default=0.5, gt=0)
    """Of alternating calls, all baselines together."""
    audit: Annotated[
        AuditSetting,
        BeforeValidator(_audit),
        CommandOption(
            "Audit each correct kernel in depth, or no kernel and no crash.",
            names=("--audit/--no-audit",),
            flags=("always", "never"),
            default="correct ones whose time is hard to believe, and crashes",
        ),
    ] = "auto"
    require: Annotated[
        Requirement,
        CommandOption(
            "custom: refuse kernels whose time goes into libraries. kept_results: refuse those "
            "whose next call overwrites the result.",
            "any|custom|kept_results",
        ),
    ] = "any"
    isolation: Annotated[
        Literal["available", "strict"],
        CommandOption(
            "strict: refuse to run unless every wall around kernels and compilers is active.",
            "available|strict",
            names=("--require-isolation",),
            default="available: use the walls that this machine allows, and record them",
        ),
    ] = "available"


class Settings(JudgeOptions):
    """How to judge. All that changes a verdict or a figure is here and in the run's record."""

    device: str = "cpu"
    """`cpu` or `cuda:N`."""
    build_timeout_s: float = 180.0
    import_timeout_s: float = 60.0
    call_timeout_s: float = 30.0
    relative_width: float = 0.01
    """Sampling stops when the interval of the ratio is narrower than this."""
    clear_width: float = 0.1
    """The same of kernels that are over 1.5x faster or slower."""
    memory_limit_bytes: int = 16 * 2**30
    """Of a candidate with all that it starts; where it has no GPU also of the address space that it
    takes on top of PyTorch's."""
    threads: int | None = None
    """None: all cores."""
    timed_cases: int | None = None
    """How many of a problem's cases are timed, the heaviest. None: all."""
    fresh_workers: bool = False
    """Baselines run in workers of their own as well, instead of those that served before."""

    @property
    def candidate_timeout_s(self) -> float:
        """Of all imports, constructors and calls of a candidate together, without its builds."""
        return self.import_timeout_s + 2 * self.call_timeout_s + self.timing_seconds
