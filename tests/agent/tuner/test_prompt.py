"""What the tuner reads from a prompt."""

import pytest

from agent.prompt.feedback import sections as _  # noqa: F401 (its headings are the contract)
from agent.tuner.planning.prompt import read, split
from agent.tuner.planning.schedule import Schedule, space
from tests.agent.tuner.prompts import SOFTMAX, Turn, prompt

ROWS = space("cpp", "rows")


def test_without_feedback() -> None:
    request = read(prompt(SOFTMAX))
    assert (request.backend, request.precision) == ("cpp", "fp32")
    assert request.reference.strip() == SOFTMAX.strip()
    assert (request.kernel, request.bottleneck) == (None, "")
    assert not request.reports and not request.trials


def test_all_letters() -> None:
    good = Turn(ROWS.default(), "correct", 1.5)
    bad = Turn(ROWS.default().replace("vec", "32"), "build_error")
    request = read(prompt(SOFTMAX, [good, bad], "GEP", base=0, bottleneck="single_thread"))
    assert request.kernel == good.schedule
    assert request.reports == {"1": ("build_error", None), "0": ("correct", 1.5)}
    assert list(request.trials) == [
        (good.schedule, "correct", 1.5),
        (bad.schedule, "build_error", None),
        (good.schedule, "correct", 1.5),
    ]
    assert request.bottleneck == "single_thread"


def test_letters_that_are_off_leave_nothing() -> None:
    turns = [Turn(ROWS.default(), "correct", 1.5), Turn(ROWS.default(), "incorrect")]
    only_g = read(prompt(SOFTMAX, turns, "G"))
    assert only_g.kernel and not only_g.reports and not only_g.bottleneck
    only_e = read(prompt(SOFTMAX, turns, "E"))
    assert only_e.kernel is None and only_e.trials == ()


def test_headings_inside_fences_are_none() -> None:
    text = "## A\n\n````python\n```\n## B\n```\n````\n\n## C\nx"
    assert list(split(text)) == ["A", "C"]


@pytest.mark.parametrize("backend", ["cpp", "cuda"])
@pytest.mark.parametrize("family", ["map", "rows"])
def test_plans_survive_the_table(backend: str, family: str) -> None:
    known = space(backend, family)
    longest = Schedule(family, {k.name: max(k.choices, key=len) for k in known.knobs})
    assert len(longest.plan()) <= 120, "the table of attempts cuts there"
    for schedule in (known.default(), longest):
        plan = schedule.plan()
        assert Schedule.parse(plan.replace("|", "/")) == schedule
        assert Schedule.parse(f"# plan: {plan}\nimport torch") == known.adopt(schedule) == schedule


def test_a_plan_of_somebody_else_is_none_of_ours() -> None:
    assert Schedule.parse("# plan: fuse the bias and vectorise by 4\n") is None
