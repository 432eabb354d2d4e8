"""The grammar of `--feedback`."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.feedback_spec import MEASURED, Component, Control, FeedbackSpec
from agent.config.identity import run_name
from agent.config.run_config import RunConfig

LETTERS = "GEPASR"
CONTROLS = ["", "placebo:", "shuffled:"]
ITEMS = [*LETTERS, *(control + letter for control in CONTROLS[1:] for letter in MEASURED)]
PLAIN = st.lists(st.sampled_from(list(LETTERS)), min_size=1, max_size=8)


def canonical(text: str) -> str:
    return str(FeedbackSpec.parse(text))


@given(PLAIN, st.randoms())
def test_letters_in_any_order_and_case_have_one_form(found: list[str], chance) -> None:
    text = " + ".join(chance.choice([letter, letter.lower()]) for letter in found)
    wanted = [x for x in LETTERS if x in found and not ("P" in found and x in "AS")]
    assert canonical(text) == "+".join(wanted)


@given(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=6))
def test_what_is_accepted_says_one_thing_of_each_letter(items: list[str]) -> None:
    try:
        found = canonical("+".join(items))
    except ValueError as error:
        assert "both decide" in str(error)
        return
    assert canonical(found) == found
    assert canonical("+".join(reversed(items))) == found
    spec = FeedbackSpec.parse(found)
    for item in items:
        control, _, letter = item.rpartition(":")
        for each in "PAS" if letter == "P" else letter:
            assert spec.control_of(Component(each)) == Control(control)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("P+A", "P"),
        ("p+s+r", "P+R"),
        ("Placebo:p+G", "G+placebo:P"),
        ("placebo:A+placebo:P", "placebo:P"),
        ("shuffled:A+S", "shuffled:A+S"),
        ("NONE", "none"),
    ],
)
def test_one_form(text: str, wanted: str) -> None:
    assert canonical(text) == wanted


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ("P+placebo:P P+shuffled:S placebo:P+A R+shuffled:R", "both decide what . is; leave one"),
        ("placebo:E placebo: placebo random:P G+none PA", "is not any of G, E, P, A, S, R joined"),
    ],
)
def test_what_is_no_feedback_is_refused_with_what_would_be(texts: str, told: str) -> None:
    for text in texts.split():
        with pytest.raises(ValueError, match=told):
            canonical(text)


def test_controls_are_profiled_like_what_they_replace_and_a_distance_is_not() -> None:
    for text in ("P", "A", "R", "placebo:P", "shuffled:A", "G+E+placebo:R"):
        assert FeedbackSpec.parse(text).needs_profile
    for text in ("G+E", "S", "placebo:S", "shuffled:S", "none"):
        assert not FeedbackSpec.parse(text).needs_profile


def test_run_names_tell_controls() -> None:
    def name(feedback: str) -> str:
        config = RunConfig.model_validate({"feedback": feedback, "output": Path("x")})
        return run_name(config).rpartition("-tuner")[0]

    assert name("G+E+placebo:P") == "refine-g+e+placebo_p"
    assert name("none") == "refine-none"
