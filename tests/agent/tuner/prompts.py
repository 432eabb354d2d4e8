"""Prompts as the agent renders them, by hand: what the tuner may read and nothing else."""

from dataclasses import dataclass

from agent.tuner.planning.schedule import Schedule

POINTWISE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x, gate):
        return F.gelu(x + self.bias) * torch.sigmoid(gate) + 0.5 * x


def get_inputs():
    return [torch.randn(37, 129), torch.randn(37, 129)]


def get_init_inputs():
    return [129]
"""

SOFTMAX = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        e = torch.exp(x - x.max(dim=-1, keepdim=True).values)
        return e / e.sum(dim=-1, keepdim=True)


def get_inputs():
    return [torch.randn(33, 700)]


def get_init_inputs():
    return []
"""


@dataclass
class Turn:
    """One earlier turn."""

    schedule: Schedule
    status: str = "correct"
    speedup: float | None = None

    def source(self) -> str:
        return f"# plan: {self.schedule.plan()}\nimport torch\n"

    def lines(self, number: int) -> str:
        text = f"- turn: {number}\n- status: {self.status}\n"
        if self.speedup is not None:
            interval = f"[{self.speedup - 0.02:.2f}, {self.speedup + 0.02:.2f}]"
            text += f"- time: 100.0 us\n- speedup over eager: {self.speedup:.2f}x, 95 % interval "
            text += f"{interval} (faster)\n"
        return text


def prompt(
    reference: str,
    turns: list[Turn] | None = None,
    letters: str = "",
    base: int = 0,
    bottleneck: str = "",
    backend: str = "cpp",
    precision: str = "fp32",
) -> list[dict[str, str]]:
    """The messages of the turn that follows `turns`; `base` is the kernel to refine."""
    text = (
        "Write a module.\n\n## Task\n\n"
        f"- Backend: `{backend}` (load_inline)\n- Device: some CPU\n  - 2 cores\n"
        f"- Precision: `{precision}` (IEEE)\n- Budget: call 1 of 10\n\n"
        f"## Reference\n\n```python\n{reference}\n```\n\n## What counts\n\n- It must be right.\n\n"
        "## How to answer\n\nOne block.\n\n```python\n# plan: an example\nimport torch\n```\n"
    )
    turns = turns or []
    last = len(turns) - 1
    if turns and "G" in letters:
        text += f"\n## The kernel to refine\n\nFrom turn {base} (the best so far).\n\n"
        text += f"```python\n{turns[base].source()}```\n"
    if turns and "E" in letters:
        text += f"\n## What execution said\n\n{turns[last].lines(last)}"
        if "G" in letters and base != last:
            text += f"\nTurn {base}, the kernel to refine:\n\n{turns[base].lines(base)}"
    if len(turns) > 1 and set(letters) & {"G", "E"}:
        text += f"\n## Earlier attempts\n\n{_table(turns, letters)}\n"
    shown_apart = bool(turns) and base != last and turns[last].status != "correct"
    if shown_apart and "G" in letters:
        text += (
            f"\n## The last kernel\n\nFrom turn {last}.\n\n```python\n{turns[last].source()}```\n"
        )
    if turns and "P" in letters:
        text += f"\n## What the profiler said\n\n- bottleneck: {bottleneck}\n- turn: {base}\n"
    return [{"role": "user", "content": text}]


def _table(turns: list[Turn], letters: str) -> str:
    columns = ["turn", *(["plan"] if "G" in letters else [])]
    columns += ["status", "speedup"] if "E" in letters else []
    rows = [columns, ["---"] * len(columns)]
    for number, turn in enumerate(turns):
        speedup = f"{turn.speedup:.2f}x" if turn.speedup else "-"
        plan = turn.schedule.plan().replace("|", "/")
        cells = {"turn": str(number), "plan": plan, "status": turn.status, "speedup": speedup}
        rows.append([cells[c] for c in columns])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
