"""`get_inputs` for recorded cases: sizes in which they differ are globals, which `CASES` sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

from agent.recording.drawn_tensor import Expression, drawn, literal
from agent.recording.recorded_calls import Case


def inputs_source(cases: Sequence[Case]) -> str:
    names: dict[tuple[int, ...], str] = {}
    columns = list(zip(*(case.sizes for case in cases), strict=True))
    for column in columns:
        if len({*column}) > 1:
            names.setdefault(column, f"size_{len(names)}")
    sizes = iter([names.get(column, column[0]) for column in columns])

    def text(value: Any) -> Expression:
        if isinstance(value, torch.Tensor):
            return Expression(drawn(value, [next(sizes) for _ in value.shape]))
        return Expression(literal(value))

    lines = [f"def get_inputs():\n    return {tree_map(text, cases[0].arguments)!r}"]
    if names:
        calls = sum(case.count for case in cases)
        rows = [
            {name: column[number] for column, name in names.items()}
            | {"weight": round(case.count / calls, 6)}
            for number, case in enumerate(cases)
        ]
        table = ",\n".join(f"    {json.dumps(row)}" for row in rows)
        first = [f"{name} = {column[0]}" for column, name in names.items()]
        lines = [*first, f"CASES = [\n{table},\n]", "\n", *lines]
    return "\n".join(lines)
