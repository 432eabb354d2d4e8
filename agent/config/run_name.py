"""The default name of a run: read by people, decided by what makes the run the same run."""

from __future__ import annotations

import re

from agent.config.identity import digest
from agent.config.run_config import RunConfig, Strategy


def run_name(config: RunConfig) -> str:
    """`refine-gep-tuner-cpp-3f2a91b0` (or `refine-ge-placebo_p-...`): no time stamp, so the same
    command finds the same run."""
    parts: list[str] = [config.strategy]
    if config.strategy is Strategy.REFINE:
        items = str(config.feedback).lower().split("+")
        letters = "".join(item for item in items if ":" not in item)
        parts += [part for part in (letters, *(i for i in items if ":" in i)) if part]
    model = re.sub(r"[^A-Za-z0-9.]+", "_", config.model.rpartition("/")[2]).strip("_.")
    parts += [model[:24] or "model", config.backend, digest(config)]
    return "-".join(part.replace(":", "_") for part in parts)
