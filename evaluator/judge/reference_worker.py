"""The reference in a process of its own, under the flags that a candidate sets.

KernelBench runs both sides in one process, so that a candidate's flags hold for the reference, too.
The judge's process can follow them but for `cudnn.benchmark`: PyTorch keeps the plan that it first
made for a convolution, whatever this flag says later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.errors import InfrastructureError
from evaluator.judge.baselines import TRUSTED_TIMEOUT_S, no_build
from evaluator.judge.draws import Draw
from evaluator.judge.refusal import Refusal
from evaluator.judge.side import Side

if TYPE_CHECKING:
    from evaluator.judge.bench import Bench


class ReferenceWorker:
    """Of one problem, as the public seed constructs it; started when it is first needed."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._side: Side | None = None
        self._flags = BackendFlags()

    def outputs(self, draw: Draw, flags: BackendFlags) -> list[torch.Tensor]:
        """What it gives for the inputs of a call. Raises `InfrastructureError`."""
        bench = self._bench
        laid = bench.draws.lay_again(draw) if bench.draws.writable else draw.order
        try:
            if self._side is None or flags != self._flags:
                self._start(flags)
            assert self._side is not None
            with self._side.call(
                laid, random_seed=draw.random_seed, timeout_s=TRUSTED_TIMEOUT_S
            ) as call:
                return self._side.outputs(call.reply, bench.outputs)
        except Refusal as refusal:
            self.close()
            raise InfrastructureError(
                f"the reference could not be run in a worker: {refusal.message}"
            ) from None

    def _start(self, flags: BackendFlags) -> None:
        self.close()
        bench = self._bench
        self._side, self._flags = bench.new_side(), flags
        source = bench.reference.source
        bench.load(self._side, source, "Model", triton=False, build=no_build, flags=flags)
        bench.construct(self._side, {}, timeout_s=TRUSTED_TIMEOUT_S)

    def close(self) -> None:
        """End it; it is started again when it is needed."""
        if self._side is not None:
            self._side.close()
            self._side = None
