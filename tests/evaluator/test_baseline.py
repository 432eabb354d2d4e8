"""What a candidate can be timed against, and what is said of it."""

from __future__ import annotations

import pytest

from agent.record import figures
from evaluator.baseline import baselines_on, flags_words
from evaluator.settings import BaselineName, Precision, Settings
from problems.errors import UsageError
from tests.evaluator.made_evaluations import baseline
from tests.evaluator.made_evaluations import timing as made_timing


def test_eager_comes_first_and_each_once() -> None:
    asked = ("compile", "eager", "cuda_graph", "compile")
    assert baselines_on("cuda:0", asked) == ("eager", "compile", "cuda_graph")
    assert baselines_on("cpu", ()) == ("eager",)


def test_an_unknown_one_and_what_only_a_gpu_has_are_refused() -> None:
    for name in ("cuda_graph", "cudnn_benchmark", "default_flags"):
        with pytest.raises(UsageError, match=f"the baseline {name} is for a GPU"):
            baselines_on("cpu", [name])
    with pytest.raises(UsageError, match="no baseline 'fast'; choose from eager, default_flags"):
        baselines_on("cuda:0", ["fast"])


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("eager", Settings(), ""),
        ("eager", Settings(device="cuda:0"), "fp32, TF32 off"),
        ("eager", Settings(device="cuda:0", precision=Precision.TF32), "fp32, TF32 on"),
        ("eager", Settings(device="cuda:0", protocol="verified"), "fp32, TF32 on"),
        (
            "compile",
            Settings(device="cuda:0", protocol="kernelbench"),
            "PyTorch's default flags: TF32 in convolutions",
        ),
        (
            "default_flags",
            Settings(device="cuda:0"),
            "PyTorch's default flags: TF32 in convolutions",
        ),
    ],
)
def test_flags_are_named(name: str, settings: Settings, words: str) -> None:
    assert flags_words(BaselineName(name), settings) == words


def test_a_speedup_names_its_rival_where_the_record_does() -> None:
    timing = made_timing()
    assert figures.rival(timing) == "eager"
    flagged = baseline(1.1, flags="fp32, TF32 off")
    named = timing.model_copy(update={"baselines": {BaselineName.EAGER: flagged}})
    assert figures.rival(named) == "eager (fp32, TF32 off)"
