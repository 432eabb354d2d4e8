"""The one message of a turn."""

import ast
import re
from pathlib import Path

import pytest

from agent.answer import extract
from agent.config import RunConfig
from agent.feedback import Section
from agent.prompt import Hardware, first_prompt, render_prompt
from evaluator.evaluation import Backend, Precision

HARDWARE = Hardware("CPU: a small one, 2 logical cores", ("caches: L2 1 MiB", "memory: 4 GiB"))
REFERENCE = "import torch\n\n\nclass Model:\n    pass\n"


def run(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"output": Path("x"), **settings})


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


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


def test_hidden_sizes_are_told_of_but_not_shown() -> None:
    plain = first_prompt(run(), REFERENCE, HARDWARE)
    told = first_prompt(run(), REFERENCE, HARDWARE, hidden_sizes=True)
    assert "specialise for them" in plain and "other sizes" not in plain
    assert "right for other sizes as well" in told and "specialise for them" not in told
    assert len(plain.splitlines()) == len(told.splitlines())
