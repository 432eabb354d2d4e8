"""One cell of a study: a model under a condition with a seed. It is one run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from agent.config.run_config import Strategy
from agent.resolution import Resolution, resolve
from experiments.study.plan import Condition, ModelChoice, Plan
from problems.errors import UsageError


@dataclass(frozen=True)
class Cell:
    model: str
    condition: Condition
    seed: int
    resolution: Resolution

    @property
    def name(self) -> str:
        """That of its folder in the study's: `refine-g+e+p-tuner-s0`."""
        return cell_name(self.model, self.condition, self.seed)


def cell_name(model: str, condition: Condition, seed: int) -> str:
    """A name that a person can read."""
    words = (str(condition), model, f"s{seed}")
    return "-".join(re.sub(r"[^a-z0-9.+-]+", "_", word.lower().replace(" ", "-")) for word in words)


def cells_of(plan: Plan, folder: Path) -> tuple[Cell, ...]:
    """All cells, by seed, then model, then condition, each with `folder`/NAME as its run directory;
    not those of `agent`, where kernel-refinery mcp makes a session.

    Raises `UsageError` for settings that contradict, and for names that only differ in what a
    folder's name leaves out.
    """
    made = [parts for parts in _all(plan) if parts[1].strategy is not Strategy.AGENT]
    cells = tuple(_cell(plan, folder, *parts) for parts in made)
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two cells would be called {name}; give their models other names")
    return cells


def drafts_model(plan: Plan, cell: Cell) -> str:
    """What is asked for the first drafts that cells share: their model, relayed through a folder of
    their own."""
    model = next(each.model for each in plan.models if each.label == cell.model)
    return f"{model}/drafts-s{cell.seed}" if model.startswith("relay/") else model


def chosen(cells: Sequence[Cell], patterns: Sequence[str]) -> tuple[Cell, ...]:
    """Cells whose name is one of `patterns`, where `*` stands for any text; all without patterns.

    Raises `UsageError` for a pattern that no name fits.
    """
    for pattern in patterns:
        if not any(fnmatchcase(cell.name, pattern) for cell in cells):
            names = ", ".join(cell.name for cell in cells)
            raise UsageError(f"--cell {pattern}: the plan has no such cell; it has {names}")
    return tuple(
        cell
        for cell in cells
        if not patterns or any(fnmatchcase(cell.name, pattern) for pattern in patterns)
    )


def cell_names(plan: Plan) -> tuple[str, ...]:
    return tuple(cell_name(model.label, condition, seed) for model, condition, seed in _all(plan))


def _all(plan: Plan) -> Iterator[tuple[ModelChoice, Condition, int]]:
    for seed in plan.seeds:
        for model in plan.models:
            for condition in plan.conditions:
                yield model, condition, seed


def _cell(plan: Plan, folder: Path, model: ModelChoice, condition: Condition, seed: int) -> Cell:
    name = cell_name(model.label, condition, seed)
    options = plan.options(model, condition, seed)
    provider, _, study = options.model.partition("/")
    is_study = provider == "replay" and (Path(study) / "study.json").is_file()
    if is_study or provider == "relay":
        # Each cell has answers of its own, in a folder of its name.
        options = options.model_copy(update={"model": f"{options.model}/{name}"})
    resolution = resolve(options.model_copy(update={"output": folder / name}))
    return Cell(model.label, condition, seed, resolution)
