"""`python -m tests.evaluator.judge.inputs.eager_at_end DEVICE [FILE ...]`: calls eager PyTorch with
each input in turn at the end of memory, for these problem files or all of ours, and names each one
that it survives."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import torch

from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.inputs.placement import Placement, bytes_needed
from evaluator.judge.problem.reference import Reference, flatten_arguments
from evaluator.settings import Precision
from evaluator.worker.memory import SharedMemory, map_shared
from evaluator.worker.values import decode
from problems.loader import load_suite
from problems.sizes import SizeClass


def call(source: str, device: torch.device) -> None:
    reference = Reference(source, device, Precision.FP32)
    values = reference.fresh_inputs(1)
    wanted = reference.expected(values)
    with closing(make_arena(device, bytes_needed(values), read_only_for_others=False)) as arena:
        where = "cpu" if device.type == "cpu" else "0"
        memory = map_shared(SharedMemory(where, arena.size, arena.fd), writable=True)
        for number in range(len(flatten_arguments(values))):
            placed = Placement(torch.empty_like(arena.bytes), at_end=number)
            laid = MappedArguments(arena.bytes, placed, values)
            laid.lay()
            arguments = [decode(value, memory, lambda given: given) for value in laid.arguments]
            last = max(tensor.data_ptr() + tensor.nbytes for tensor in flatten_arguments(arguments))
            assert memory.data_ptr() + memory.numel() - last < 64
            for output, other in zip(reference.run(arguments), wanted, strict=True):
                torch.testing.assert_close(output, other, rtol=1e-3, atol=1e-3)
            assert laid.holds(around=True)


def main() -> None:
    device, files = torch.device(sys.argv[1]), sys.argv[2:]
    size_class = SizeClass.CPU if device.type == "cpu" else SizeClass.GPU
    sources = {problem.id: problem.reference(size_class) for problem in load_suite()}
    for name, source in ({each: Path(each).read_text() for each in files} or sources).items():
        call(source, device)
        print(name, flush=True)


if __name__ == "__main__":
    main()
