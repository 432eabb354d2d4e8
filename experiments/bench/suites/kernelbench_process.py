"""One evaluation by KernelBench's own evaluator, in this process: `SRC` is the only argument.

Everything is imported first. Then a line of JSON says what to evaluate, and one is printed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_NOT_NEEDED = ("litellm", "openai", "dotenv", "tqdm", "requests", "datasets", "pydra", "modal")
"""What KernelBench imports for other purposes, where it is not installed."""
_TRIALS = 5
_CHARACTERS = 300


def main(source: str) -> None:
    """Wait for the order, evaluate, print the verdict, and end without any cleaning up."""
    for name in _NOT_NEEDED:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = _Anything(name)
    sys.path.insert(0, source)
    extension = importlib.import_module("torch.utils.cpp_extension")
    evaluator = importlib.import_module("kernelbench.eval")
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    line = sys.stdin.readline()
    if not line:
        return
    order = json.loads(line)
    failed = Path(order["builds"]) / "failed"
    for name in ("load", "load_inline"):
        setattr(extension, name, _remembering(getattr(extension, name), failed))
    print("\n" + json.dumps(_verdict(evaluator, order)), flush=True)
    os._exit(0)


class _Anything(types.ModuleType):
    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: None


def _verdict(evaluator: Any, order: dict[str, Any]) -> dict[str, object]:
    kernel = Path(order["kernel"]).read_text(encoding="utf-8-sig")
    try:
        result = evaluator.eval_kernel_against_ref(
            Path(order["problem"]).read_text(),
            kernel,
            seed_num=order["seed"],
            num_correct_trials=_TRIALS,
            measure_performance=False,
            device=torch.device("cuda:0"),
            backend="triton" if "triton.jit" in kernel else "cuda",
            build_dir=str(Path(order["builds"]) / Path(order["kernel"]).stem),
        )
    except BaseException as error:  # noqa: BLE001 - candidates run in this process
        return {"verdict": "raised", "told": f"{type(error).__name__}: {error}"[:_CHARACTERS]}
    if result is None or not result.compiled:
        return {"verdict": "not built", "told": str(result and result.metadata)[:_CHARACTERS]}
    if result.correctness:
        return {"verdict": "correct", "told": ""}
    told = {name: str(value)[:_CHARACTERS] for name, value in result.metadata.items()}
    raised = "runtime_error" in result.metadata
    return {"verdict": "raised" if raised else "mismatch", "told": str(told)[: 3 * _CHARACTERS]}


def _remembering(build: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """A build that failed in an earlier process fails at once, with the same words."""
    folder.mkdir(parents=True, exist_ok=True)

    def remembered(*arguments: Any, **options: Any) -> Any:
        asked = repr((arguments, sorted(options.items(), key=lambda pair: pair[0])))
        mark = folder / hashlib.sha256(asked.encode()).hexdigest()
        if mark.exists():
            raise RuntimeError(mark.read_text())
        try:
            return build(*arguments, **options)
        except Exception as error:
            mark.write_text(str(error))
            raise

    return remembered


if __name__ == "__main__":
    main(sys.argv[1])
