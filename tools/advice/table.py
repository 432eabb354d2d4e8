"""`python -m tools.advice.table`: the rules of advice as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict

from tools.advice.cpu import CPU_ADVICE
from tools.advice.rule import AdviceRule
from tools.advice.rules import GPU_ADVICE
from tools.advice.thresholds import LIMITS


def markdown() -> str:
    """The rules for a GPU, then those for a CPU."""
    return "\n".join(
        [
            "### On a GPU",
            "",
            *_table(GPU_ADVICE),
            "",
            "### On a CPU",
            "",
            *_table(CPU_ADVICE),
        ]
    )


def _table(rules: tuple[AdviceRule, ...]) -> Iterator[str]:
    yield "| rule | bottleneck | when | should change | gain | source |"
    yield "|---|---|---|---|---|---|"
    limits = asdict(LIMITS)
    for rule in rules:
        watch = ", ".join(f"`{figure}` {direction}" for figure, direction in rule.watch)
        yield (
            f"| `{rule.name}` | {rule.bottleneck} | {_spaced(rule.when.format(**limits))} | {watch}"
            f" | {rule.scope}: {_spaced(rule.model.format(**limits))} | {rule.source} |"
        )


def _spaced(text: str) -> str:
    return re.sub(r"(?<=\d)%", " %", text)


if __name__ == "__main__":
    print(markdown())
