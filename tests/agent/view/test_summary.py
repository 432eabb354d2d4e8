import json
from pathlib import Path

import pytest

from agent.config.run_config import RunConfig
from agent.record.result import ProblemResult, RunResult, Stop
from agent.record.turn import TurnRecord
from agent.resolution import Resolution
from agent.view.summary import check_command, tell
from evaluator.evaluation import Verdict
from evaluator.settings import BaselineName, Precision
from problems.loader import load_problem
from problems.problem import Problem
from tests.agent.made_records import incorrect, problem_result, turn, write_turns
from tests.evaluator.made_evaluations import baseline, correct, timing

PROBLEM = load_problem("level1_7_rms_norm")


def resolution(folder: Path, **settings: object) -> Resolution:
    config = RunConfig.model_validate({"problems": (PROBLEM.id,), "output": folder, **settings})
    return Resolution(config, (PROBLEM,))


def written(folder: Path, turns: list[TurnRecord], result: ProblemResult) -> RunResult:
    write_turns(folder, turns)
    return RunResult(run=folder, problems=(result,), interrupted=result.stop is Stop.INTERRUPTED)


def solved(folder: Path, stop: Stop = Stop.CALLS) -> RunResult:
    turns = [
        turn(0, correct(1.5), problem=PROBLEM.id),
        turn(1, correct(2.0), problem=PROBLEM.id),
        turn(2, incorrect(), problem=PROBLEM.id),
    ]
    result = problem_result(turns[1], turns[2], 3, stop, correct_turns=2)
    path = folder / "best" / f"{PROBLEM.id}.py"
    return written(folder, turns, result.model_copy(update={"best_path": path}))


def failed(folder: Path, stop: Stop = Stop.CALLS, error: str = "") -> RunResult:
    last = turn(0, incorrect(), problem=PROBLEM.id)
    return written(folder, [last], problem_result(None, last, 1, stop, error))


def test_a_person_is_told_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tell(solved(tmp_path), resolution(tmp_path), as_json=False, require_correct=True) == 0
    out, err = capsys.readouterr()
    assert out == ""
    best = tmp_path / "best" / "level1_7_rms_norm.py"
    for text in (
        "  best: 2.00x [1.98, 2.02] over eager, faster (turn 1), 812 us, 61 % of the speed-of",
        "  last: wrong_values: 3 of 8 elements differ (turn 2)",
        "  correct 2/3, 3 calls",
        f"  {best}\n",
        f"  kernel-refinery check {best} --problem level1_7_rms_norm --device cpu\n",
        "offline/tuner is a rule-based kernel writer, not a language model.",
        "1 of 1 problems have a correct kernel",
        f"kernel-refinery show {tmp_path}",
    ):
        assert text in err


def test_other_baselines_are_told_with_their_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = baseline(1.1, verdict=Verdict.UNCLEAR)
    both = timing(2.0).baselines | {BaselineName.COMPILE: compiled}
    evaluation = correct(2.0).model_copy(
        update={"timing": timing(2.0).model_copy(update={"baselines": both})}
    )
    only = turn(0, evaluation, problem=PROBLEM.id)
    found = problem_result(only, only, 1).model_copy(update={"best_path": tmp_path / "k.py"})
    tell(
        written(tmp_path, [only], found),
        resolution(tmp_path),
        as_json=False,
        require_correct=False,
    )
    err = capsys.readouterr().err
    assert "1.10x over compile (unclear)" in err
    assert "last:" not in err  # the best is the last


def test_exit_codes_are_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def code(result: RunResult, require_correct: bool) -> int:
        return tell(result, resolution(tmp_path), as_json=False, require_correct=require_correct)

    assert code(failed(tmp_path), False) == 0
    assert code(failed(tmp_path), True) == 1
    assert code(failed(tmp_path, Stop.ERROR, "the key is wrong"), False) == 2
    assert code(solved(tmp_path, Stop.INTERRUPTED), False) == 130
    err = capsys.readouterr().err
    assert "no correct kernel, the last turn: wrong_values: 3 of 8 elements differ" in err
    assert "the key is wrong" in err
    assert "the same command again goes on from here" in err


def test_json_is_one_object_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(solved(tmp_path), resolution(tmp_path), as_json=True, require_correct=False)
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert found["all_correct"] is True
    assert found["config"]["model"] == "offline/tuner"
    (entry,) = found["problems"]
    assert entry["correct"] == 2
    assert entry["best"]["evaluation"]["timing"]["speedup"] == 2.0
    assert entry["check"].startswith("kernel-refinery check ")


def test_the_command_judges_as_the_run_did(tmp_path: Path) -> None:
    lone = Problem.model_validate(
        {**PROBLEM.model_dump(), "level": 0, "id": "mine", "path": tmp_path / "my file.py"}
    )
    config = resolution(
        tmp_path,
        precision=Precision.TF32,
        protocol="kernelbench",
        device="cuda:1",
        suite=tmp_path / "suite",
        baselines=("eager", "compile"),
        timing_seconds=2.5,
        audit="never",
        require="custom",
        isolation="strict",
    ).config
    assert check_command(Path("k.py"), PROBLEM, config) == (
        f"kernel-refinery check k.py --problem level1_7_rms_norm --suite {tmp_path}/suite"
        " --device cuda:1 --precision tf32 --protocol kernelbench --baseline compile"
        " --timing-seconds 2.5 --no-audit --require custom --require-isolation strict"
    )
    assert f"--problem '{tmp_path}/my file.py' --device" in check_command(
        Path("k.py"), lone, config
    )
