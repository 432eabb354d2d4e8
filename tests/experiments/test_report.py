import json
from pathlib import Path

import pytest

from experiments.analysis.run_facts import load_all
from experiments.analysis.run_report import RunReport, report_on
from tests.command import command
from tests.experiments.made_runs import made_run, made_turn, random_results, write_run

MODULE = "experiments.report"


def report(run: Path) -> RunReport:
    [loaded] = load_all([run])
    return report_on(loaded)


def test_every_problem_has_its_best_kernel_and_what_it_cost(tmp_path: Path):
    told = report(made_run(tmp_path / "run", {"p": [None, 2.0, 1.5], "q": ["wrong", None, None]}))
    solved, failed = told.problems
    assert (solved.correct, solved.calls, solved.best_call) == (2, 3, 2)
    assert solved.speedup is not None and solved.speedup.value == 2.0
    assert (solved.verdict, solved.bottleneck) == ("faster", "memory_bandwidth")
    assert solved.tokens == 3900
    assert (failed.correct, failed.speedup, failed.best_call) == (0, None, None)
    assert told.statuses == {"build_error": 3, "correct": 2, "incorrect": 1}


def test_a_run_without_a_kernel_has_no_mean_over_the_solved(tmp_path: Path):
    told = report(made_run(tmp_path / "run", {"p": [None], "q": [None]}))
    solved = told.figure("speedup_solved")
    assert (solved.problems, solved.estimate) == (0, None)


def test_the_command_prints_tables_and_says_who_wrote_the_kernels(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [None, 2.0], "q": ["wrong", None]})
    done = command(MODULE, run)
    assert (done.returncode, done.stderr) == (0, "")
    assert "rule-based kernel writer, not a language model" in done.stdout
    assert "2.00x [1.98, 2.02]" in done.stdout
    assert "no correct kernel" in done.stdout
    assert "(1 of 2)" in done.stdout


def test_the_command_prints_one_json_object_a_run(tmp_path: Path):
    for name in ("a", "b"):
        made_run(tmp_path / name, random_results(4, 2, gain=1.1, seed=0))
    done = command(MODULE, tmp_path, "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["facts"]["run"] for entry in told] == ["a", "b"]
    assert told[0]["schema"] == 1


def test_an_unfinished_run_is_told_as_one(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [2.0]}, budget=4)
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace("- p", "- p\n- q"))
    told = command(MODULE, run).stdout
    assert "no turn yet of 1 problems (q)" in told
    assert "fewer than 4 calls on 1 problems" in told


def test_the_score_is_shown_where_it_was_recorded(tmp_path: Path):
    old, new = made_turn("p", 0, 2.0), made_turn("q", 0, 2.0)
    timing = new.evaluation.timing
    assert timing is not None
    scored = timing.model_copy(update={"sol_score": 0.714})
    evaluation = new.evaluation.model_copy(update={"timing": scored})
    new = new.model_copy(update={"evaluation": evaluation})
    facts = {"strategy": "refine", "budget": 1}
    without = write_run(tmp_path / "old", [old], problems=["p"], **facts)
    assert "SOL score" not in command(MODULE, without).stdout
    both = write_run(tmp_path / "both", [old, new], problems=["p", "q"], **facts)
    assert "SOL score" in command(MODULE, both).stdout
    assert " 0.71 " in command(MODULE, both).stdout
    assert [problem.sol_score for problem in report(both).problems] == [None, 0.714]


def test_levels_stand_side_by_side(tmp_path: Path):
    results = {"level1_1_a": [2.0], "level1_2_b": [None], "level2_1_c": [3.0]}
    told = report(made_run(tmp_path / "run", results))
    assert [(level.name, level.problems) for level in told.levels] == [("1", 2), ("2", 1)]
    solved = [level.figures[0].estimate for level in told.levels]
    assert [found.value for found in solved if found] == [0.5, 1.0]
    assert "level 1 (2): fast_0" in command(MODULE, tmp_path / "run").stdout
    alone = report(made_run(tmp_path / "alone", {"level1_1_a": [2.0]}))
    assert alone.levels == ()


def test_categories_stand_side_by_side(tmp_path: Path):
    turns = [
        made_turn(name, 0, 2.0).model_copy(update={"category": category})
        for name, category in (("a", "Math"), ("b", "Math"), ("c", "Fusion"))
    ]
    run = write_run(tmp_path / "run", turns, problems=["a", "b", "c"], strategy="refine", budget=1)
    found = [(group.name, group.problems) for group in report(run).categories]
    assert found == [("Fusion", 1), ("Math", 2)]
    assert "category Math (2): fast_0" in command(MODULE, run).stdout


def test_samples_are_summed_up_by_how_many_there_are(tmp_path: Path):
    results = {"p": [None, 4.0, "wrong", 0.5], "q": [2.0, None, None, None]}
    told = report(made_run(tmp_path / "run", results, strategy="sample"))
    one, two, four = told.at_k
    assert (one.k, two.k, four.k) == (1, 2, 4)
    assert one.correct and two.correct and four.correct and four.faster and four.best
    assert one.correct.value == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert two.correct.value == pytest.approx((5 / 6 + 1 / 2) / 2)
    assert (four.correct.value, four.faster.value) == (1.0, 1.0)
    assert four.best.value == pytest.approx((4.0 * 2.0) ** 0.5)
    assert "Best of k samples" in command(MODULE, tmp_path / "run").stdout
    refined = report(made_run(tmp_path / "refined", results))
    assert refined.at_k == ()
