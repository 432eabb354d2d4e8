"""The whole main job with nothing replaced: the tuner, real builds, the judge, the profiler."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.record.turn_log import read_turns
from evaluator.evaluation import Status

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from evaluator.command.command_line import serve
from agent.run import command
code = serve(command, "agent.run", sys.argv[1:])
print({"torch", "ray"} & set(sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
def test_kernels_are_written_judged_profiled_and_refined_without_torch(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = {
        "--problem": "level1_7_rms_norm",
        "--strategy": "refine",
        "--feedback": "G+E+P",
        "--budget": "2",
        "--device": "cpu",
        "--timing-seconds": "1",
        "--output": str(folder),
    }
    words = [word for pair in options.items() for word in pair]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words, "--require-correct", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == "set()", "imported by the agent's process"
    found = json.loads(result.stdout)["problems"][0]
    turns = list(read_turns(folder))
    assert [turn.turn for turn in turns] == [0, 1]
    best = (folder / "best" / "level1_7_rms_norm.py").read_text()
    assert best.startswith("# plan: ")
    assert "class ModelNew" in best
    timing = found["best"]["evaluation"]["timing"]
    assert timing["speedup_low"] <= timing["speedup"] <= timing["speedup_high"]
    for turn in turns:
        if turn.evaluation.status is Status.CORRECT:
            assert turn.profile is not None, turn.profile_error
            assert turn.evaluation.build is not None
    prompts = [(folder / "prompts" / f"{turn.prompt}.txt").read_text() for turn in turns]
    assert "## What execution said" not in prompts[0]
    assert "## What execution said" in prompts[1]
    assert "## The kernel to refine" in prompts[1]
    profiled = turns[0].evaluation.status is Status.CORRECT
    assert ("## What the profiler said" in prompts[1]) == profiled
