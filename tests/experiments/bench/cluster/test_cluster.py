"""What is told of a cluster's verdicts; the measurement itself is committed with its commit."""

from __future__ import annotations

import json
from pathlib import Path

from evaluator.evaluation import Status
from experiments.bench.cluster.cluster import ClusterFigures, Word, told

ROOT = Path(__file__).parents[4]


def test_the_committed_figures_are_told_and_one_that_differs_is_named() -> None:
    text = (ROOT / "experiments/results/bench/cluster.json").read_text()
    figures = ClusterFigures.model_validate(json.loads(text)["cluster"])
    assert len(figures.candidates) >= 12
    assert {one.local.status for one in figures.candidates} >= {
        *(Status.CORRECT, Status.INCORRECT, Status.RUNTIME_ERROR, Status.BUILD_ERROR),
    }
    first, *lines = told(figures)
    assert first.startswith(f"{figures.same} of {len(figures.candidates)} candidates: the same")
    assert len(lines) == len(figures.candidates)
    blamed = Word(status=Status.RUNTIME_ERROR, reason="killed")
    spoilt = figures.candidates[0].model_copy(update={"ray_losing_a_node": blamed})
    other = figures.model_copy(update={"candidates": (spoilt, *figures.candidates[1:])})
    assert other.same == figures.same - 1
    assert told(other)[1].endswith(
        f"{figures.candidates[0].local.status} / {blamed.status} killed  DIFFERENT"
    )
