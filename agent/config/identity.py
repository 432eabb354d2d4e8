"""What makes a run the same run: the settings that its turns depend on, and the default name."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from agent.config.run_config import RunConfig, Strategy

_LEVEL = re.compile(r"level_?(\d+)")
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
        "budget_device_seconds",
        "budget_profiles",
        "allow_unpriced",
        "confirm",
    }
)
"""Settings that decide how far and how fast a run goes, not what its turns are."""


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
    canonical = json.dumps(identity(config), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:8]


def first_difference(ours: RunConfig, theirs: RunConfig) -> tuple[str, object, object] | None:
    """The first setting in which two runs differ, with both values; None for the same run."""
    mine, other = identity(ours), identity(theirs)
    return next(((key, mine[key], other[key]) for key in mine if mine[key] != other[key]), None)


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
    named = [re.sub(r"[^a-z0-9.+]+", "_", word.lower()).strip("_.") for word in words]
    return "-".join([*named, digest(config)])


def _levels(problems: tuple[str, ...]) -> str:
    """`level1`, `level1+2`; the problem's own id where it is alone."""
    if len(problems) == 1:
        return problems[0]
    levels = {match[1] for name in problems if (match := _LEVEL.match(name))}
    return f"level{'+'.join(sorted(levels, key=int))}" if levels else f"{len(problems)}_problems"
