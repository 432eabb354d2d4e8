"""`jsonl`: prompt, completion, verdict and reward, a line a turn, for training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.record.durable import write_whole
from experiments.export.recorded_run import RecordedTurn, recorded_runs
from problems.errors import UsageError

CONTEXT = (
    *("suite", "problem", "problem_hash", "run", "sample", "turn", "call", "strategy", "feedback"),
    *("model", "model_answered", "backend", "device", "precision", "protocol", "candidate"),
)
"""Columns of `load_runs` that say where a line comes from."""


def write_training_lines(runs: Sequence[Path], output: Path) -> tuple[int, int]:
    """Write `output`; returns the lines written and the turns left out for want of texts.

    Raises `UsageError` where no turn has its prompt and its answer.
    """
    turns = [turn for run in recorded_runs(runs) for turn in run.turns]
    lines = [line for line in map(training_line, turns) if line is not None]
    if not lines:
        raise UsageError(
            "these runs kept no prompts and answers; name the run directory itself, or a compact"
            " run made with --prompts --answers"
        )
    write_whole(output, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines))
    return len(lines), len(turns) - len(lines)


def training_line(turn: RecordedTurn) -> dict[str, Any] | None:
    """One turn; None where its prompt or its answer was not kept.

    The verdict is the second one on this kernel, where there is one (`RecordedTurn.evaluation`).
    """
    prompt, answer = turn.prompt(), turn.answer()
    if prompt is None or answer is None:
        return None
    verdict = turn.evaluation
    timing = None if verdict.findings else verdict.timing
    return {
        "prompt": prompt,
        "completion": answer.completion.text,
        "reasoning": answer.completion.reasoning,
        "reward": turn.reward,
        "status": verdict.status,
        "reason": verdict.reason,
        "verdict": timing.verdict if timing else "",
        "speedup": timing.speedup if timing else None,
        "speedup_low": timing.speedup_low if timing else None,
        "speedup_high": timing.speedup_high if timing else None,
        "struck": turn.is_struck,
        **{name: turn.row[name] for name in CONTEXT},
        "temperature": None if math.isnan(turn.row["temperature"]) else turn.row["temperature"],
    }
