"""What a run is called in a table: nobody may take the rule-based writer for a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NOTES = {
    "offline/": "rule-based kernel writer, not a language model",
    "replay/": "recorded answers",
    "agent/": "a coding agent in a loop of its own",
    "relay/": "answered through files, by a person or another program",
}


def model_note(model: str) -> str:
    """What must be said beside a model's name; empty for a language model."""
    return next((note for prefix, note in NOTES.items() if model.startswith(prefix)), "")


def model_label(model: str) -> str:
    """`offline/tuner (rule-based kernel writer, not a language model)`."""
    note = model_note(model)
    # What follows is a folder of the machine that the run was made on.
    name = model.partition("/")[0] if model.startswith(("replay/", "relay/")) else model
    return f"{name} ({note})" if note else name


def policy_label(strategy: str, feedback: str) -> str:
    """`refine G+E+P`; `sample`, which has no feedback to name."""
    return strategy if strategy == "sample" else f"{strategy} {feedback}"


_SAME_CONDITION = ["model", "strategy", "feedback", "temperature", "backend", "device", "precision",
    "protocol", "size_class", "budget", "limits"]  # fmt: skip
"""Columns of `load_runs`."""


def conditions(turns: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """With a label, the turns of runs that have the same model, policy, device and budget, and
    different seeds.
    """
    parts: list[pd.DataFrame] = []
    for _, part in turns.groupby(_SAME_CONDITION, sort=False, dropna=False):
        runs = part.groupby("path", sort=False)
        parts += [part] if runs["run_seed"].first().is_unique else [run for _, run in runs]
    return list(zip(telling_labels(parts), parts, strict=True))


def telling_labels(parts: Sequence[pd.DataFrame]) -> list[str]:
    """The policy of each, or the name of its first run where two have the same policy."""
    labels = [policy_label(*part[["strategy", "feedback"]].iloc[0]) for part in parts]
    return [
        label if labels.count(label) == 1 else str(part["run"].iloc[0])
        for label, part in zip(labels, parts, strict=True)
    ]
