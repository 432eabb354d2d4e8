"""Problems for which the tuner writes kernels, and for which it says that it has none."""

import ast

import pytest

from agent.prompt.answer import extract
from agent.tuner import answer
from problems.loader import DEMO, load_suite
from problems.sizes import SizeClass
from tests.agent.tuner.prompts import prompt

STUDY = {
    1: (1, 2, 3, 4, 5, 6, 7, 10, 12, 15, 22),
    2: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 16),
    3: (1, 4, 6),
}
"""Level -> our problems for which a study of refinement can use the tuner (docs/models.md)."""
NUMBERS = {p.id: (p.level, int(p.id.split("_")[1])) for p in load_suite()}
KEPT = [name for name, (level, number) in NUMBERS.items() if number in STUDY[level]]


def answered(name: str, size: SizeClass, backend: str) -> str:
    (problem,) = (p for p in load_suite() if p.id == name)
    return answer(prompt(problem.reference(size), backend=backend), 0.0, 0)


def test_the_list_is_long_enough_and_holds_the_demo() -> None:
    assert len(KEPT) == sum(map(len, STUDY.values())) >= 24
    assert set(DEMO) <= set(KEPT)


@pytest.mark.parametrize("backend", ["cpp", "cuda"])
@pytest.mark.parametrize("size", list(SizeClass))
def test_it_writes_a_kernel_for_each(size: SizeClass, backend: str) -> None:
    for name in KEPT:
        code = extract(answered(name, size, backend), "stop").source
        assert code is not None, name
        (model,) = (n for n in ast.parse(code).body if getattr(n, "name", "") == "ModelNew")
        assert "kernels.fused_0(" in ast.unparse(model), name


def test_for_the_others_it_says_in_prose_that_it_has_none() -> None:
    for name in NUMBERS.keys() - set(KEPT):
        text = answered(name, SizeClass.CPU, "cpp")
        assert text.startswith("I have no kernel for this one: "), name
        assert "```" not in text, name
