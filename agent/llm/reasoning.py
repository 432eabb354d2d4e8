"""A model's reasoning, where it stands in the answer's text: between `<think>` tags."""

from __future__ import annotations

import re

_TAG = re.compile(r"\s*<(think|thinking|reasoning)>")


def apart(text: str) -> tuple[str, str]:
    """(answer, reasoning). Only what stands before the answer counts: a tag in the midst of it is
    part of it. Reasoning that never ends was cut off, and leaves no answer; an end without a
    beginning comes from chat templates that send the opening tag themselves."""
    opening = _TAG.match(text)
    if opening:
        thought, _, answer = text[opening.end() :].partition(f"</{opening.group(1)}>")
        return answer.lstrip("\n"), thought.strip()
    thought, end, answer = text.partition("</think>")
    if end and "<think>" not in thought and answer.strip() and "```" not in thought:
        return answer.lstrip("\n"), thought.strip()
    return text, ""
