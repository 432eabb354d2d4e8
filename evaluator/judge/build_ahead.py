"""Builds a candidate before its turn on the device: `python -m evaluator.judge.build_ahead ...`.

The candidate is imported in a worker without a device, as the judge's worker will import it, and
the trusted builder compiles what it asks for. So the judge finds everything built, and the device
never waits for a compiler while another candidate is ready. Nothing here is believed later: the
library comes from the builder's cache by content, and whatever fails here fails again, and is
told, when the candidate is judged.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evaluator.build.builder import Builder
from evaluator.build_request import BuildOutcome, BuildRequest
from evaluator.devices import describe
from evaluator.evaluation import EvaluationRequest
from evaluator.judge.worker_limits import WorkerLimits
from evaluator.judge.zygote import Zygote
from evaluator.service import leave_with, serve
from evaluator.sole_device import see_none


def main(fd: int, device: str, cache: Path) -> None:
    """Serve until the other end is gone. Answers how long building took, and if it was cached."""
    leave_with(fd)
    builder = Builder(cache, cuda_arch=describe(device).cuda_architecture)
    # Another candidate may be timed there just now.
    see_none()
    # Both it and this process import torch, at the same time.
    zygote = Zygote()
    import torch

    from evaluator.judge.refusal import Refusal
    from evaluator.judge.side import Side

    def answer(question: bytes) -> bytes:
        nonlocal zygote
        if not zygote.alive:
            zygote.close()
            zygote = Zygote()
        request = EvaluationRequest.model_validate_json(question)
        settings = request.settings
        seconds, cached = 0.0, True

        def build(order: BuildRequest) -> BuildOutcome:
            nonlocal seconds, cached
            outcome = builder.build(order, settings.build_timeout_s)
            seconds += outcome.seconds
            cached &= outcome.cached
            return outcome

        limit = settings.memory_limit_bytes
        limits = WorkerLimits(memory_bytes=limit, family_bytes=limit, cpu_seconds=600)
        worker = zygote.fork(limits)
        # For the next candidate, while this one is built.
        zygote.prepare(limits)
        side = Side(worker, torch.device("cpu"), settings.call_timeout_s)
        try:
            side.load(
                request.candidate.source,
                "ModelNew",
                threads=1,
                dtype=torch.float32,
                tf32=None,
                triton=False,
                build=build,
                import_timeout_s=settings.import_timeout_s,
            )
        except Refusal as refusal:
            # Told when it is judged: there, a device may make the difference.
            print(f"{refusal.reason}: {refusal.message}", file=sys.stderr)
        finally:
            side.close()
        return json.dumps({"seconds": seconds, "cached": cached}).encode()

    try:
        serve(fd, answer)
    finally:
        zygote.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
