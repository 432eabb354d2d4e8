"""Builds and runs kernels against PyTorch eager, many in one translation unit.

`python -m tests.agent.tuner.run_kernels CACHE < cases.json`: a list of `{name, reference, kernel}`.
Prints a JSON object by name: `error`, or the worst `ratio` of root mean square errors (ours over
PyTorch's own fp32, both against fp64) and the share of integers that are `wrong`.
"""

import copy
import json
import re
import sys
from pathlib import Path
from typing import ClassVar

import torch
import torch.utils.cpp_extension as cpp_extension

from evaluator.builder.builder import Builder
from evaluator.ipc.build_request import BuildRequest
from evaluator.worker import build_stub

PYTORCH = cpp_extension.load_inline
"""Whose arguments the stub takes."""


class Batched:
    """What `load_inline` gives: functions of a library that is built once all are known."""

    units: ClassVar[dict[str, list[tuple[int, str, list[str]]]]] = {}
    libraries: ClassVar[dict[int, object]] = {}
    count = 0

    def __init__(self, name, cpp_sources, functions, **_):
        self.number = Batched.count
        Batched.count += 1
        head, _, body = "\n".join(cpp_sources).partition("\n\n")
        body = re.sub(r"\bfused_(\d+)\b", rf"k{self.number}_fused_\1", body)
        names = [f"k{self.number}_{f}" for f in functions]
        Batched.units.setdefault(head, []).append((self.number, body, names))

    def __getattr__(self, function):
        return getattr(Batched.libraries[self.number], f"k{self.number}_{function}")


def build(cache: str) -> None:
    builder = Builder(Path(cache))

    def send(request: BuildRequest):
        return builder.build(request)

    cpp_extension.load_inline = PYTORCH
    build_stub.install(send)
    for head, units in Batched.units.items():
        text = head + "\n"
        names = []
        for number, body, functions in units:
            names += functions
            using = "".join(f"using unit{number}::{f};\n" for f in functions)
            text += f"namespace unit{number} {{\n{body}\n}}\n{using}"
        library = cpp_extension.load_inline(
            name=f"batch_{units[0][0]}",
            cpp_sources=[text],
            functions=names,
            extra_cflags=["-O3", "-march=native", "-fopenmp"],
            extra_ldflags=["-fopenmp"],
        )
        Batched.libraries |= dict.fromkeys((number for number, _, _ in units), library)


def flat(value) -> list:
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in flat(v)]


def wide(value):
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


def judge(reference: dict, candidate: dict) -> dict:
    torch.manual_seed(0)
    given = reference["get_init_inputs"]()
    model, ours = reference["Model"](*given), candidate["ModelNew"](*given)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        ours.load_state_dict(model.state_dict())
        inputs = reference["get_inputs"]()
        before = [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]
        exact = flat(copy.deepcopy(model).double()(*map(wide, inputs)))
        eager, got = flat(model(*inputs)), flat(ours(*inputs))
    result = {"ratio": 0.0, "wrong": 0.0}
    for x, y in zip(before, inputs, strict=True):
        assert not isinstance(x, torch.Tensor) or torch.equal(x, y), "an input was modified"
    for truth, theirs, mine in zip(exact, eager, got, strict=True):
        assert mine.shape == theirs.shape, f"{mine.shape}, not {theirs.shape}"
        assert mine.dtype == theirs.dtype, f"{mine.dtype}, not {theirs.dtype}"
        if not mine.is_floating_point():
            result["wrong"] = max(result["wrong"], (mine != theirs).float().mean().item())
            continue
        error, honest = ((v.double() - truth).square().mean().sqrt().item() for v in (mine, theirs))
        # One rounding of the result is the least that can be asked of anybody.
        least = truth.square().mean().sqrt().item() * 2.0**-25
        result["ratio"] = max(result["ratio"], error / max(honest, least, 1e-30))
        assert error == error, "not a number"
    return result


def main() -> None:
    torch.set_num_threads(2)
    cases = json.load(sys.stdin)
    cpp_extension.load_inline = Batched
    spaces = []
    for case in cases:
        reference, candidate = {"__name__": "reference"}, {"__name__": "candidate"}
        exec(compile(case["reference"], case["name"], "exec"), reference)
        exec(compile(case["kernel"], case["name"], "exec"), candidate)
        spaces.append((case["name"], reference, candidate))
    build(sys.argv[1])
    report = {}
    for name, reference, candidate in spaces:
        try:
            report[name] = judge(reference, candidate)
        except (AssertionError, RuntimeError, TypeError, ValueError) as error:
            report[name] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
