from pathlib import Path

import pytest

from agent.record.turn import TurnRecord
from agent.show import app
from evaluator.command.command_line import serve
from evaluator.evaluation import BuildReport, Evaluation, Status
from tests.agent.made_records import incorrect, profile, turn
from tests.evaluator.made_evaluations import correct

FIRST, SECOND = "# plan: one\nx = 1\n", "# plan: two\nx = 2\n"
A, B = "level1_1_square", "level1_2_cube"
NO_CODE = Evaluation(status=Status.NO_CODE, reason="no_code", message="no code block")


def write_run(folder: Path, turns: list[TurnRecord]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [record.model_dump_json(by_alias=True) + "\n" for record in turns]
    (folder / "turns.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three turns of one problem, one of another; kernels and one prompt are kept."""
    folder = write_run(
        tmp_path / "run",
        [
            turn(0, correct(1.5), candidate="k0", plan="one"),
            turn(1, incorrect(), candidate="k1", parent="k0", plan="two"),
            turn(
                2,
                correct(2.0),
                candidate="k0",
                parent="k0",
                profile=profile().model_dump(),
            ),
            turn(0, NO_CODE, problem=B, candidate=None, usage={"cost_usd": None}),
        ],
    )
    (folder / "kernels").mkdir()
    (folder / "kernels" / "k0.py").write_text(FIRST)
    (folder / "kernels" / "k1.py").write_text(SECOND)
    (folder / "prompts").mkdir()
    (folder / "prompts" / "aa.txt").write_text("Write a kernel.\n")
    return folder


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert serve(app, "show", [str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_what_was_taken_over_from_an_identical_kernel_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {"judged_with": f"{A}.0.0", "profiled_with": f"{A}.0.0"}
    again = turn(1, correct(1.5), candidate="k0", profile=profile().model_dump(), **taken)
    text = shown(
        capsys, write_run(tmp_path / "run", [turn(0, correct(1.5), candidate="k0"), again])
    )
    assert text.count(f"  judged with {A}.0.0, whose kernel is identical\n") == 1
    assert text.count(f"  profiled with {A}.0.0, whose kernel is identical\n") == 1


def test_an_overview_and_every_turn(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, run)
    rows = [line.split() for line in text.splitlines() if line.startswith("level1")]
    assert [A, "3", "2", "2.00x", "[1.98,", "2.02]", "free"] in rows
    assert [B, "1", "0", "no", "correct", "kernel", "unknown"] in rows
    assert "turn 0: correct, 1.50x [1.48, 1.52] over eager, faster\n" in text
    assert "turn 1: incorrect, wrong_values: 3 of 8 elements differ\n" in text
    assert "turn 2: correct, 2.00x [1.98, 2.02] over eager, faster  (best)\n" in text
    assert "  plan: two\n" in text
    assert "  | second line\n" in text
    assert "time: 812 us, eager: 1.62 ms, 61 % of the speed-of-light bound" in text
    assert "model 1.0 s, build 2.0 s, judge 3.0 s; 900 + 400 tokens, free" in text
    assert "bottleneck: memory_bandwidth (from cpu)" in text
    assert "  : That is half of what this machine can.\n" in text
    assert "offline/tuner is a rule-based kernel writer, not a language model." in text


def test_diffs_are_against_the_kernel_refined(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, run, "--problem", A)
    assert "  --- turn 0 k0\n  +++ turn 1 k1\n" in text
    assert "  -x = 1\n" in text
    assert "  +x = 2\n" in text
    assert "the same kernel as that of turn 0" in text
    assert "+x = 2" not in shown(capsys, run, "--no-diff")


def test_one_turn_keeps_its_diff_and_its_place(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, run, "--problem", A, "--turn", 1)
    assert "+x = 2" in text
    assert "turn 0:" not in text
    assert "(best)" not in text


def test_prompts_only_when_asked_for(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Write a kernel." not in shown(capsys, run)
    assert "  > Write a kernel.\n" in shown(capsys, run, "--prompt")


def test_turns_jsonl_alone_is_enough(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("kernels", "prompts"):
        for file in (run / folder).iterdir():
            file.unlink()
    text = shown(capsys, run / "turns.jsonl", "--prompt")
    assert "(best)" in text
    assert "no diff: " in text
    assert "(prompt aa is not kept here)" in text


def test_json_is_the_records_as_they_stand(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, run, "--json", "--problem", A).splitlines()
    assert lines == (run / "turns.jsonl").read_text().splitlines()[:3]


def test_a_build_error_without_words_shows_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = "\n".join(f"line {number}" for number in range(40))
    broken = Evaluation(
        status=Status.BUILD_ERROR,
        reason="compile_failed",
        message="it does not compile",
        build=BuildReport(ok=False, log=log),
    )
    text = shown(capsys, write_run(tmp_path / "run", [turn(0, broken)]))
    assert "  | line 0\n" in text
    assert "line 39" not in text
    assert "more lines in turns.jsonl" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{tmp}"], "holds no turns.jsonl"),
        (["{run}", "--problem", "level1_1_squar"], "did you mean 'level1_1_square'?"),
        (["{run}", "--turn", "77"], "no such turn yet; it has 4 turns in all"),
        (["{run}", "--trun", "7"], "No such option: --trun"),
    ],
)
def test_mistakes_are_one_line(
    run: Path,
    tmp_path: Path,
    arguments: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [argument.format(run=run, tmp=tmp_path) for argument in arguments]
    assert serve(app, "show", given) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert len(err.splitlines()) == 1
