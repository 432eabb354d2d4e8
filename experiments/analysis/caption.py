"""What stands below a picture: how many problems, what its intervals are, who wrote the kernels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from experiments.analysis.label import model_label

if TYPE_CHECKING:
    import pandas as pd


def caption(turns: pd.DataFrame, *says: str) -> str:
    """The caption of a picture of `turns`, as `load_runs` gives them. `says`: what its marks are,
    a sentence each."""
    return " ".join((f"{sizes(turns)}.", *says, f"{setting(turns)}."))


def sizes(turns: pd.DataFrame) -> str:
    """`n = 14 problems, 10 calls each, 1 seed`."""
    problems, seeds = turns["problem"].nunique(), turns["run_seed"].nunique()
    calls = sorted(set(turns.groupby(["path", "problem"]).size()))
    made = f"{calls[0]} to {calls[-1]} calls" if len(calls) > 1 else counted(calls[0], "call")
    each = " each" if problems > 1 else ""
    return f"n = {counted(problems, 'problem')}, {made}{each}, {counted(seeds, 'seed')}"


def setting(turns: pd.DataFrame) -> str:
    """`Kernels by offline/tuner (rule-based ...); cuda on NVIDIA H200, fp32`."""
    devices = turns["backend"] + " on " + turns["device"] + ", " + turns["precision"]
    return written_by(turns["model"], devices)


def written_by(models: Iterable[str], devices: Iterable[str]) -> str:
    """The same of models and devices; each is named once."""
    labels = " and ".join(dict.fromkeys(model_label(model) for model in models))
    return f"Kernels by {labels}; {' and '.join(dict.fromkeys(devices))}"


def counted(number: int, noun: str) -> str:
    """`1 call`, `10 calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
