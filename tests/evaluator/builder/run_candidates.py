"""Runs candidates in a process of their own: stub installed, builder in the same process.

`python -m tests.evaluator.builder.run_candidates CACHE [NAME...]` prints a JSON object by name.
"""

import json
import sys
from pathlib import Path

import torch

from evaluator.builder.builder import Builder
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.worker import build_stub
from tests.evaluator.builder.cpp_candidates import CANDIDATES


def flat(value):
    return (
        [each for item in value for each in flat(item)]
        if isinstance(value, list | tuple)
        else [value]
    )


def compare(expected, actual, tolerance: float) -> str:
    expected, actual = flat(expected), flat(actual)
    if len(expected) != len(actual):
        return f"{len(actual)} results, not {len(expected)}"
    for e, a in zip(expected, actual, strict=True):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e, rtol=tolerance, atol=tolerance)
        elif e != a and not (isinstance(e, float) and abs(e - a) < 1e-6):
            return f"{a!r}, not {e!r}"
    return ""


def main() -> None:
    outcomes: list[BuildOutcome] = []
    builder = Builder(Path(sys.argv[1]))

    def send(request: BuildRequest) -> BuildOutcome:
        outcomes.append(builder.build(request))
        return outcomes[-1]

    build_stub.install(send)
    report = {}
    for name in sys.argv[2:] or CANDIDATES:
        module: dict = {}
        try:
            exec(compile(CANDIDATES[name], name, "exec"), module)
            torch.manual_seed(0)
            inputs = module["inputs"]()
            problem = compare(
                module["reference"](*inputs),
                module["candidate"](*inputs),
                module.get("tolerance", 1e-5),
            )
        except (RuntimeError, AssertionError, TypeError, ImportError) as error:
            problem = f"{type(error).__name__}: {error}"
        report[name] = {
            "problem": problem,
            "headers": outcomes[-1].headers,
            "seconds": outcomes[-1].seconds,
            "log": outcomes[-1].log,
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
