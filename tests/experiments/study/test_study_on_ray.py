"""A study whose kernels are judged on a real Ray cluster of one node, killed once."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agent.record.run_files import RunFiles
from experiments.runs import load_runs
from tests.agent.llm.provider_server import ProviderServer, answer
from tests.evaluator.executor.local_cluster import LocalCluster, local_cluster
from tests.experiments.study.test_matrix import PROBLEMS, begin

pytestmark = pytest.mark.slow

BUDGET = 2
CELLS = {"sample-test-model-s0", "refine-g+e-test-model-s0"}
NO_KERNEL = "```python\nclass ModelNew:\n    pass\n```"
"""A judge's verdict on it takes no compiler and no measurement."""


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with local_cluster(nodes=1) as running:
        yield running


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    running = ProviderServer()
    running.will(answer(NO_KERNEL))
    yield running
    running.close()


def recorded(study: Path) -> int:
    return sum(sum(1 for _ in RunFiles(study / cell).turns()) for cell in CELLS)


def test_a_study_on_a_cluster_goes_on_after_a_kill(
    tmp_path: Path, cluster: LocalCluster, server: ProviderServer
) -> None:
    problem = tmp_path / "doubled.py"
    problem.write_text(PROBLEMS["doubled"])
    settings = {
        "problem": [str(problem)],
        "device": "cpu",
        "budget": BUDGET,
        "executor": "ray",
        "ray_address": cluster.address,
    }
    plan, study = tmp_path / "plan.yaml", tmp_path / "study"
    told = {
        "question": "Does a study work on Ray?",
        "settings": settings,
        "models": [{"model": "openai/test-model", "args": {"api_base": server.url}}],
        "conditions": ["sample", "refine G+E"],
        "contrasts": [{"a": "sample", "b": "refine G+E", "outcome": "fast_0"}],
    }
    plan.write_text(yaml.safe_dump(told))
    command = begin(plan, study)
    while recorded(study) < 1:
        assert command.poll() is None, command.communicate()
        time.sleep(0.05)
    command.kill()
    command.communicate()
    assert recorded(study) < len(CELLS) * BUDGET, "the kill came in the middle"

    out, err = begin(plan, study).communicate(timeout=300)
    assert json.loads(out)["complete"], err
    assert json.loads(out)["answers"][0]["problems"] == 1
    turns = load_runs(study)
    assert set(turns["run"]) == CELLS
    assert len(turns) == len(CELLS) * BUDGET
    assert not turns.duplicated(["run", "problem", "sample", "turn"]).any()
    assert set(turns["reason"]) == {"construct_raised"}, "each answer got a judge's verdict"
    for cell in CELLS:
        environment = json.loads((study / cell / "environment.json").read_text())
        assert environment["executor"] == "ray"
