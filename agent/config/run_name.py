"""The default name of a run: read by people, decided by what makes the run the same run."""

from __future__ import annotations

import re

from agent.config.identity import digest
from agent.config.run_config import RunConfig, Strategy

_LEVEL = re.compile(r"level_?(\d+)")


def run_name(config: RunConfig) -> str:
    """`refine-g+e+p-tuner-cpp-level1-s0-3f2a91b0`: no time stamp, so the same command finds the
    same run."""
    feedback = [] if config.strategy is Strategy.SAMPLE else [str(config.feedback)]
    suite = [config.suite.name] if config.suite else []
    words = [
        config.strategy,
        *feedback,
        config.model.rpartition("/")[2][:24] or "model",
        config.backend,
        *suite,
        _levels(config.problems),
        f"s{config.seed}",
    ]
    return "-".join([*map(_word, words), digest(config)])


def earlier_run_name(config: RunConfig) -> str:
    """What `run_name` was at first: `refine-gep-tuner-cpp-3f2a91b0`."""
    parts: list[str] = [config.strategy]
    if config.strategy is Strategy.REFINE:
        items = str(config.feedback).lower().split("+")
        letters = "".join(item for item in items if ":" not in item)
        parts += [part for part in (letters, *(i for i in items if ":" in i)) if part]
    model = re.sub(r"[^A-Za-z0-9.]+", "_", config.model.rpartition("/")[2]).strip("_.")
    parts += [model[:24] or "model", config.backend, digest(config)]
    return "-".join(part.replace(":", "_") for part in parts)


def _levels(problems: tuple[str, ...]) -> str:
    """`level1`, `level1+2`; the problem's own id where it is alone."""
    if len(problems) == 1:
        return problems[0]
    levels = {match[1] for name in problems if (match := _LEVEL.match(name))}
    return f"level{'+'.join(sorted(levels, key=int))}" if levels else f"{len(problems)}_problems"


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9.+]+", "_", text.lower()).strip("_.")
