"""Collects in the candidate's own process: everything but what `ncu` counts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from evaluator.collect.code.static_code import inspect_loops
from evaluator.collect.collected import Collected, LoopFacts
from evaluator.collect.target.broker import Broker, Ended, never
from evaluator.collect.target.target import Collector, Target
from evaluator.collect.torch_trace import TRACE


def collect_own(
    folder: Path, mode: Collector, *, device: str, timeout_s: float, ended: Ended = never
) -> Collected:
    """Run the request in `folder`; the collector's own report stays there.

    Builds are answered here, mostly from the cache that the judge filled. Raises `ProfilerError`
    with one line when the target fails, is too slow or leaves nothing.
    """
    with closing(Target(mode)) as target, Broker(device, ended) as broker:
        collected = target.run(folder, broker, report=TRACE, timeout_s=timeout_s)
        if collected.cpu is None:
            return collected
        cpu = collected.cpu.model_copy(update={"loops": _loops(broker.libraries)})
        return collected.model_copy(update={"cpu": cpu})


def _loops(libraries: list[Path]) -> LoopFacts | None:
    found = [facts for library in libraries if (facts := inspect_loops(library)) is not None]
    if not found:
        return None
    return LoopFacts(
        packed=sum(facts.packed for facts in found),
        scalar=sum(facts.scalar for facts in found),
        widest_bits=max(facts.widest_bits for facts in found),
        calls=tuple(sorted({name for facts in found for name in facts.calls})),
    )
