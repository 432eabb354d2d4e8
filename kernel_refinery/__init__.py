"""Kernel Refinery from Python: `optimize`, `load`, `apply`, `check`, `load_problem`, `load_runs`.

The packages behind it have short names (`agent`, `tools`, ...). In a checkout they lie beside this
one. A wheel has them in `kernel_refinery/packages`, so that they stay out of site-packages.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Result", "apply", "check", "load", "load_problem", "load_runs", "optimize"]

_HOME = {
    "Result": "agent.optimize",
    "apply": "agent.deployment.applied",
    "check": "evaluator.check",
    "load": "agent.deployment.load",
    "load_problem": "problems.loader",
    "load_runs": "experiments.runs",
    "optimize": "agent.optimize",
}
_PACKAGES = ("problems", "evaluator", "tools", "agent", "experiments")


def own_module(name: str) -> ModuleType:
    """A module of Kernel Refinery's packages, wherever they lie.

    Raises `ImportError` where the process has imported another package of the same name.
    """
    folder = Path(__file__).resolve().parent
    root = folder / "packages" if (folder / "packages").is_dir() else folder.parent
    for package in _PACKAGES:
        loaded = sys.modules.get(package)
        if loaded is not None and str(root / package) not in map(str, loaded.__path__):
            raise ImportError(
                f"this process has imported another package named {package!r}"
                f" ({list(loaded.__path__)}): import kernel_refinery's functions before it,"
                " or run the command kernel-refinery"
            )
    if sys.path[0] != str(root):
        sys.path.insert(0, str(root))
    return importlib.import_module(name)


# Not imported at once: `kernel-refinery --help` answers before pydantic is there.
def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(own_module(_HOME[name]), name)
