"""What a candidate can be timed against: the reference as a user would run it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from evaluator.protocol import RULES
from evaluator.settings import BaselineName, Precision, Settings
from problems.errors import UsageError


class CompileOptions(TypedDict, total=False):
    backend: str
    mode: str


@dataclass(frozen=True)
class Baseline:
    words: str
    """What it costs a user, as they would write it."""
    needs_gpu: bool = False
    default_flags: bool = False
    """PyTorch's flags for TF32, and not those of the task's precision."""
    cudnn_benchmark: bool = False
    compile: CompileOptions | None = None


BASELINES: dict[BaselineName, Baseline] = {
    BaselineName.EAGER: Baseline("eager"),
    BaselineName.DEFAULT_FLAGS: Baseline(
        "eager with PyTorch's default flags",
        needs_gpu=True,
        default_flags=True,
    ),
    BaselineName.CUDNN_BENCHMARK: Baseline(
        "eager with torch.backends.cudnn.benchmark = True", needs_gpu=True, cudnn_benchmark=True
    ),
    BaselineName.CUDA_GRAPH: Baseline(
        "eager in a CUDA graph (torch.compile with backend='cudagraphs', which copies the weights)",
        needs_gpu=True,
        compile={"backend": "cudagraphs"},
    ),
    BaselineName.COMPILE: Baseline("torch.compile", compile={}),
    BaselineName.MAX_AUTOTUNE: Baseline(
        "torch.compile with mode='max-autotune'", compile={"mode": "max-autotune"}
    ),
}


def flags_words(name: BaselineName, settings: Settings) -> str:
    """The arithmetic that a baseline is allowed on a GPU: what it is worth depends on that."""
    if settings.device == "cpu":
        return ""
    if settings.precision in (Precision.FP16, Precision.BF16):
        return settings.precision
    rules = RULES[settings.protocol]
    if BASELINES[name].default_flags or rules.pytorch_flags:
        return "PyTorch's default flags: TF32 in convolutions"
    tf32 = rules.allows_tf32 or settings.precision is Precision.TF32
    return f"fp32, TF32 {'on' if tf32 else 'off'}"


def baselines_on(device: str, names: Iterable[str]) -> tuple[BaselineName, ...]:
    """Eager and those that are named, each once. Raises `UsageError` for one that is unknown or
    that this device has no use for."""
    found = [BaselineName.EAGER]
    for name in names:
        if name not in list(BaselineName):
            raise UsageError(f"no baseline {name!r}; choose from {', '.join(BaselineName)}")
        known = BaselineName(name)
        if BASELINES[known].needs_gpu and device == "cpu":
            raise UsageError(f"the baseline {name} is for a GPU: leave it out, or name a --device")
        found.append(known)
    return tuple(dict.fromkeys(found))
