"""P, A, S and R, and their controls: what each leaves in a prompt."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.run_config import RunConfig
from agent.prompt.feedback import remember, sections
from agent.prompt.measured import RAW_KERNELS, Subject
from agent.prompt.placebo import SENTENCES, placebo
from agent.prompt.section import LIMITS, Section
from agent.record.turn import TurnRecord
from agent.tuner.planning.prompt import read
from evaluator.settings import BaselineName
from tests.agent.made_records import advice, kernel_share, profile, turn
from tests.evaluator.made_evaluations import correct, timing
from tools.advice.words import score_lines
from tools.profiling.profile_report import AdviceScore, Bottleneck, Direction

SUMMARY = (
    "- bottleneck: memory_bandwidth\n- It moves 3.2 GB.\n- time: 812.3 us a call, the bound is"
    " 495.5 us: 61 % of the speed of light, at most 1.64x left to gain\n"
    "- DRAM 41 %\n\n| kernel |"
)


def told(letters: str, *turns: TurnRecord, other: Subject | None = None) -> dict[str, Section]:
    run = RunConfig.model_validate({"feedback": letters, "output": "x"})
    found = sections(run.shown_feedback, remember(run, turns), lambda _: "source", other)
    return {section.title: section for section in found}


def measured(number: int = 3, **fields: object) -> TurnRecord:
    said = profile().model_copy(
        update={
            "summary": SUMMARY,
            "advice": (advice(),),
            "figures": {"dram_pct": 41.0},
            "missing": ("tensor_pct",),
            "kernels": (kernel_share(),),
        }
    )
    evaluation = correct()
    known = timing().model_copy(update={"bound_us": 495.5})
    evaluation = evaluation.model_copy(update={"timing": known})
    return turn(number, evaluation, profile=said.model_dump(), **fields)


def shuffled() -> Subject:
    said = profile().model_copy(
        update={"bottleneck": Bottleneck.OCCUPANCY, "summary": "STRANGE", "figures": {"other": 7.0}}
    )
    return Subject(said, timing(latency_us=77.7))


NOTHING = "No rule of advice applies to these figures."
SCORE = AdviceScore(
    rule="scalar_access",
    figure="dram_pct",
    direction=Direction.UP,
    before=41.0,
    after=78.0,
    moved=True,
    latency_before_us=100.0,
    latency_after_us=77.0,
    predicted_gain=0.3,
)


def test_p_is_summary_advice_and_distance() -> None:
    found = told("P", measured())
    assert list(found) == [
        "What the profiler said",
        "What to change",
        "Distance to the speed of light",
    ]
    # The distance is told once, in its own section.
    assert found["What the profiler said"].text == (
        "- bottleneck: memory_bandwidth\n- turn: 3\n- It moves 3.2 GB.\n- DRAM 41 %\n\n| kernel |"
    )
    assert found["What to change"].text.startswith("1. EVIDENCE of 31 sectors. CHANGE")
    assert found["Distance to the speed of light"].text == (
        "- time: 812.3 us\n"
        "- bound: 495.5 us at rates measured on this device, 61 % reached, at most 1.64x left"
    )


def test_each_figure_is_told_once() -> None:
    before = measured()
    assert before.profile is not None
    summary = f"{SUMMARY}\n- {advice().evidence}"
    profiled = before.profile.model_copy(update={"summary": summary})
    found = told("P", before.model_copy(update={"profile": profiled}))
    text = "\n".join(section.text for section in found.values())
    assert text.count(advice().evidence) == text.count("- turn: 3") == 1


def test_raw_metrics_are_figures_by_name_and_nothing_else() -> None:
    assert told("R", measured())["Raw metrics"].text.splitlines() == [
        "- turn: 3",
        "- kernel: a_kernel",
        "  - launches: 2",
        "  - time_us: 7.25",
        "  - share: 0.9",
        "  - METRIC_known: 12.5",
        "  - METRIC_unknown: n/a",
        "- derived, of the hottest kernel and the whole call:",
        "  - dram_pct: 41",
        "- n/a here: tensor_pct",
    ]


def test_raw_metrics_leave_the_distance_out() -> None:
    base = measured()
    assert base.profile is not None
    judged = {"sol_fraction": 0.61, "bound_us": 4.5, "latency_us": 7.5}
    profile = base.profile.model_copy(update={"figures": base.profile.figures | judged})
    text = told("R", base.model_copy(update={"profile": profile}))["Raw metrics"].text
    assert text == told("R", base)["Raw metrics"].text
    only = base.profile.model_copy(update={"figures": judged})
    assert "derived" not in told("R", base.model_copy(update={"profile": only}))["Raw metrics"].text


def test_raw_metrics_are_those_of_the_hottest_kernels_within_bounds() -> None:
    many = {f"metric_{n}": float(n) for n in range(400)}
    kernels = [
        kernel_share().model_copy(update={"name": f"k{n}", "metrics": many}) for n in range(9)
    ]
    base = measured()
    assert base.profile is not None
    few = base.profile.model_copy(
        update={"kernels": tuple(k.model_copy(update={"metrics": {}}) for k in kernels)}
    )
    text = told("R", base.model_copy(update={"profile": few}))["Raw metrics"].text
    assert text.count("- kernel: ") == RAW_KERNELS
    long = base.profile.model_copy(update={"kernels": tuple(kernels)})
    section = told("R", base.model_copy(update={"profile": long}))["Raw metrics"]
    shown, _, end = section.text.rpartition("\n")
    assert len(shown) <= LIMITS.raw_characters
    assert end == f"[... {section.left_out} characters left out ...]"


def test_what_was_followed_without_a_gain_is_not_advised_again() -> None:
    rule, slower = advice().rule, {"latency_after_us": 100.0}
    vain = SCORE.model_copy(update={"rule": rule, **slower}).model_dump()
    before = measured(2, advice_scores=[vain])
    text = told("P", before, measured(3))["What to change"].text
    assert text == f"{NOTHING}\nFollowed before without a gain, and not advised again: {rule}."
    helped = measured(2, advice_scores=[SCORE.model_copy(update={"rule": rule}).model_dump()])
    assert advice().change in told("P", helped, measured(3))["What to change"].text


def test_attempts_say_which_figures_moved_as_advised() -> None:
    scored = measured(2, advice_scores=[SCORE.model_dump()])
    table = told("E+A", scored, measured(3))["Earlier attempts"].text
    assert "| moved as advised |" in table
    assert "DRAM, of peak 41 % -> 78 %" in table
    for letters in ("E", "E+placebo:A"):
        assert "DRAM" not in told(letters, scored, measured(3))["Earlier attempts"].text


def test_both_rates_are_named_where_one_is_published() -> None:
    known = timing().model_copy(
        update={
            "bound_us": 495.5,
            "bound_rates": "published",
            "attainable_us": 700.0,
            "latency_us": 840.0,
        }
    )
    evaluation = correct().model_copy(update={"timing": known})
    text = told("S", turn(0, evaluation))["Distance to the speed of light"].text
    assert "- bound: 495.5 us at published rates, 61 % reached" in text
    assert "- attainable: 700.0 us at the rates of PyTorch's own copies and products" in text
    assert text.endswith("1.20x left")


@pytest.mark.parametrize(("busiest", "least_us"), [(50.0, 440), (100.0, 800)])
def test_how_far_tuning_gets_a_design(busiest: float, least_us: int) -> None:
    """The kernel has 90 % of 800 us; eager takes 500."""
    busy = kernel_share().model_copy(update={"share": 0.9})
    said = profile().model_copy(update={"figures": {"busiest_pct": busiest}, "kernels": (busy,)})
    eager = timing().baselines[BaselineName.EAGER].model_copy(update={"latency_us": 500.0})
    known = timing(latency_us=800.0).model_copy(update={"baselines": {BaselineName.EAGER: eager}})
    evaluation = correct().model_copy(update={"timing": known})
    shown = turn(0, evaluation, profile=said.model_dump())
    line = told("S", shown)["Distance to the speed of light"].text.splitlines()[-1]
    assert f"is {busiest:.0f} % busy, so tuning leads to {least_us} us at best" in line
    assert ("; eager takes 500 us: only another design gets there" in line) is (least_us > 500)
    run = RunConfig.model_validate({"feedback": "S", "output": "x", "design_limit": False})
    (left,) = sections(run.shown_feedback, remember(run, [shown]), lambda _: "source")
    spills = said.model_copy(update={"figures": {"busiest_pct": busiest, "local_traffic": 0.6}})
    also = told("S", turn(0, evaluation, profile=spills.model_dump()))
    assert "this design" not in left.text + also["Distance to the speed of light"].text


def test_without_a_bound_this_is_said() -> None:
    known = timing().model_copy(update={"sol_fraction": None})
    evaluation = correct().model_copy(update={"timing": known})
    text = told("S", turn(0, evaluation))["Distance to the speed of light"].text
    assert text.splitlines()[-1] == "- bound: none that holds"


@pytest.mark.parametrize("letters", ["A", "P"])
def test_what_became_of_the_advice_is_told(letters: str) -> None:
    text = told(letters, measured(advice_scores=[SCORE.model_dump()]))["What to change"].text
    assert "What became of the advice before:" in text
    (line,) = score_lines([SCORE])
    assert "41 % -> 78 %" in line and f"- {line}" in text


@pytest.mark.parametrize("letters", ["G+E", "S", "R", "placebo:A", "shuffled:A"])
def test_scores_are_for_those_who_got_advice(letters: str) -> None:
    scored = measured(advice_scores=[SCORE.model_dump()])
    found = told(letters, scored, other=shuffled())
    (line,) = score_lines([SCORE])
    assert not any(line in section.text for section in found.values())


@pytest.mark.parametrize("letter", ["P", "A", "S", "R"])
def test_a_placebo_has_frame_and_length_and_nothing_of_the_kernel(letter: str) -> None:
    real, fake = told(letter, measured()), told(f"placebo:{letter}", measured())
    assert list(real) == list(fake)
    for title, section in fake.items():
        assert abs(len(section.text) - len(real[title].text)) <= 40
        lines = section.text.splitlines()
        assert ("- turn: 3" in lines) == (section is next(iter(fake.values())))
        rest = [line for line in lines if line not in ("- turn: 3", "- bottleneck: see below")]
        assert rest and {line.removeprefix("- ") for line in rest} <= set(SENTENCES)
        assert not re.search(r"\d", " ".join(rest))


@given(text=st.text(alphabet="abc 123.\n", max_size=6000), number=st.integers(0, 99))
def test_a_placebo_is_as_long_as_what_it_replaces(text: str, number: int) -> None:
    real = Section("What the profiler said", f"- bottleneck: latency\n- turn: {number}\n{text}")
    fake = placebo(real, number)
    assert abs(len(fake.text) - len(real.text)) <= 40
    assert fake.text.startswith(f"- bottleneck: see below\n- turn: {number}")
    assert fake == placebo(real, number)


def test_no_sentence_of_a_placebo_names_what_a_profile_could_say() -> None:
    assert len(set(SENTENCES)) == len(SENTENCES)
    words = " ".join(SENTENCES).lower()
    names = [bottleneck.value.replace("_", " ") for bottleneck in Bottleneck]
    assert not [name for name in names if " " in name and name in words]
    assert not re.search(r"\d", words)


def test_shuffled_tells_of_the_other_kernel_as_if_of_this_one() -> None:
    found = told("shuffled:P+shuffled:R", measured(), other=shuffled())
    assert found["What the profiler said"].text == "- bottleneck: occupancy\n- turn: 3\nSTRANGE"
    assert "- time: 77.7 us" in found["Distance to the speed of light"].text
    assert found["What to change"].text == NOTHING
    assert "  - other: 7" in found["Raw metrics"].text
    text = "\n".join(section.text for section in found.values())
    assert "DRAM" not in text and "dram" not in text and "EVIDENCE" not in text


@pytest.mark.parametrize("control", ["", "placebo:", "shuffled:"])
@pytest.mark.parametrize("letter", ["P", "A", "R"])
def test_a_control_stands_only_where_the_real_one_would(letter: str, control: str) -> None:
    unprofiled = turn(3, profile_error="no counters")
    found = told(f"{control}{letter}", unprofiled, other=shuffled())
    assert "Raw metrics" not in found and "What to change" not in found
    assert "What the profiler said" not in found


def test_the_tuner_takes_no_bottleneck_from_a_placebo() -> None:
    def bottleneck(letters: str) -> str:
        text = "\n\n".join(
            f"## {section.title}\n\n{section.text}"
            for section in told(letters, measured(), other=shuffled()).values()
        )
        return read([{"role": "user", "content": text}]).bottleneck

    assert bottleneck("P") == "memory_bandwidth"
    assert bottleneck("shuffled:P") == "occupancy"
    assert bottleneck("placebo:P") not in {b.value for b in Bottleneck}
    assert bottleneck("A+S+R") == ""
