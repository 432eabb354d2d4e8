"""What makes a run the same run: the settings that its turns depend on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from agent.config.run_config import RunConfig

MAY_CHANGE = frozenset(
    {
        "output",
        "workers",
        "executor",
        "ray_address",
        "budget",
        "budget_usd",
        "budget_tokens",
        "budget_seconds",
        "allow_unpriced",
        "stop_early",
        "stop_near_sol",
        "confirm",
        "keep_profiles",
        "prompts",
    }
)
"""Settings that decide how far and how fast a run goes, not what its turns are; and where the
user's templates lie, of which `prompts_hash` says what they are."""

ADDED_LATER: dict[str, object] = {
    "examples": "none",
    "prompts_hash": "",
    "inputs": "varied",
    "rival": "none",
    "drafts": None,
    "refine_best": None,
    "fork": None,
}
"""Settings that runs were once made without, and the value that means the same: it is left out of
the digest, so that the same command still finds them."""


def identity(config: RunConfig) -> dict[str, object]:
    """Every setting that two runs must share to be the same, as JSON values.

    Of the devices only their kind counts, and of the suite and a forked run their names: `cuda:0`
    and a path mean something else on another machine. (The problems' own hashes are checked when
    turns are driven.)
    """
    settings = config.model_dump(mode="json", exclude=set(MAY_CHANGE))
    settings["device"] = config.device.partition(":")[0]
    settings["suite"] = config.suite.name if config.suite else None
    settings["fork"] = Path(config.fork).name if config.fork else None
    settings["problems"] = sorted(config.problems)
    return settings


def digest(config: RunConfig) -> str:
    """Eight hex digits that change with the identity."""
    settings = {
        key: value
        for key, value in identity(config).items()
        if key not in ADDED_LATER or value != ADDED_LATER[key]
    }
    canonical = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:8]


def first_difference(ours: RunConfig, theirs: RunConfig) -> tuple[str, object, object] | None:
    """The first setting in which two runs differ, with both values; None for the same run."""
    mine, other = identity(ours), identity(theirs)
    return next(((key, mine[key], other[key]) for key in mine if mine[key] != other[key]), None)
