"""`python -m tools.advice.table`: the rules of advice as Markdown, which `docs/advice.md` holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict

from tools.advice.cpu import CPU_ADVICE
from tools.advice.rule import AdviceRule
from tools.advice.rules import EXPLAINS, GPU_ADVICE
from tools.advice.thresholds import LIMITS


def markdown() -> str:
    """Both tables of rules, then who explains whom."""
    return "\n".join(
        [
            "### On a GPU",
            "",
            *_table(GPU_ADVICE),
            "",
            "### On a CPU",
            "",
            *_table(CPU_ADVICE),
            "",
            "### Causes and their symptoms",
            "",
            "| cause | explains |",
            "|---|---|",
            *(f"| `{cause}` | {_names(symptoms)} |" for cause, symptoms in EXPLAINS.items()),
        ]
    )


def _table(rules: tuple[AdviceRule, ...]) -> Iterator[str]:
    yield "| rule | when | should move | gain, a share of the time | source |"
    yield "|---|---|---|---|---|"
    limits = asdict(LIMITS)
    for rule in rules:
        watch = ", ".join(f"`{figure}` {direction}" for figure, direction in rule.watch)
        of = "hottest kernel" if rule.scope == "kernel" else "call"
        yield (
            f"| `{rule.name}` | {_spaced(rule.when.format(**limits))} | {watch}"
            f" | of the {of}: {_spaced(rule.model.format(**limits))} | {rule.source} |"
        )


def _spaced(text: str) -> str:
    return re.sub(r"(?<=\d)%", " %", text)


def _names(symptoms: tuple[str, ...]) -> str:
    if len(symptoms) > len(GPU_ADVICE) / 2:
        return "every rule about a single kernel, and `unfused_kernels`"
    return ", ".join(f"`{name}`" for name in symptoms)


if __name__ == "__main__":
    print(markdown())
