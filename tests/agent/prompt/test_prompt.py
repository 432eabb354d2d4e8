"""The one message of a turn."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.run_config import RunConfig
from agent.prompt.answer import extract
from agent.prompt.prompt import Frame, Hardware
from agent.prompt.prompt import render_prompt as prompt_of
from agent.prompt.section import Section
from agent.record.completion import estimated_tokens
from agent.record.result import Spent
from agent.record.turn import TurnSeconds
from evaluator.evaluation import Backend
from evaluator.settings import Precision

HARDWARE = Hardware("CPU: a small one, 2 logical cores", ("caches: L2 1 MiB", "memory: 4 GiB"))
REFERENCE = "import torch\n\n\nclass Model:\n    pass\n"


def run(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"output": Path("x"), **settings})


def render_prompt(
    config: RunConfig,
    reference: str,
    hardware: Hardware,
    turn: int,
    feedback: Sequence[Section] = (),
    spent: Spent | None = None,
) -> str:
    return prompt_of(config, Frame(reference, hardware), turn, feedback, spent).text


def first_prompt(
    config: RunConfig, reference: str, hardware: Hardware, hidden_sizes: bool = False
) -> str:
    return prompt_of(config, Frame(reference, hardware, hidden_sizes), turn=0).text


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def test_of_a_function_a_prompt_asks_for_a_function() -> None:
    text = first_prompt(run(), f'{REFERENCE}\n\nFUNCTION = "double"\n', HARDWARE)
    assert text.startswith("Write a function `double` that")
    assert "- `double` takes the reference's parameters" in text
    assert "Keep the reference's parameters and buffers" not in text
    assert "accumulate 16-bit sums in fp32" in text


def test_headings_are_a_contract() -> None:
    assert headings(first_prompt(run(), REFERENCE, HARDWARE)) == [
        "Task",
        "Reference",
        "What counts",
        "How to answer",
    ]


def test_feedback_follows_at_the_end() -> None:
    feedback = [Section("What execution said", "- turn: 0"), Section("The last kernel", "text")]
    text = render_prompt(run(), REFERENCE, HARDWARE, 1, feedback)
    assert headings(text)[4:] == ["What execution said", "The last kernel"]
    assert text.endswith("## What execution said\n\n- turn: 0\n\n## The last kernel\n\ntext\n")


def test_the_task_names_backend_device_and_precision() -> None:
    text = first_prompt(run(backend="cuda", precision="bf16"), REFERENCE, HARDWARE)
    task = text.partition("## Task")[2].partition("## Reference")[0]
    assert "\n- Backend: `cuda` (" in task
    assert "\n- Device: CPU: a small one, 2 logical cores\n  - caches: L2 1 MiB\n" in task
    assert "\n- Precision: `bf16` (" in task
    assert "\n- This is turn 0; with it, at most 10 are left." in task


def test_the_reference_stands_as_it_is() -> None:
    odd = "x = '{{ not a template }} {% raw %} <&>'\n"
    assert f"## Reference\n\n```python\n{odd}```\n" in first_prompt(run(), odd, HARDWARE)


def test_no_blank_lines_pile_up_and_nothing_is_left_unfilled() -> None:
    feedback = [Section("What execution said", "- turn: 0")]
    for backend in Backend:
        text = render_prompt(run(backend=backend), REFERENCE, HARDWARE, 1, feedback)
        outside = re.sub(r"```python.*?```", "CODE", text, flags=re.DOTALL)
        assert "\n\n\n" not in outside
        assert "{{" not in text and "{%" not in text and "Undefined" not in text


def test_drafts_without_feedback_are_one_and_the_same_prompt() -> None:
    bare = render_prompt(run(feedback="none"), REFERENCE, HARDWARE, 0)
    assert bare == render_prompt(run(feedback="none"), REFERENCE, HARDWARE, 7)
    assert bare == render_prompt(run(strategy="sample"), REFERENCE, HARDWARE, 0)


@pytest.mark.parametrize("backend", list(Backend))
@pytest.mark.parametrize("precision", list(Precision))
def test_the_example_is_an_answer_in_the_form_asked_for(
    backend: Backend, precision: Precision
) -> None:
    text = first_prompt(run(backend=backend, precision=precision), REFERENCE, HARDWARE)
    example = text.partition("## How to answer")[2]
    found = extract(example, "stop")
    assert found.source is not None and found.source.startswith("# plan: ") and found.plan
    ast.parse(found.source)
    wanted = "@triton.jit" if backend is Backend.TRITON else "load_inline("
    assert wanted in found.source


def test_beside_a_correct_kernel_no_example_is_needed() -> None:
    feedback = [Section("The kernel to refine", "```python\nx = 1\n```")]
    frame = Frame(REFERENCE, HARDWARE)
    with_it, without = (
        prompt_of(run(), frame, 1, feedback, shows_answer=shows).text for shows in (False, True)
    )
    assert "load_inline(" in with_it and "load_inline(" not in without.partition("## How to")[2]
    assert "in the form of the kernel below" in without and "form of the kernel" not in with_it
    assert "\n\n\n" not in without.partition("## What counts")[2]


def test_hidden_sizes_are_told_of_but_not_shown() -> None:
    plain = first_prompt(run(), REFERENCE, HARDWARE)
    told = first_prompt(run(), REFERENCE, HARDWARE, hidden_sizes=True)
    assert "specialise for them" in plain and "other sizes" not in plain
    assert "right for other sizes as well" in told and "specialise for them" not in told
    assert len(plain.splitlines()) == len(told.splitlines())


def test_every_limit_that_is_set_is_told_with_what_is_left_of_it() -> None:
    limits = {"budget_usd": 1.0, "budget_tokens": 5000, "budget_seconds": 60.0}
    spent = Spent(
        prompt_tokens=1200, completion_tokens=300, priced_usd=0.25, seconds=TurnSeconds(model=9.6)
    )
    text = render_prompt(run(**limits), REFERENCE, HARDWARE, 2, spent=spent)
    assert (
        "- This is turn 2; with it, at most 8 are left, within $0.75, 3,500 tokens, 50 s that"
        " remain. The best kernel counts.\n" in text
    )
    alone = render_prompt(run(budget_tokens=100), REFERENCE, HARDWARE, 2, spent=spent)
    assert "at most 8 are left, within 0 tokens that remain." in alone


@given(texts=st.lists(st.text(max_size=200), max_size=5), turn=st.integers(0, 9))
def test_the_ledger_adds_up_to_the_prompt(texts: list[str], turn: int) -> None:
    feedback = [Section(f"Part {n}", text, left_out=n) for n, text in enumerate(texts)]
    prompt = prompt_of(run(), Frame(REFERENCE, HARDWARE), turn, feedback)
    ledger = prompt.ledger
    assert ledger.total == estimated_tokens([prompt.text])
    pieces = ["introduction", "task", "reference", "contract", "answer"]
    assert list(ledger.tokens) == [*pieces, *(section.title for section in feedback)]
    assert ledger.cut == {f"Part {n}": n for n in range(1, len(texts))}
    for section in feedback:
        assert abs(ledger.tokens[section.title] - len(section.text) / 4) < 6
