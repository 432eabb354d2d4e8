"""`python -m evaluator.collect.compile_ahead FD DEVICE FOLDER MOST`: compiles references.

A judge that compiles holds its device meanwhile. Here all tensors are fake and nothing of what is
compiled runs: a candidate may be timed on the device just now. PyTorch keeps what it compiles in
FOLDER, where the judge's trusted workers find it. What fails here is compiled there, such as what
PyTorch decides by timing kernels. MOST at a time, each in a fork of this process.
"""

from __future__ import annotations

import copy
import importlib
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import GraphModule
from torch.nn import Parameter

from evaluator.baseline import BASELINES
from evaluator.evaluation import ProblemRequest
from evaluator.hardware.cores import usable_cores
from evaluator.hardware.devices import see_only
from evaluator.hardware.host_memory import available_bytes
from evaluator.ipc.service import leave_with
from evaluator.ipc.switchboard import serve_lines
from evaluator.judge.context.worker_factory import flags_for
from evaluator.judge.problem.problem_file import ProblemFile
from evaluator.judge.problem.reference import DTYPES
from evaluator.rival import CheckRequest
from evaluator.settings import BaselineName
from evaluator.walls.environment import compiled_in
from evaluator.walls.privileges import die_with_parent
from evaluator.worker.initial_values import repeated_initial_values

_BYTES = 4 * 2**30
"""Of the machine's memory, for each reference."""
_CONSTANT = 64
"""Elements at most of what PyTorch computes for real while it compiles."""
_KEPT: list[torch.library.Library] = []


def main(fd: int, device: str, folder: Path, most: int) -> None:
    leave_with(fd)
    device = see_only(device)
    os.environ.update(compiled_in(folder))
    # The name of the first module that has `torch` is part of a cache's key, and not of ours.
    sys.modules.pop("__mp_main__", None)
    # To ask whether there is a GPU would otherwise wake CUDA, which spoils all children.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    importlib.import_module("torch._inductor.compile_fx")
    room = threading.Semaphore(max(1, min(most, (available_bytes() or 0) // _BYTES)))

    def answer(question: bytes) -> bytes:
        request = CheckRequest.model_validate_json(question).on(device)
        with room:
            child = get_context("fork").Process(target=_compile_each, args=(request,))
            child.start()
            child.join()
        return b""

    serve_lines(fd, answer)


def _compile_each(request: CheckRequest) -> None:
    die_with_parent()
    if request.settings.device != "cpu":
        _leave_alone()
    for each in filter(lambda each: each.is_timed, request.at_each_case()):
        compile_ahead(each)


def compile_ahead(request: ProblemRequest) -> None:
    """Fill the caches of PyTorch's compiler with what a worker will compile for this problem."""
    settings = request.settings
    device, dtype = torch.device(settings.device), DTYPES[settings.precision]
    torch.set_num_threads(settings.threads or usable_cores())
    flags_for(settings, BASELINES[BaselineName.COMPILE]).set()
    file = ProblemFile(request.reference)
    with repeated_initial_values():
        module = file.module.Model(*file.initial_arguments())
    with FakeTensorMode(allow_non_fake_inputs=True):
        module = module.to(device, dtype)
        inputs = file.inputs(device, dtype)
        compiled: Any = torch.compile(module, backend=_compile_only)
        with torch.no_grad():
            compiled(*inputs)


def _compile_only(graph: GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """Inductor without running what it makes: the graph itself is called, with fake tensors."""
    from torch._inductor.compile_fx import compile_fx

    uncompiled = GraphModule(graph, copy.deepcopy(graph.graph))
    for node in graph.graph.nodes:
        if node.type is FakeTensor:
            # With real inputs it says this, and the text of the graph is part of a cache's key.
            fake = node.meta["example_value"]
            node.type = Parameter if isinstance(fake, Parameter) else torch.Tensor
    graph.recompile()
    compile_fx(graph, list(inputs))
    return uncompiled.forward


def _leave_alone() -> None:
    """From now on no memory of the device is taken and no kernel is loaded."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    torch.cuda.init()
    for name in ("_make_launchers", "_dynamic_scale_rblock"):
        setattr(CachingAutotuner, name, lambda self: None)
    _KEPT.append(library := torch.library.Library("aten", "IMPL"))
    library.impl("empty.memory_format", _on_host(torch.empty), "CUDA")
    library.impl("empty_strided", _on_host(torch.empty_strided), "CUDA")


def _on_host(empty: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def made(size: Sequence[int], *more: Any, dtype: torch.dtype | None = None, **_: Any) -> Any:
        if math.prod(size) > _CONSTANT:
            raise RuntimeError("it takes the device to compile this")
        return empty(size, *more, dtype=dtype, device="cpu")

    return made


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
