"""The reference with each intermediate result off by what another honest order of adding gives."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from evaluator.judge.bounds import work_rules
from evaluator.judge.operator_mode import OperatorCall, OperatorMode, storage_of, tensors_in

_FP32_ROUND_OFF = 2.0**-24


class RoundingNoise(OperatorMode):
    """While it is entered, operators return results that are rounded once more.

    Each element is off by up to one unit round-off of its own size. Behind a sum of n terms it is
    also off by up to half of 2^-24 sqrt(n), as the accept rule's floor has it: of the result's rms,
    or of its own size behind a softmax, whose sum it was divided by.
    """

    def __init__(self, device: torch.device, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator(device=device).manual_seed(seed)

    def result_of(self, call: OperatorCall) -> Any:
        operands, result = call.operands, call.run()
        made = tensors_in(result)
        given = {storage_of(tensor) for tensor in operands}
        terms = work_rules.accumulation(call.name, call.args, operands, made)
        for tensor in made:
            fresh = storage_of(tensor) not in given
            if fresh and tensor.is_floating_point() and tensor.numel():
                self._round(tensor, terms, relative="softmax" in call.name)
        return result

    def _round(self, tensor: Tensor, terms: int, *, relative: bool) -> None:
        noise = torch.empty_like(tensor).uniform_(-1.0, 1.0, generator=self._generator)
        of_sum = _FP32_ROUND_OFF * math.sqrt(terms) / 2 if terms > 1 else 0.0
        own = torch.finfo(tensor.dtype).eps / 2 + (of_sum if relative else 0.0)
        rms = torch.linalg.vector_norm(tensor) / math.sqrt(tensor.numel())
        tensor.addcmul_(tensor, noise, value=own)
        if of_sum and not relative:
            noise.uniform_(-1.0, 1.0, generator=self._generator)
            tensor.add_(noise.mul_(rms), alpha=of_sum)
