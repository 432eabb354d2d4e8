from pathlib import Path

import pytest
import yaml

from agent.config.run_config import RunConfig
from agent.prompt.feedback import SourceReader, remember, sections
from agent.record.archive import unpacked
from agent.record.run_files import RunFiles
from agent.show import command
from agent.view.trajectory import by_problem, turn_lines
from evaluator.command.command_line import serve
from evaluator.evaluation import Evaluation, Status
from tests.agent.made_records import incorrect, keep, kernel_share, profile, turn, write_turns
from tests.evaluator.made_evaluations import correct

FIRST, SECOND = "# plan: one\nx = 1\n", "# plan: two\nx = 2\n"
A, B = "level1_1_square", "level1_2_cube"
ROOT = Path(__file__).parents[3]
RECORDINGS = ROOT / "experiments" / "recordings"
PROFILED = unpacked(RECORDINGS / "profile-worth-cpu.tar.xz") / "refine-g+e+p-tuner-s0"
TOLD_BY_HEADINGS = ("- turn: ", "- status: ", "Turn ", "| ")
"""Lines of prompts that agent.show tells by a turn's heading and plan."""
NO_CODE = Evaluation(status=Status.NO_CODE, reason="no_code", message="no code block")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three turns of one problem, one of another; kernels and one prompt are kept."""
    turns = [
        turn(0, correct(1.5), candidate="k0", plan="one"),
        turn(1, incorrect(), candidate="k1", parent="k0", plan="two"),
        turn(2, correct(2.0), candidate="k0", parent="k0", profile=profile().model_dump()),
        turn(0, NO_CODE, problem=B, candidate=None, usage={"cost_usd": None}),
    ]
    folder = write_turns(tmp_path / "run", turns)
    keep(folder, turns[0], kernel=FIRST, prompt="Write a kernel.\n")
    keep(folder, turns[1], kernel=SECOND)
    return folder


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert serve(command, "show", [str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_what_was_taken_over_from_an_identical_kernel_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {"judged_with": f"{A}.0.0", "profiled_with": f"{A}.0.0"}
    again = turn(1, correct(1.5), candidate="k0", profile=profile().model_dump(), **taken)
    text = shown(
        capsys, write_turns(tmp_path / "run", [turn(0, correct(1.5), candidate="k0"), again])
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
    assert "  What execution said\n    Output 0, shape (), : 3 of 8 elements are wrong" in text
    assert "    - time: 812.3 us\n    - eager: 1624.6 us\n" in text
    assert "    - bound: 61 % reached, at most 1.64x left\n" in text
    assert "model 1.0 s, build 2.0 s, judge 3.0 s; 900 + 400 tokens, free" in text
    assert "  What the profiler said\n    - bottleneck: memory_bandwidth\n" in text
    assert "    That is half of what this machine can.\n" in text
    assert "  refined: the kernel of turn 0 (the best so far)\n" in text
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
    assert "    Write a kernel.\n" in shown(capsys, run, "--prompt")


def test_turns_jsonl_alone_is_enough(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("kernels", "prompts"):
        for file in (run / folder).iterdir():
            file.unlink()
    text = shown(capsys, run / "turns.jsonl", "--prompt", "--answer")
    assert "(best)" in text
    assert "no diff: " in text
    assert "prompts/aa.txt is not kept here)" in text
    assert "completions/bb.json is not kept here)" in text


def test_json_is_the_records_as_they_stand(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, run, "--json", "--problem", A).splitlines()
    assert lines == (run / "turns.jsonl").read_text().splitlines()[:3]


def test_a_traceback_is_shown_where_the_source_is_not_kept(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raised = Evaluation(
        status=Status.RUNTIME_ERROR,
        reason="forward_raised",
        message="call of forward: ValueError: odd",
        detail='  File "candidate.py", line 1, in forward\n    x = 1\n',
    )
    (run / "turns.jsonl").unlink()
    write_turns(run, [turn(0, raised, candidate="k0"), turn(1, raised, candidate="lost")])
    text = shown(capsys, run)
    assert text.count("    Raised during the call of forward: ValueError: odd\n") == 2
    assert text.count('      File "candidate.py", line 1, in forward\n        x = 1\n') == 1


def test_a_run_in_one_file_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    archive = RECORDINGS / "relay-by-hand-h100.tar.xz"
    text = shown(capsys, archive, "--problem", "level1_95_CrossEntropyLoss", "--turn", "1")
    assert "turn 1: correct, 2.47x [2.46, 2.47] over eager (fp32, TF32 off), faster  (best)" in text


@pytest.mark.parametrize(
    "recorded",
    [
        unpacked(RECORDINGS / "relay-by-hand-h100.tar.xz"),
        unpacked(RECORDINGS / "relay-by-hand-cpu.tar.xz"),
        PROFILED,
    ],
    ids=lambda recorded: recorded.name,
)
def test_it_says_all_that_the_prompts_said(recorded: Path) -> None:
    files = RunFiles(recorded)
    config = files.config()
    checked = 0
    for records in by_problem(list(files.turns())).values():
        text = ""
        for number, record in enumerate(records):
            printed = turn_lines(record, records, files, config, diff=False)
            text += "".join(f"{line}\n" for _, line in printed)
            memory = remember(config, records[:number])
            for section in sections(config.shown_feedback, memory, source_in(files)):
                if section.title in ("The kernel to refine", "The last kernel"):
                    continue  # the diff
                for line in section.text.splitlines():
                    if not line.startswith(TOLD_BY_HEADINGS):
                        assert line.removeprefix("- ") in text, (record.problem, record.turn)
                        checked += 1
    assert checked > 200


def source_in(files: RunFiles) -> SourceReader:
    return lambda kernel: files.kernel(kernel) if files.kernel_path(kernel).exists() else ""


def test_raw_metrics_are_shown_where_the_model_was_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = profile().model_copy(update={"kernels": (kernel_share(),)}).model_dump()
    turns = [
        turn(0, correct(), profile=said, feedback="G+E+P+R"),
        turn(1, correct(), profile=said, feedback="G+E+P"),
    ]
    text = shown(capsys, write_turns(tmp_path / "run", turns))
    assert text.count("  Raw metrics\n") == 1
    assert "      - METRIC_known: 12.5\n" in text


def test_answers_only_when_asked_for(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(run, turn(0), answer="Here it is:\n\n```python\nx = 1\n```")
    told = "  Reasoning\n    thinking of Here it is:\n"
    answer = "  Answer bb\n    Here it is:\n\n    ```python\n"
    asked = shown(capsys, run, "--problem", A, "--turn", 0, "--answer")
    assert told in asked and answer in asked
    assert "Here it is" not in shown(capsys, run)
    (run / "prompts" / "aa.txt").unlink()
    assert answer in shown(capsys, run, "--problem", A, "--turn", 0, "--prompt", "--answer")


def test_what_is_left_of_the_budget(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = RunConfig.model_validate({"output": run, "budget": 5, "budget_tokens": 6000})
    (run / "config.yaml").write_text(yaml.safe_dump(settings.model_dump(mode="json")))
    text = shown(capsys, run)
    assert "free  left: 2 calls, 2,100 tokens\n" in text
    assert "unknown  left: 4 calls, 6,000 tokens\n" in text


def test_settings_of_another_version_are_done_without(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, run)
    (run / "config.yaml").write_text("letters: G\n")
    assert serve(command, "show", [str(run)]) == 0
    out, err = capsys.readouterr()
    assert out == text
    assert err.startswith("without the settings: ") and "config.yaml can't be read" in err


def test_a_fork_says_what_it_took_over(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"output": run, "fork": "runs/before@2", "feedback": "G+E", "model": "a/b"}
    config = RunConfig.model_validate(settings)
    (run / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    first, second, *_ = shown(capsys, run).splitlines()
    assert first.startswith(f"{run}: refine G+E, a/b,")
    assert second == (
        "Turns 0 to 1 were taken over from runs/before (refine G+E+P, offline/tuner)."
    )


def test_a_candidate_does_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, write_turns(tmp_path / "run", [turn(0, plan="\x1b[2Jgone")]))
    assert "  plan: \N{SYMBOL FOR ESCAPE}[2Jgone\n" in text


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
    assert serve(command, "show", given) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert len(err.splitlines()) == 1
