"""The process that a profiler watches: it builds a candidate and calls it once, warmed up.

It is forked from a zygote (`own_collectors.py`), or `ncu` or a sanitizer starts it: `python -m
evaluator.collect.target.run FOLDER MODE`. It waits for `request.json` in FOLDER (`target.py`). In
`ncu` the one call lies inside cudaProfilerStart and Stop; in `plain` nothing is collected: the
parent process watches. What was collected goes to `collected.json`. Candidate code runs in this
process, so what it leaves is a claim: good for advice, never for a verdict.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any, cast

import torch

from evaluator.collect.collected import Collected, Work
from evaluator.collect.cpu_trace import collect_calls, collect_cpu, own_namespaces
from evaluator.collect.own_functions import mark_own_functions
from evaluator.collect.target.broker import SOCKET
from evaluator.collect.target.target import CACHE, COLLECTED, Mode, handed_over, read_request
from evaluator.collect.target.walled import LAYERS
from evaluator.evaluation import Backend, EvaluationRequest
from evaluator.hardware.cores import usable_cores
from evaluator.hardware.devices import cache_bytes, see_only
from evaluator.ipc.socket_file import connected
from evaluator.ipc.wire import Channel, Kind
from evaluator.judge.bounds.ceilings import measure_ceilings
from evaluator.judge.bounds.work import count_work
from evaluator.judge.problem.reference import WEIGHT_SEED, Reference
from evaluator.protocol import RULES
from evaluator.settings import Precision
from evaluator.walls.limits import mapped_bytes
from evaluator.worker import build_stub
from evaluator.worker.candidate_module import import_candidate
from evaluator.worker.steps import SourceText
from evaluator.worker.weights import with_weights
from evaluator.worker.zygote import import_ahead

_SEED = 7
_WARM_UP = 3


class Stages:
    def __init__(self, since: float) -> None:
        self.seconds: dict[str, float] = {}
        self._since = since

    def end(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name] = now - self._since
        self._since = now


def main(folder: Path, mode: Mode) -> None:
    """Wait for the request in `folder`, run it and leave what was collected there."""
    since = handed_over(folder, lambda device: torch.zeros(1, device=see_only(device)))
    if since is None:
        return
    broker = Channel(connected(folder / SOCKET), takes_fds=True)
    _run(folder, mode, read_request(folder), broker, since)


def serve(broker: Channel) -> None:
    """The same in the present folder, where a zygote has forked this process."""
    folder = Path.cwd()
    os.environ["KERNEL_REFINERY_CACHE"] = str(folder / CACHE)
    said, _, request = broker.receive().payload.partition(b"\n")
    mode, since = said.decode().split()
    asked = EvaluationRequest.model_validate_json(request)
    _run(folder, cast(Mode, mode), asked, broker, float(since))


def _run(
    folder: Path, mode: Mode, request: EvaluationRequest, broker: Channel, since: float
) -> None:
    stages = Stages(since)
    stages.end("start")
    request = request.on(see_only(request.settings.device))
    settings = request.settings
    torch.set_num_threads(settings.threads or usable_cores())
    if not RULES[settings.protocol].pytorch_flags:
        tf32 = settings.precision is Precision.TF32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
    # Only from here on is it needed.
    broker.send(Kind.DEVICE)
    broker.receive()
    stages.end("wait")
    collected = _collect(folder, mode, request, broker, stages)
    stages.end("collect")
    (folder / COLLECTED).write_text(collected.after(stages.seconds).model_dump_json())
    broker.send(Kind.DONE)


def _collect(
    folder: Path,
    mode: Mode,
    request: EvaluationRequest,
    broker: Channel,
    stages: Stages,
) -> Collected:
    settings = request.settings
    device = torch.device(settings.device)
    threads = torch.get_num_threads()
    reference = Reference(request.reference, device, settings.precision)
    state = reference.randomised(_SEED)
    values = reference.fresh_inputs(_SEED)
    work, output_bytes = None, 0
    if mode not in ("shares", "plain"):
        work = _work(reference, values, settings.precision, settings.device, threads)
    if mode == "cpu":
        output_bytes = sum(t.numel() * t.element_size() for t in reference.expected(values))
    layers = [*filter(None, os.environ.get(LAYERS, "").split(",")), "separate_builder"]
    if settings.device == "cpu":
        most_bytes = mapped_bytes() + settings.memory_limit_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
        layers.append("memory_limit")
    if device.type == "cuda":
        # ncu saves and restores all that the process holds, for each time that it replays a kernel.
        del values
        torch.cuda.empty_cache()
    stages.end("prepare")
    module = _candidate(request, reference, state, broker)
    stages.end("build")
    values = reference.fresh_inputs(_SEED + 1)

    def call() -> object:
        with torch.no_grad():
            return module(*values)

    # Under a sanitizer a call may take a thousand times as long.
    for _ in range(1 if mode == "plain" else _WARM_UP):
        call()
    stages.end("warm_up")
    found: dict[str, object] = {}
    if mode == "cpu":
        found["cpu"] = collect_cpu(
            call,
            own_namespaces(request.candidate.source),
            threads=threads,
            output_bytes=output_bytes,
            flush_bytes=max(2 * cache_bytes(settings.device), 2**24),
        )
    elif mode == "shares":
        found["calls"] = collect_calls(call, own_namespaces(request.candidate.source))
    elif mode == "torch_trace":
        from evaluator.collect.torch_trace import collect_torch_trace

        torch.cuda.synchronize()
        sm_count = torch.cuda.get_device_properties(device).multi_processor_count
        trace = collect_torch_trace(call, sm_count=sm_count, folder=folder)
        found = {"gpu": trace.gpu, "timeline": trace.timeline}
    elif mode == "ncu":
        torch.cuda.synchronize()
        with torch.cuda.nvtx.range("forward"):
            torch.cuda.cudart().cudaProfilerStart()
            call()
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStop()
    elif device.type == "cuda":
        torch.cuda.synchronize()
    return Collected(work=work, isolation=tuple(layers)).model_copy(update=found)


def _candidate(
    request: EvaluationRequest,
    reference: Reference,
    state: dict[str, torch.Tensor],
    broker: Channel,
) -> torch.nn.Module:
    settings = request.settings
    build_stub.install(build_stub.over(broker))
    if settings.device == "cpu":
        mark_own_functions()
    else:
        torch.cuda.set_device(settings.device)
    candidate = request.candidate
    text: SourceText = "file" if candidate.backend is Backend.TRITON else "lines"
    kind = import_candidate(candidate.source, text).ModelNew

    def build() -> torch.nn.Module:
        torch.manual_seed(WEIGHT_SEED)
        module: torch.nn.Module = kind(*reference.initial_arguments)
        return module

    weights = {name: tensor.cpu() for name, tensor in state.items()}
    module = with_weights(build, kind, weights).module.to(settings.device)
    return module if reference.dtype is torch.float32 else module.to(reference.dtype)


def _work(
    reference: Reference, values: list[Any], precision: Precision, device: str, threads: int
) -> Work:
    counted = count_work(reference.model, values, precision, probe=False)
    ceilings = measure_ceilings(device, threads)
    operations = sum(counted.flops.values())
    seconds = sum(
        count / ceilings.flops[kind]
        for kind, count in counted.flops.items()
        if kind in ceilings.flops
    )
    return Work(
        bytes=counted.bytes_soft,
        flops=operations,
        elementwise=counted.elementwise,
        transcendental=counted.transcendental,
        bytes_per_s=ceilings.bandwidth_bytes_s,
        flops_per_s=operations / seconds if seconds else None,
    )


if __name__ == "__main__":
    import_ahead()
    main(Path(sys.argv[1]), sys.argv[2])  # type: ignore[arg-type]
