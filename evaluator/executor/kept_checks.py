"""What the checks of problems found, kept in the cache folder for some days.

A file each, named after all that a check depends on: the problem, how it is judged, the device and
its driver, the machine, and the versions of PyTorch and of the evaluator.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sysconfig
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from evaluator.hardware.cores import usable_cores
from evaluator.hardware.devices import describe
from evaluator.rival import CheckRequest, Rival
from problems.cache_folder import keep

KEPT = timedelta(days=7)
_SETTINGS = {"precision", "protocol", "inputs", "timed_cases", "isolation", "memory_limit_bytes"}


class KeptChecks:
    def __init__(self, cache_folder: Path) -> None:
        self._folder = cache_folder / "checks"

    def found(self, request: CheckRequest, device: str) -> Rival | None:
        """What was found on this device in the last days, as long as it has the memory now."""
        try:
            found = Rival.model_validate_json(self._path(request, device).read_text())
        except (OSError, ValidationError):
            return None
        age = datetime.now(UTC) - datetime.fromisoformat(found.measured_at)
        fits = found.needed_bytes <= describe(device).free_bytes
        return found if age < KEPT and fits else None

    def keep(self, request: CheckRequest, device: str, found: Rival) -> None:
        keep(self._path(request, device), found.model_dump_json(indent=2) + "\n")

    def _path(self, request: CheckRequest, device: str) -> Path:
        info, packages = describe(device), sysconfig.get_path("purelib")
        known = {
            "problem": request.model_dump(
                mode="json", include={"reference", "hidden_references", "cases", "rival"}
            ),
            "weights": request.weights and hashlib.sha256(request.weights.read_bytes()).hexdigest(),
            "settings": request.settings.model_dump(mode="json", include=_SETTINGS),
            "threads": request.settings.threads or usable_cores(),
            "device": [info.name, info.uuid, info.driver, info.memory_bytes],
            "machine": [*os.uname()[1:3], os.getuid()],
            "torch": importlib.metadata.version("torch"),
            # What a reference imports may be installed, or no longer.
            "packages": [packages, Path(packages).stat().st_mtime_ns],
            "evaluator": _evaluator(),
        }
        name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{name[:32]}.json"


@cache
def _evaluator() -> str:
    """Of our own code, whatever its version says."""
    root = Path(__file__).parents[1]
    text = b"".join(path.read_bytes() for path in sorted(root.rglob("*.py")))
    return hashlib.sha256(text).hexdigest()
