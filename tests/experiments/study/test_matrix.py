"""A study as a command, with a model on loopback, killed again and again."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agent.record.run_files import RunFiles
from experiments.runs import load_runs
from tests.agent.llm.provider_server import ProviderServer, answer
from tests.evaluator.executor.local_cluster import local_cluster
from tests.task import task

ROOT = Path(__file__).parents[3]
PROBLEMS = {
    "doubled": task("return torch.relu(x) * 2.0", x="torch.randn(16, 32)"),
    "halved": task("return torch.relu(x) / 2.0", x="torch.randn(16, 32)"),
}
"""So small that they are set up quickly."""
BUDGET = 2


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    running = ProviderServer()
    running.will(answer("I would rather not write a kernel."))
    yield running
    running.close()


def write_plan(folder: Path, url: str, *, models: int, seeds: int, **settings: object) -> Path:
    conditions = ["sample", "refine none", "refine G+E"]
    files = [folder / f"{name}.py" for name in PROBLEMS]
    for file, text in zip(files, PROBLEMS.values(), strict=True):
        file.write_text(text)
    plan = {
        "question": "Does a study survive?",
        "settings": {
            "problem": [str(file) for file in files],
            "device": "cpu",
            "budget": BUDGET,
            "workers": 3,
            "rival": "none",
            "timing_seconds": 0.1,
            **settings,
        },
        "models": [
            {
                "model": "openai/test-model",
                "name": f"m{n}",
                "args": {"api_base": url, "top_p": n / 8},
            }
            for n in range(1, models + 1)
        ],
        "conditions": conditions,
        "seeds": list(range(seeds)),
        "contrasts": [{"a": "sample", "b": "refine G+E", "outcome": "fast_0"}],
    }
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    return path


def begin(plan: Path, study: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.matrix", str(plan), "-o", str(study), "--json", *more],
        cwd=ROOT,
        env={**os.environ, "OPENAI_API_KEY": "x"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("models", "seeds", "kills", "workers", "rival"),
    [
        # Each cell works on both problems at a time.
        pytest.param(1, 1, 1, 6, "eager", marks=pytest.mark.thorough),
        pytest.param(4, 3, 10, 3, "none", marks=pytest.mark.slow),
    ],
    ids=["3 cells", "36 cells"],
)
def test_every_cell_is_there_once_however_often_it_is_killed(
    tmp_path: Path,
    server: ProviderServer,
    models: int,
    seeds: int,
    kills: int,
    workers: int,
    rival: str,
) -> None:
    plan = write_plan(
        tmp_path, server.url, models=models, seeds=seeds, workers=workers, rival=rival
    )
    study, cells = tmp_path / "study", 3 * models * seeds
    whole = cells * len(PROBLEMS) * BUDGET
    chance = random.Random(models)
    for kill in range(1, kills + 1):
        # Spread over the study: the next kill comes when its share of the calls has been asked.
        share = whole * kill // (kills + 1)
        command = begin(plan, study)
        while len(server.requests) < share and command.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.random() / 5)
        command.kill()
        command.communicate()
    out, err = begin(plan, study).communicate(timeout=900)
    told = json.loads(out)
    assert told["complete"], err
    turns = load_runs(study)
    assert turns["run"].nunique() == cells
    assert len(turns) == whole
    assert not turns.duplicated(["run", "problem", "sample", "turn"]).any()
    bought_again = len(server.requests) - whole
    assert 0 <= bought_again <= kills * workers
    assert bought_again <= turns["repeated"].sum()
    for name in turns["run"].unique():
        result = RunFiles(study / name).result()
        assert result is not None
        assert [(p.turns, p.error) for p in result.problems] == [(BUDGET, "")] * len(PROBLEMS)
    for problem in turns["problem"].unique() if rival != "none" else ():
        # All cells show the same times of PyTorch.
        found = {RunFiles(study / name).rival(problem) for name in turns["run"].unique()}
        assert len(found) == 1 and next(iter(found)).eager_us
    assert [each["problems"] for each in told["answers"]] == [len(PROBLEMS)] * models
    assert {each["better"] for each in told["answers"]} == {""}


@pytest.mark.slow
def test_a_study_on_a_cluster_goes_on_after_a_kill(tmp_path: Path, server: ProviderServer) -> None:
    """Its kernels are judged on a real Ray cluster of one node."""
    # A judge's verdict on this one takes no compiler and no measurement.
    server.replies[0] = answer("```python\nclass ModelNew:\n    pass\n```")
    study, whole = tmp_path / "study", 3 * len(PROBLEMS) * BUDGET
    with local_cluster(nodes=1) as cluster:
        place = {"executor": "ray", "ray_address": cluster.address}
        plan = write_plan(tmp_path, server.url, models=1, seeds=1, **place)
        command = begin(plan, study)
        while not any(file.read_bytes() for file in study.glob("*/turns.jsonl")):
            assert command.poll() is None, command.communicate()
            time.sleep(0.05)
        command.kill()
        command.communicate()
        assert len(load_runs(study)) < whole, "the kill came in the middle"
        out, err = begin(plan, study).communicate(timeout=300)
    assert json.loads(out)["answers"][0]["problems"] == len(PROBLEMS), err
    turns = load_runs(study)
    assert len(turns) == whole
    assert not turns.duplicated(["run", "problem", "sample", "turn"]).any()
    assert set(turns["reason"]) == {"construct_raised"}, "each answer got a judge's verdict"
    assert {RunFiles(study / name).environment()["executor"] for name in turns["run"]} == {"ray"}


@pytest.mark.slow
def test_two_processes_share_the_cells_of_a_study(tmp_path: Path, server: ProviderServer) -> None:
    plan = write_plan(tmp_path, server.url, models=1, seeds=1)
    study = tmp_path / "study"
    first = begin(plan, study, "--cell", "sample-*")
    while not (study / "study.json").exists():
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    second = begin(plan, study, "--cell", "refine-*")
    for command in (first, second):
        out, err = command.communicate(timeout=300)
        assert json.loads(out)["complete"], err
        assert json.loads(out)["answers"] == []
    asked = len(server.requests)
    out, err = begin(plan, study).communicate(timeout=300)
    assert json.loads(out)["answers"][0]["problems"] == len(PROBLEMS), err
    assert len(server.requests) == asked == 3 * len(PROBLEMS) * BUDGET


def test_an_unknown_cell_is_one_line(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "http://127.0.0.1:9", models=1, seeds=1)
    command = begin(plan, tmp_path / "study", "--cell", "hybrid-*")
    _, err = command.communicate(timeout=100)
    assert command.returncode == 2
    assert err.strip() == (
        "error: --cell hybrid-*: the plan has no such cell; it has sample-m1-s0,"
        " refine-none-m1-s0, refine-g+e-m1-s0"
    )


@pytest.mark.slow
def test_the_answers_of_a_study_are_judged_again(tmp_path: Path) -> None:
    plan = {
        "question": "Does it hold?",
        "settings": {
            "problem": ["level1_1_swish", "level1_7_rms_norm"],
            "device": "cpu",
            "budget": 2,
            "timing_seconds": 0.2,
            "confirm": 0,
        },
        "models": ["offline/tuner"],
        "conditions": ["sample", "refine G+E"],
    }
    tables, study = [], tmp_path / "first"
    for name, model in (("first", "offline/tuner"), ("again", f"replay/{study}")):
        plan["models"] = [{"model": model, "name": "tuner"}]
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(plan))
        out, err = begin(tmp_path / f"{name}.yaml", tmp_path / name).communicate(timeout=600)
        assert json.loads(out)["complete"], err
        tables.append(load_runs(tmp_path / name))
    compared = ["run", "problem", "sample", "turn", "candidate", "status"]
    assert len(tables[0]) == 8
    assert tables[0][compared].equals(tables[1][compared])
