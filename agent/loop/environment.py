"""Where a run is made: versions, commit and device, for its record."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence

from agent.prompt.section import limits_as_facts
from agent.record.result import ProblemResult
from agent.record.revision import revision
from agent.record.store import RunStore
from problems.errors import UsageError

PACKAGES = (
    "kernel-refinery",
    "torch",
    "triton",
    "langgraph",
    "litellm",
    "pydantic",
    "numpy",
    "ray",
)
_AND = " and "


def refuse_other_device(store: RunStore, device_name: str) -> None:
    """Raise `UsageError` where the run was begun on another device: figures of two devices in one
    run would be compared as if they were of one."""
    before = store.environment().get("device")
    if before is not None and before != device_name:
        raise UsageError(
            f"{store.path} was begun on {before}, and this device is {device_name}; choose another"
            " folder with -o, or start over with --redo"
        )


def record_environment(store: RunStore, device_name: str, executor: str) -> None:
    """Write `environment.json` before turns are made: versions as they are now.

    `commit` is of the checkout that this program runs from; None where it is in none; `A and B`
    where the run was begun with A and goes on with B.
    """
    commits = str(store.environment().get("commit") or "").split(_AND)
    commits.append(revision() or "")
    store.add_environment(
        {
            "commit": _AND.join(dict.fromkeys(filter(None, commits))) or None,
            "device": device_name,
            "executor": executor,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "packages": {name: version for name in PACKAGES if (version := _version(name))},
            "prompt_limits": limits_as_facts(),
        }
    )


def record_isolation(store: RunStore, results: Sequence[ProblemResult]) -> None:
    """Add the layers of isolation that the workers had, as the last evaluations tell them."""
    last = [result.last for result in results if result.last is not None]
    layers = [turn.evaluation.isolation for turn in last if turn.evaluation.isolation]
    if layers:
        store.add_environment({"isolation": list(layers[-1])})


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
