"""Kernels in answers that arrive piece by piece."""

import time

import pytest

from agent.prompt.answer import AnswerSoFar, extract

FIRST = "class ModelNew:\n    n = 1\n"
SECOND = "class ModelNew:\n    n = 2\n"
DOCSTRING = (
    'class ModelNew:\n    """Use it so:\n    ```\n    ModelNew()\n    ```\n    """\n    n = 3\n'
)
HELPER = "def half(x):\n    return x / 2\n"


def block(source: str, tag: str = "python", fence: str = "```") -> str:
    return f"{fence}{tag}\n{source}{fence}\n"


ANSWERS = {
    "one block": ("I think so.\n\n" + block(FIRST) + "\nThat is `fast`.\n", [FIRST]),
    "replaced": (block(FIRST) + "\nNo, better:\n\n" + block(SECOND), [FIRST, SECOND]),
    "tildes": (block(FIRST, fence="~~~"), [FIRST]),
    "fences in a docstring": (block(DOCSTRING), [DOCSTRING]),
    "a helper before": (
        block(HELPER) + block("class ModelNew:\n    n = half(1)\n"),
        [HELPER + "\nclass ModelNew:\n    n = half(1)\n"],
    ),
    "other languages": (block("make\n", "bash") + block(FIRST) + block("ls\n", "bash"), [FIRST]),
    "quoted marks": ("Not ```this``` yet.\n" + block(FIRST) + "See ```x```.", [FIRST]),
    "no kernel": (block("x = 1\n"), []),
    "never closed": ("```python\n" + FIRST, []),
    "no block": (FIRST, []),
}


@pytest.mark.parametrize("letters", [1, 2, 5])
@pytest.mark.parametrize(("answer", "kernels"), ANSWERS.values(), ids=ANSWERS.keys())
def test_each_kernel_is_handed_on_once_its_block_is_closed(answer, kernels, letters):
    taken: list[str] = []
    so_far = AnswerSoFar(taken.append)
    for end in range(letters, len(answer) + letters, letters):
        before = len(taken)
        so_far(answer[:end])
        if len(taken) > before:
            assert set("`~") & set(answer[:end][-letters - 2 :]), "as soon as it is closed"
    assert taken == kernels
    if kernels:
        assert taken[-1] == extract(answer, "stop").source


def test_another_attempt_begins_from_nothing():
    taken: list[str] = []
    so_far = AnswerSoFar(taken.append)
    so_far(block(FIRST) + "and th")  # here the connection broke
    so_far("Again")
    so_far("Again:\n" + block(FIRST))
    so_far("Again:\n" + block(FIRST) + block(SECOND))
    assert taken == [FIRST, SECOND]


def test_an_answer_that_only_opens_and_closes_fences_takes_little_time():
    answer = "```\n" * 30_000
    taken: list[str] = []
    so_far = AnswerSoFar(taken.append)
    begin = time.process_time()
    for end in range(4, 8000, 4):
        so_far(answer[:end])
    assert extract(answer, "stop").source is None
    assert time.process_time() - begin < 30
    assert not taken


def test_of_very_many_kernels_the_first_ones_are_handed_on():
    answer = "".join(block(f"class ModelNew:\n    n = {number}\n") for number in range(20))
    taken: list[str] = []
    so_far = AnswerSoFar(taken.append)
    for end in range(1, len(answer)):
        so_far(answer[:end])
    assert taken == [f"class ModelNew:\n    n = {number}\n" for number in range(4)]
