"""What a run is called in a table: nobody may take the rule-based writer for a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NOTES = {
    "offline/": "rule-based kernel writer, not a language model",
    "replay/": "recorded answers",
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


def run_labels(turns: pd.DataFrame) -> dict[str, str]:
    """By path, each run's shortest telling label: its policy, or its name where two have the same
    policy."""
    firsts = turns.drop_duplicates("path")
    policies = [
        policy_label(*pair) for pair in zip(firsts["strategy"], firsts["feedback"], strict=True)
    ]
    return {
        path: policy if policies.count(policy) == 1 else run
        for path, run, policy in zip(firsts["path"], firsts["run"], policies, strict=True)
    }
