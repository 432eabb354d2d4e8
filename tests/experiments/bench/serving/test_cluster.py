"""The run on a cluster that loses a judge and a node, in small."""

import pytest

from experiments.bench.serving.cluster import ClusterFigures, measure_cluster, told


@pytest.mark.slow
def test_a_short_run_survives_both_losses() -> None:
    figures = measure_cluster("cpu", problems=2, budget=3, timing_seconds=0.1)
    assert (figures.candidates, figures.same, figures.twice) == (6, 6, 0), figures.differing
    assert 2 <= figures.judge_killed_after < figures.node_killed_after < 6
    assert "the same status and reason: 6 of 6" in "\n".join(told(figures))
    assert ClusterFigures.model_validate_json(figures.model_dump_json()) == figures
