"""Reads a turn's prompt the way a model would: by its headings, its fences and its lines.

Only what is in the message is used. A section that is missing stays None or empty: its component
was off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent.tuner.planning.schedule import Schedule


class Trial(NamedTuple):
    """An earlier schedule, which G shows, and its outcome, which E shows; else empty."""

    schedule: Schedule
    status: str
    speedup: float | None

    @property
    def failed(self) -> bool:
        return self.status not in ("", "correct")


@dataclass(frozen=True)
class Request:
    text: str
    reference: str
    backend: str
    precision: str
    hidden_sizes: bool
    """Whether the kernel must be right at sizes that the prompt doesn't show."""
    cases: bool
    """Whether the prompt lists several sizes, of which it shows one."""
    kernel: Schedule | None
    """The plan of the kernel to refine (G)."""
    reports: dict[str, tuple[str, float | None]]
    """Turn -> what execution said of it, status and speedup: of the last turn, and of the kernel to
    refine where that is another (E)."""
    trials: tuple[Trial, ...]
    """The table of earlier attempts, and the kernel to refine."""
    bottleneck: str
    """As the profiler named it (P)."""


def read(messages: Sequence[Mapping[str, str]]) -> Request:
    text = next((m["content"] for m in reversed(messages) if m.get("role") == "user"), "")
    sections = split(text)
    task = sections.get("Task", "")
    refined = sections.get("The kernel to refine", "")
    kernel = Schedule.parse(fenced(refined))
    trials = _attempts(sections.get("Earlier attempts", ""))
    reports = _reports(sections.get("What execution said", ""))
    if kernel is not None:
        turn = _found(r"turn (\d+)", refined)
        trials.append(Trial(kernel, *reports.get(turn, ("", None))))
    return Request(
        text=text,
        reference=fenced(sections.get("Reference", "")),
        backend=_found(r"^- Backend: `([^`]+)`", task),
        precision=_found(r"^- Precision: `([^`]+)`", task),
        hidden_sizes="right for other sizes" in sections.get("What counts", ""),
        cases="must be right in each" in sections.get("What counts", ""),
        kernel=kernel,
        reports=reports,
        trials=tuple(trials),
        bottleneck=_found(r"^- bottleneck: (\w+)", sections.get("What the profiler said", "")),
    )


def split(text: str) -> dict[str, str]:
    """Sections by their `## ` headings; headings inside fences are none."""
    found = re.finditer(r"^(`{3,})[^\n]*\n.*?^\1 *$|^## ([^\n]*)$", text, re.S | re.M)
    headings = [heading for heading in found if heading.group(2)]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return {h.group(2): text[h.end() : end] for h, end in zip(headings, ends, strict=False)}


def fenced(text: str) -> str:
    """The first fenced block of a section, or nothing."""
    found = re.search(r"^(`{3,})[^\n]*\n(.*?)^\1\s*$", text, re.S | re.M)
    return found.group(2) if found else ""


def _found(pattern: str, text: str) -> str:
    """The group of the first match, or nothing."""
    found = re.search(pattern, text, re.M)
    return found.group(1) if found else ""


def _speedup(text: str) -> float | None:
    number = _found(r"(\d+(?:\.\d+)?)\s*x", text)
    return float(number) if number else None


def _reports(text: str) -> dict[str, tuple[str, float | None]]:
    """One for each block that begins with a turn."""
    parts = re.split(r"^- turn: (\d+)$", text, flags=re.M)
    return {
        turn: (
            _found(r"^- status: `?(\w+)", block),
            _speedup(_found(r"^- speedup over eager: (.*)$", block)),
        )
        for turn, block in zip(parts[1::2], parts[2::2], strict=True)
    }


def _attempts(text: str) -> list[Trial]:
    """The rows of the table of earlier attempts that show a plan of the tuner."""
    table = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text.split("\n")
        if line.strip().startswith("|")
    ]
    attempts = []
    for row in table[1:]:
        cells = dict(zip(map(str.lower, table[0]), row, strict=False))
        plan = Schedule.parse(cells.get("plan", "").strip("` "))
        if plan is not None:
            status = cells.get("status", "").strip("` ")
            attempts.append(Trial(plan, status, _speedup(cells.get("speedup", ""))))
    return attempts
