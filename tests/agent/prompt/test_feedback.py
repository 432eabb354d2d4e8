"""Feedback by letters: what is on is there in the agreed form, what is off leaves no trace."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.feedback_spec import FeedbackSpec
from agent.config.run_config import RunConfig
from agent.prompt.feedback import fenced, remember, sections
from agent.prompt.section import LIMITS, Section, cut
from agent.record.turn import TurnRecord
from agent.tuner.planning.prompt import read
from evaluator.evaluation import Correctness, Evaluation, Status
from evaluator.rival import Rival
from evaluator.settings import BaselineName
from tests.agent.made_records import advice, incorrect, kernel_share, profile, turn
from tests.evaluator.made_evaluations import baseline, correct, unbuilt
from tools.profiling.profile_report import Bottleneck

SUBSETS = [frozenset(part) for size in range(7) for part in itertools.combinations("GEPASR", size)]

# What only one letter can know. `status` and the like are keys of E's lines and columns.
TRACES = {
    "G": ["kernel to refine", "The last kernel", "SOURCE", "PLAN", "plan", "```"],
    "E": ["What execution said", "status", "speedup", "eager", "best", "MESSAGE"],
    "P": ["profiler", "bottleneck", "SUMMARY"],
    "A": ["What to change", "EVIDENCE", "CHANGE"],
    "S": ["speed of light", "reached", "bound:"],
    "R": ["Raw metrics", "METRIC", "FIGURE", "MISSING"],
}


def source_of(candidate: str) -> str:
    return f"# plan: SOURCE of {candidate}\nclass ModelNew: ...\n"


def no_code() -> Evaluation:
    return Evaluation(
        status=Status.NO_CODE, reason="no_code", message="MESSAGE: send one fenced block"
    )


def made(number: int, evaluation: Evaluation, **fields: object) -> TurnRecord:
    """A turn whose every text says whose it is."""
    if evaluation.status is Status.CORRECT:
        told = profile().model_copy(
            update={
                "summary": "SUMMARY one\nSUMMARY two",
                "advice": (advice(),),
                "figures": {"FIGURE": 1.5},
                "missing": ("MISSING",),
                "kernels": (kernel_share(),),
            }
        )
        fields.setdefault("profile", told.model_dump())
    candidate = None if evaluation.status is Status.NO_CODE else f"k{number}"
    return turn(number, evaluation, candidate=candidate, plan=f"PLAN {number}", **fields)


BUILD_ERROR = unbuilt("main.cpp:2:7: error: MESSAGE expected ';'", message="MESSAGE")
EVALUATIONS = [correct(1.5), correct(2.5), incorrect(), BUILD_ERROR, no_code()]
histories = st.lists(st.sampled_from(EVALUATIONS), max_size=6).map(
    lambda found: [made(number, evaluation) for number, evaluation in enumerate(found)]
)


def told(turns: list[TurnRecord], letters: str = "G+E+P", **settings: object) -> dict[str, str]:
    found = all_sections(turns, letters, **settings)
    assert len({section.title for section in found}) == len(found)
    return {section.title: section.text for section in found}


def all_sections(turns: list[TurnRecord], letters: str, **settings: object) -> tuple[Section, ...]:
    run = RunConfig.model_validate({"feedback": letters, "output": "x", **settings})
    return tuple(sections(run.shown_feedback, remember(run, turns), source_of))


@given(
    turns=histories,
    letters=st.sampled_from(SUBSETS),
    start_from=st.sampled_from(["last", "best"]),
    history=st.sampled_from(["last", "all"]),
)
def test_a_letter_that_is_off_leaves_no_trace(
    turns: list[TurnRecord], letters: frozenset[str], start_from: str, history: str
) -> None:
    name = str(FeedbackSpec.parse("+".join(letters) or "none"))
    found = all_sections(turns, name, start_from=start_from, history=history)
    text = "\n".join(f"{section.title}\n{section.text}" for section in found)
    on = letters | (frozenset("AS") if "P" in letters else frozenset())
    for letter in frozenset("GEPASR") - on:
        for trace in TRACES[letter]:
            assert trace not in text, (letter, trace)
    if not letters or not turns:
        assert found == ()


@given(turns=histories.filter(bool), start_from=st.sampled_from(["last", "best"]))
def test_sections_come_in_their_order(turns: list[TurnRecord], start_from: str) -> None:
    order = [
        "The kernel to refine",
        "What execution said",
        "Earlier attempts",
        "The last kernel",
        "What the profiler said",
        "What to change",
        "Distance to the speed of light",
    ]
    titles = list(told(turns, start_from=start_from))
    assert titles == [title for title in order if title in titles]
    assert "What execution said" in titles


def test_what_execution_said_of_a_correct_kernel() -> None:
    assert told([made(0, correct(1.97))], "E")["What execution said"].splitlines() == [
        "- turn: 0",
        "- status: correct",
        "- time: 812.3 us",
        "- eager: 1600.2 us",
        "- speedup over eager: 1.97x, interval [1.95, 1.99] (faster)",
    ]


def test_the_tuner_reads_the_speedup_over_an_eager_with_flags() -> None:
    evaluation = correct(1.97)
    assert evaluation.timing is not None
    eager = baseline(1.97).model_copy(update={"flags": "fp32, TF32 off"})
    timing = evaluation.timing.model_copy(update={"baselines": {BaselineName.EAGER: eager}})
    text = told([made(0, evaluation.model_copy(update={"timing": timing}))], "E")
    said = text["What execution said"]
    assert " us (fp32, TF32 off)\n" in said
    request = read([{"role": "user", "content": f"## What execution said\n\n{said}"}])
    assert request.reports == {"0": ("correct", 1.97)}


def test_a_kernel_slower_than_compile_is_not_told_to_stop() -> None:
    run = RunConfig.model_validate({"feedback": "G+E+P", "output": "x"})
    found = profile().model_copy(
        update={"bottleneck": Bottleneck.AT_THE_BOUND, "advice": (), "figures": {"dram_pct": 90.0}}
    )
    memory = remember(run, [made(0, correct(1.97), profile=found.model_dump())])

    def texts(compile_us: float) -> str:
        rival = Rival(eager_us=1600.0, compile_us=compile_us)
        shown = sections(run.shown_feedback, memory, source_of, None, rival)
        return "\n".join(section.text for section in shown)

    faster, slower = texts(900.0), texts(800.0)
    assert "- speedup over torch.compile: 1.11x, timed separately" in faster
    assert "Stop here" in faster
    assert "torch.compile takes 800 us, less than this kernel: DRAM" in slower
    assert "Stop here" not in slower


def test_the_room_for_faster_arithmetic_is_told() -> None:
    found = Correctness(calls_judged=9, calls_made=9, error_ratio=1.6, error_ratio_limit=32.0)
    evaluation = correct().model_copy(update={"correctness": found})
    text = told([made(0, evaluation)], "E")["What execution said"]
    assert "- error: 5.0 % of what is allowed" in text
    assert "- error" not in told([made(0, evaluation)], "G")


def test_every_baseline_is_told() -> None:
    evaluation = correct(2.0)
    assert evaluation.timing is not None
    compiled = baseline(1.11, low=1.05, high=1.17)
    baselines = {**evaluation.timing.baselines, BaselineName.COMPILE: compiled}
    timing = evaluation.timing.model_copy(update={"baselines": baselines})
    evaluation = evaluation.model_copy(update={"timing": timing})
    text = told([made(0, evaluation)], "E")["What execution said"]
    assert "- speedup over torch.compile: 1.11x, interval [1.05, 1.17] (faster)" in text


def test_a_kernel_that_could_not_be_timed_says_so() -> None:
    evaluation = correct().model_copy(update={"timing": None, "notes": ("the device was busy",)})
    text = told([made(0, evaluation)], "E")["What execution said"]
    assert text.splitlines()[2:] == ["- time: not measured", "- note: the device was busy"]


def test_a_failure_is_explained_from_its_evidence() -> None:
    text = told([made(0, no_code())], "E")["What execution said"]
    assert text == "- turn: 0\n- status: no_code\n\nMESSAGE: send one fenced block"
    text = told([made(0, BUILD_ERROR)])["What execution said"]
    assert text.startswith("- turn: 0\n- status: build_error\n\n")
    assert "expected ';'" in text


def test_the_best_kernel_is_refined_and_the_failed_last_one_shown() -> None:
    turns = [made(0, correct(2.0)), made(1, correct(1.5)), made(2, incorrect())]
    found = told(turns)
    assert found["The kernel to refine"].startswith("From turn 0 (the best so far).\n\n```python\n")
    assert "SOURCE of k0" in found["The kernel to refine"]
    assert found["The last kernel"].startswith("From turn 2.\n\n```python\n# plan: SOURCE of k2")
    last, base = found["What execution said"].split("\n\nTurn 0, the kernel to refine:\n\n")
    assert last.startswith("- turn: 2\n- status: incorrect\n")
    assert base.startswith("- turn: 0\n- status: correct\n- time: ")
    assert "- turn: 0\n" in found["What the profiler said"]


def test_the_last_kernel_is_refined_when_asked() -> None:
    turns = [made(0, correct(2.0)), made(1, correct(1.5))]
    found = told(turns, start_from="last")
    assert found["The kernel to refine"].startswith("From turn 1 (the last).")
    assert "Turn 0" not in found["What execution said"]
    assert "- turn: 1\n" in found["What the profiler said"]
    assert "The last kernel" not in told(turns)  # a slower one explains nothing


def test_without_execution_nobody_knows_which_is_best() -> None:
    turns = [made(0, correct(2.0)), made(1, incorrect())]
    assert told(turns, "G")["The kernel to refine"].startswith("From turn 1 (the last).")


def test_an_answer_without_code_leaves_the_kernel_before_it() -> None:
    turns = [made(0, incorrect()), made(1, no_code())]
    found = told(turns)
    assert found["The kernel to refine"].startswith("From turn 0 (the last).")
    assert found["What execution said"].startswith("- turn: 1\n- status: no_code")
    assert "The last kernel" not in found


@pytest.mark.parametrize(
    ("letters", "header"),
    [
        ("G", "| turn | plan |"),
        ("E", "| turn | status | speedup |"),
        ("G+E+P", "| turn | plan | status | speedup |"),
    ],
)
def test_the_table_has_the_columns_of_its_letters(letters: str, header: str) -> None:
    turns = [made(0, correct(2.0)), made(1, incorrect())]
    assert told(turns, letters)["Earlier attempts"].splitlines()[0] == header


def test_the_table_is_one_row_a_turn() -> None:
    turns = [made(0, correct(2.0)), made(1, incorrect())]
    assert told(turns)["Earlier attempts"].splitlines()[2:] == [
        "| 0 | PLAN 0 | correct | 2.00x |",
        "| 1 | PLAN 1 | incorrect | - |",
    ]
    assert "Earlier attempts" not in told(turns, history="last")
    assert "Earlier attempts" not in told(turns, "P")


def test_a_plan_cannot_break_the_table() -> None:
    turns = [turn(0, plan="a | b\nc" + "x" * 500), turn(1)]
    row = told(turns, "G")["Earlier attempts"].splitlines()[2]
    assert re.fullmatch(r"\| 0 \| a / b cx+\.\.\. \|", row)
    assert len(row) < LIMITS.plan_characters + 20


def test_a_fence_never_ends_inside_the_source() -> None:
    source = 'DOC = """\n```python\n````\n"""\n'
    assert fenced(source).startswith("`````python\n") and fenced(source).endswith("\n`````")


@given(text=st.text(max_size=300), limit=st.integers(4, 100))
def test_cut_keeps_both_ends_and_counts_the_rest(text: str, limit: int) -> None:
    shorter, left_out = cut(text, limit)
    if len(text) <= limit:
        assert shorter == text
    else:
        assert shorter.startswith(text[: limit // 2]) and shorter.endswith(text[-(limit // 4) :])
        assert len(shorter) <= limit + 50
    gap = re.findall(r"\n\[\.\.\. (\d+) characters left out \.\.\.\]\n", shorter)
    assert left_out == (int(gap[-1]) if len(text) > limit else 0)


def test_sections_say_what_they_leave_out() -> None:
    turns = [made(number, incorrect()) for number in range(LIMITS.history_rows + 3)]
    found = all_sections(turns, "G+E")
    left_out = {section.title: section.left_out for section in found}
    rows = [f"| {number} | PLAN {number} | incorrect | - |" for number in range(3)]
    assert left_out.pop("Earlier attempts") == sum(map(len, rows))
    (table,) = [section.text for section in found if section.title == "Earlier attempts"]
    lines = table.splitlines()
    assert lines[2].startswith("| 3 |") and lines[-1] == "(3 earlier rows left out.)"
    assert set(left_out.values()) == {0}
    long = profile().model_copy(update={"summary": "\n".join("line" for _ in range(99))})
    found = all_sections([made(0, correct(), profile=long.model_dump())], "P")
    assert found[0].left_out == 4 * (99 - LIMITS.profile_lines)
