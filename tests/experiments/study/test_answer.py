"""What a study answers, on runs with known outcomes; and what its folder remembers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agent.record.progress import best_of
from agent.record.result import RunResult, Stop
from agent.record.run_files import RunFiles
from experiments.study.answer import answer_lines, answers
from experiments.study.plan import Condition, Contrast, Plan
from experiments.study.study_folder import StudyFolder
from problems.errors import UsageError
from tests.agent.made_records import problem_result
from tests.experiments.made_runs import Outcome, made_run, names

SAMPLE, REFINE = "sample", "refine G+E"
CONTRASTS = (
    Contrast(a=SAMPLE, b=REFINE, outcome="speedup_kept"),
    Contrast(a=SAMPLE, b=REFINE, outcome="fast_0"),
)


def a_plan(**changes: object) -> Plan:
    return Plan(
        question="Does refinement help?",
        conditions=(Condition.parse(SAMPLE), Condition.parse(REFINE)),
        **{"seeds": (0, 1), "contrasts": CONTRASTS, **changes},
    )


def a_cell(
    folder: Path,
    results: dict[str, Sequence[Outcome]],
    stops: Mapping[str, Stop] | None = None,
    **fields: object,
) -> None:
    made_run(folder, results, **fields)
    config = folder / "config.yaml"
    config.write_text(config.read_text() + "model: offline/tuner\n")
    turns = list(RunFiles(folder).turns())
    problems = []
    for name in results:
        own = [turn for turn in turns if turn.problem == name]
        stop = (stops or {}).get(name, Stop.CALLS)
        problems.append(problem_result(best_of(own), own[-1], 2, stop, correct_turns=1))
    result = RunResult(run=folder, problems=tuple(problems), interrupted=False)
    (folder / "result.json").write_text(result.model_dump_json())


def a_study(folder: Path, plan: Plan, *, gain: float, unfinished: int = 0) -> None:
    """Refining reaches `gain` times what sampling does, on twelve problems with two seeds."""
    folder.mkdir(exist_ok=True)
    StudyFolder(folder).remember(plan)
    for seed in plan.seeds:
        speeds = {name: 1.2 + 0.1 * place + 0.05 * seed for place, name in enumerate(names(12))}
        a_cell(folder / f"sample-tuner-s{seed}", {n: (None, s) for n, s in speeds.items()})
        a_cell(
            folder / f"refine-g+e-tuner-s{seed}",
            {n: ("wrong", s * gain) for n, s in speeds.items()},
            dict.fromkeys(list(speeds)[:unfinished], Stop.INTERRUPTED),
        )


def test_a_clear_difference_is_found_and_no_other(tmp_path: Path) -> None:
    a_study(tmp_path, a_plan(), gain=1.5)
    record = StudyFolder(tmp_path).record()
    assert record is not None
    speed, solved = answers(record, tmp_path)
    assert speed.better == REFINE
    assert speed.planned
    assert (speed.problems, speed.of_problems, speed.seeds) == (12, 12, 2)
    assert speed.difference is not None
    assert speed.difference.value == pytest.approx(1.5)
    assert solved.better == ""
    assert solved.chance == 1.0
    assert speed.holm == pytest.approx(2 * speed.chance)
    lines = list(answer_lines((speed, solved)))
    assert lines[0].startswith(
        "tuner (planned): refine G+E is better than sample: x1.50 [1.50, 1.50]"
    )
    assert lines[0].endswith(f"corrected p = {speed.holm:.2g}")
    assert lines[1].startswith("  speedup_kept over 12 of 12 problems, 2 seeds; higher on 12")
    assert lines[2].startswith("  sign-flip test: p = ")
    assert "can't tell whether refine G+E is better or worse than sample" in lines[3]
    assert not any("could be told" in line for line in lines), "no two differences are unlike"


def test_only_what_is_finished_in_all_cells_is_compared(tmp_path: Path) -> None:
    a_study(tmp_path, a_plan(), gain=1.5, unfinished=7)
    record = StudyFolder(tmp_path).record()
    assert record is not None
    speed, _ = answers(record, tmp_path)
    assert (speed.problems, speed.of_problems) == (5, 12)
    assert speed.better == "", "five problems are too few for anything to be clear"


def test_a_question_that_came_after_the_results_is_marked(tmp_path: Path) -> None:
    plan = a_plan(contrasts=())
    a_study(tmp_path, plan, gain=1.5)
    record = StudyFolder(tmp_path).remember(a_plan())
    assert [version.turns for version in record.versions] == [0, 96]
    found = answers(record, tmp_path)
    assert not any(answer.planned for answer in found)
    assert any("not planned before the results" in line for line in answer_lines(found))


def test_a_folder_is_kept_from_another_plan_and_another_process(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    with folder.claimed(a_plan()):
        folder.remember(a_plan())
    with (
        folder.claimed(a_plan()),
        pytest.raises(UsageError, match="in use"),
        folder.claimed(a_plan()),
    ):
        pass
    with (
        pytest.raises(UsageError, match=r"has lost the cell refine-g\+e-tuner-s1"),
        folder.claimed(a_plan(seeds=(0,))),
    ):
        pass
    with folder.claimed(a_plan(seeds=(0, 1, 2))):
        assert len(folder.remember(a_plan(seeds=(0, 1, 2))).versions) == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with (
        pytest.raises(UsageError, match=r"is no study \(notes.txt"),
        StudyFolder(tmp_path / "other").claimed(a_plan()),
    ):
        pass
