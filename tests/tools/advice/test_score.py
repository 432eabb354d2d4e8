from __future__ import annotations

import pytest

from tests.agent import made_records
from tools.advice.score import score
from tools.advice.words import advice_lines, score_lines
from tools.profiling.profile_report import (
    Advice,
    AdviceScore,
    Direction,
    Profile,
    ProfilerTier,
)

WIDER = Advice(
    rule="scalar_access",
    evidence="In own_k, a load moves 128 bytes.",
    change="Load 16 bytes a thread.",
    figure="bytes_per_load_request",
    direction=Direction.UP,
    before=128.0,
    gain=0.3,
)
FEWER = WIDER.model_copy(
    update={"rule": "bank_conflicts", "figure": "conflict_ways", "direction": Direction.DOWN,
            "before": 16.0}
)  # fmt: skip


def profile(
    tier: ProfilerTier = ProfilerTier.NCU, latency_us: float | None = 200.0, **figures: float
) -> Profile:
    made = {"rung": tier, "latency_us": latency_us, "figures": figures, "advice": (WIDER, FEWER)}
    return made_records.profile().model_copy(update=made)


@pytest.mark.parametrize(
    ("advice", "after", "moved"),
    [
        (WIDER, 512.0, True),
        (WIDER, 130.0, False),
        (WIDER, 64.0, False),
        (FEWER, 1.0, True),
        (FEWER, 15.8, False),
        (FEWER, 32.0, False),
    ],
)
def test_a_figure_has_moved_when_it_did_so_as_predicted_and_beyond_its_noise(
    advice: Advice, after: float, moved: bool
) -> None:
    found = score(advice, profile(), profile(**{advice.figure: after}))
    assert (found.moved, found.after) == (moved, after)
    assert found.predicted_gain == advice.gain


def test_a_figure_near_zero_needs_more_than_a_share_of_itself() -> None:
    fault = FEWER.model_copy(update={"figure": "fma_pct", "before": 3.0})
    assert score(fault, profile(), profile(fma_pct=1.5)).moved is False
    assert score(fault, profile(), profile(fma_pct=0.5)).moved is True


def test_two_tiers_are_never_compared() -> None:
    found = score(WIDER, profile(), profile(ProfilerTier.TORCH_TRACE, bytes_per_load_request=512.0))
    assert (found.moved, found.after) == (None, None)
    assert found.latency_after_us == 200.0


def test_a_figure_that_is_gone_is_not_known() -> None:
    assert score(FEWER, profile(), profile()).moved is None


def test_advice_in_words() -> None:
    first, second = advice_lines(profile().advice)
    assert first == (
        "1. In own_k, a load moves 128 bytes. Load 16 bytes a thread. Could save up to 30 % of the"
        " time; watch: bytes a load request of a warp should go up from 128."
    )
    assert second.startswith("2. ")
    assert advice_lines(()) == []


def scored(after: float | None, latency_us: float | None) -> AdviceScore:
    figures = {} if after is None else {"bytes_per_load_request": after}
    return score(WIDER, profile(), profile(latency_us=latency_us, **figures))


@pytest.mark.parametrize(
    ("after", "latency_us", "words"),
    [
        (512.0, 154.0, "you widened the loads and stores: bytes a load request of a warp"
                       " 128 -> 512, time -23 %."),
        (512.0, 198.0, "you widened the loads and stores: bytes a load request of a warp"
                       " 128 -> 512, time -1 %: as predicted, and the time did not fall, so"
                       " something else limits it."),
        (128.0, 204.0, "scalar_access was not followed, or had no effect: bytes a load request of"
                       " a warp 128 -> 128, time +2 %."),
        (128.0, 190.0, "scalar_access: bytes a load request of a warp 128 -> 128, time -5 %:"
                       " faster, by other means than this figure."),
        (None, 190.0, "scalar_access: bytes a load request of a warp is not known for this kernel,"
                      " time -5 %."),
    ],
)  # fmt: skip
def test_scores_in_words(after: float | None, latency_us: float, words: str) -> None:
    assert score_lines([scored(after, latency_us)]) == [words]


def test_a_rule_of_another_version_is_told_by_its_name() -> None:
    old = scored(512.0, 154.0).model_copy(update={"rule": "lost_rule", "figure": "lost_figure"})
    (line,) = score_lines([old])
    assert line.startswith("lost_rule: lost figure 128 -> 512")
