"""`python -m evaluator.judge.builds.build_ahead`: builds a candidate before it has its device.

The candidate is imported in a worker without a device (`rehearsal.py`), and the trusted builder
compiles what it asks for. So the judge finds everything built, and the device never waits for a
compiler while another candidate is ready. The library comes from the builder's cache by content.
What fails here fails again when the candidate is judged, and is reported then. Only a candidate
that ran into a limit is refused here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from evaluator.builder.builder import Builder
from evaluator.evaluation import EvaluationRequest
from evaluator.hardware.devices import describe, see_none
from evaluator.ipc.service import leave_with, serve
from evaluator.judge.workers.process import WorkerLimits
from evaluator.judge.workers.zygote import Zygote


def main(fd: int, device: str, cache: Path) -> None:
    """Serve until the other end is gone. Answers what was built, a `BuiltAhead`."""
    leave_with(fd)
    judged_on = describe(device)
    builder = Builder(cache, cuda_arch=judged_on.cuda_architecture)
    # Another candidate may be timed there just now.
    see_none()
    # Both it and this process import torch, at the same time.
    zygote = Zygote()
    from evaluator.judge.builds.rehearsal import rehearse

    def answer(question: bytes) -> bytes:
        nonlocal zygote
        if not zygote.alive:
            zygote.close()
            zygote = Zygote()
        request = EvaluationRequest.model_validate_json(question)
        limit = request.settings.memory_limit_bytes
        limits = WorkerLimits(memory_bytes=limit, family_bytes=limit, cpu_seconds=600)
        worker = zygote.fork(limits)
        # For the next candidate, while this one is built.
        zygote.pool.prepare(limits)
        built = rehearse(request, builder, judged_on, worker)
        return built.model_dump_json().encode()

    try:
        serve(fd, answer)
    finally:
        zygote.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
