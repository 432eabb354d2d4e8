"""`my_model.py:build`: a function of a user's file that gives a model and its inputs."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from problems.errors import UsageError, first_line


def build(reference: str) -> tuple[nn.Module, Any]:
    """Runs the user's code; raises `UsageError`.

    The same file gives the same model, unless it chooses seeds of its own.
    """
    file, colon, name = reference.rpartition(":")
    path = Path(file).expanduser()
    if not colon or not path.is_file():
        raise UsageError(f"{reference}: give the function of a file, like my_model.py:build")
    torch.manual_seed(0)
    try:
        found = _executed(path.resolve())
        if name not in found:
            near = difflib.get_close_matches(name, found, n=1)
            hint = f"did you mean {near[0]}?" if near else "define it; it returns (model, inputs)"
            raise UsageError(f"{file} has no function {name}; {hint}")
        built = found[name]()
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{reference} raised {words(error)}") from error
    if not isinstance(built, tuple) or len(built) != 2 or not isinstance(built[0], nn.Module):
        raise UsageError(
            f"{reference} returns {type(built).__name__}; it must return (model, inputs), a"
            " torch.nn.Module and what it is called with"
        )
    return built


def words(error: BaseException) -> str:
    """An error of the user's own code in one line."""
    return f"{type(error).__name__}: {first_line(error)}"


def _executed(path: Path) -> dict[str, Any]:
    # What lies beside the file can be imported from it, as when Python runs it.
    sys.path.insert(0, str(path.parent))
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_of_user"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file; its name ends in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)
