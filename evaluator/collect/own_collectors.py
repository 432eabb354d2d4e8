"""Collects in the candidate's own process: everything but what `ncu` counts."""

from __future__ import annotations

import time
from contextlib import closing, nullcontext
from pathlib import Path

from evaluator.collect.code.static_code import inspect_loops
from evaluator.collect.collected import Collected
from evaluator.collect.target.broker import Broker, Ended, never
from evaluator.collect.target.program import last_line
from evaluator.collect.target.target import REQUEST, Collector, lend_ceilings, taken
from evaluator.collect.torch_trace import TRACE
from evaluator.ipc.wire import Kind, WireError
from evaluator.judge.workers.process import WorkerLimits
from evaluator.judge.workers.zygote import Zygote


def target_zygote() -> Zygote:
    """Forks the processes that run candidates for these collectors."""
    # Idle threads of a pool that look for work would count as processor time.
    openmp = {"GOMP_SPINCOUNT": "0", "OMP_PROC_BIND": "false"}
    return Zygote(openmp, program="evaluator.collect.target.run")


def collect_own(
    folder: Path,
    mode: Collector,
    *,
    device: str,
    timeout_s: float,
    ended: Ended = never,
    zygote: Zygote | None = None,
) -> Collected:
    """Run the request in `folder`; the collector's own report stays there.

    Builds are answered here, mostly from the cache that the judge filled. Raises `ProfilerError`
    with one line when the target fails, is too slow or leaves nothing; as `Broker.error` says.
    """
    begin, why = time.monotonic(), ""
    limits = WorkerLimits(memory_bytes=None)
    held = nullcontext(zygote) if zygote and zygote.alive else closing(target_zygote())
    with held as forks, Broker(device, ended) as broker, forks.fork(limits) as worker:
        lend_ceilings(worker.scratch)
        request = (folder / REQUEST).read_bytes()
        try:
            worker.channel.send(Kind.REQUEST, f"{mode} {begin!r}\n".encode() + request)
            broker.serve(worker.channel, timeout_s)
        except WireError as error:
            why = f"broke off: {error}" if str(error) else f"took longer than {timeout_s:g} s"
        collected = None if why else taken(worker.scratch, folder, TRACE)
        why = why or f"left nothing: {last_line(worker.end().log)}"
    if collected is None:
        raise broker.error(f"the {mode} collector {why}")
    update: dict[str, object] = {"isolation": (*worker.isolation, *collected.isolation)}
    if collected.cpu is not None:
        loops = inspect_loops(broker.libraries)
        update["cpu"] = collected.cpu.model_copy(update={"loops": loops})
    return collected.after({"process": time.monotonic() - begin}).model_copy(update=update)
