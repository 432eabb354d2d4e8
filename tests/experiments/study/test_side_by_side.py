"""A study judged again, laid beside the first."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from experiments.study.side_by_side import side_by_side
from problems.errors import UsageError

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "experiments" / "recordings" / "profile-worth-cpu"


def command(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_study_is_judged_again(tmp_path: Path) -> None:
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
    first, again = tmp_path / "first", tmp_path / "again"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    command("experiments.matrix", str(tmp_path / "plan.yaml"), "-o", str(first))
    plan["models"] = [{"model": f"replay/{first}", "name": "tuner"}]
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(plan))
    command("experiments.matrix", str(tmp_path / "again.yaml"), "-o", str(again))
    told = command("experiments.report", str(first), str(again), "--json").splitlines()
    cells = json.loads(told[-1])["cells"]
    assert [cell["cell"] for cell in cells] == ["sample-tuner-s0", "refine-g+e-tuner-s0"]
    assert [(cell["turns"], cell["of_turns"]) for cell in cells] == [(4, 4), (4, 4)]
    assert all(cell["same_status"] == 1.0 for cell in cells)


@pytest.mark.thorough
def test_a_study_beside_itself_is_the_same() -> None:
    told = side_by_side(RECORDED, RECORDED)
    assert len(told.cells) == 3
    for cell in told.cells:
        assert cell.turns == cell.of_turns == 138
        assert cell.same_status == cell.same_verdict == 1.0
        assert cell.speedup is not None
        assert cell.speedup.value == cell.speedup.low == cell.speedup.high == 1.0
        assert cell.same_best == cell.of_problems > 0


def test_a_run_is_no_study() -> None:
    runs = ROOT / "experiments" / "recordings" / "refine-tuner-cpu"
    with pytest.raises(UsageError, match="is no study"):
        side_by_side(runs, runs)
